//! Rules against stored runs of `PyTorch` and FBGEMM; see `vectors`.

use std::{env, fs, path::PathBuf};

use emb_optim::{Optimizer, OptimizerConfig, RuleKind};
use safetensors::SafeTensors;

use crate::store::Store;

const TOLERANCE: f64 = 2e-6;

/// One stored run: tensors, and the text of its metadata.
struct Vectors {
    bytes: Vec<u8>,
}

impl Vectors {
    /// `None`, with a printed reason, where the files are not at hand.
    fn open(name: &str) -> Option<Self> {
        let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
        let folder = env::var_os("EMB_VECTORS").map_or(default, PathBuf::from);
        let path = folder.join(name).with_extension("safetensors");
        match fs::read(&path) {
            Ok(bytes) => Some(Self { bytes }),
            Err(error) => {
                eprintln!("skipped: {}: {error}; set EMB_VECTORS", path.display());
                None
            }
        }
    }

    fn meta(&self, key: &str) -> String {
        let (_, metadata) = SafeTensors::read_metadata(&self.bytes).expect("a safetensors file");
        let metadata = metadata.metadata().as_ref().expect("metadata");
        metadata.get(key).unwrap_or_else(|| panic!("no {key} in the metadata")).clone()
    }

    /// The numbers of a metadata text like `[4, 8, 12]` or `50`.
    fn counts(&self, key: &str) -> Vec<usize> {
        let text = self.meta(key);
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        numbers.map(|part| part.parse().expect("digits")).collect()
    }

    /// A hyper-parameter out of a flat JSON object of numbers.
    fn hyper(&self, key: &str) -> Option<f64> {
        let text = self.meta("hyper");
        let (_, rest) = text.split_once(&format!("\"{key}\":"))?;
        let number = rest.split([',', '}']).next()?;
        Some(number.trim().parse().expect("a number"))
    }

    fn f32(&self, name: &str) -> Vec<f32> {
        self.tensor(name, |bytes: [u8; 4]| f32::from_le_bytes(bytes))
    }

    fn i64(&self, name: &str) -> Vec<i64> {
        self.tensor(name, |bytes: [u8; 8]| i64::from_le_bytes(bytes))
    }

    fn tensor<T, const N: usize>(&self, name: &str, read: impl Fn([u8; N]) -> T) -> Vec<T> {
        let file = SafeTensors::deserialize(&self.bytes).expect("a safetensors file");
        let view = file.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (values, rest) = view.data().as_chunks::<N>();
        assert!(rest.is_empty(), "{name}");
        values.iter().map(|&bytes| read(bytes)).collect()
    }
}

/// Gradient of each touched row of one table under sum pooling: `(row, gradient)`, rows ascending.
fn row_gradients(
    (lengths, values): (&[i64], &[i64]),
    (table, batch): (usize, usize),
    upstream: impl Fn(usize) -> Vec<f32>,
) -> Vec<(usize, Vec<f32>)> {
    let mut at = lengths[..table * batch].iter().sum::<i64>() as usize;
    let mut sums: std::collections::BTreeMap<usize, Vec<f64>> = std::collections::BTreeMap::new();
    for sample in 0..batch {
        for _ in 0..lengths[table * batch + sample] {
            let grad = upstream(sample);
            let sum = sums.entry(values[at] as usize).or_insert_with(|| vec![0.0; grad.len()]);
            sum.iter_mut().zip(&grad).for_each(|(sum, &g)| *sum += f64::from(g));
            at += 1;
        }
    }
    sums.into_iter().map(|(row, sum)| (row, sum.iter().map(|&g| g as f32).collect())).collect()
}

/// Drives every table of a stored run and compares weights and state after every step.
fn follow(name: &str, kind: RuleKind, dims: &str, lr: &str) {
    let Some(vectors) = Vectors::open(name) else { return };
    let optimizer: Optimizer = OptimizerConfig {
        eps: vectors.hyper("eps").filter(|_| kind.has_eps()),
        beta1: vectors.hyper("beta1"),
        beta2: vectors.hyper("beta2"),
        ..OptimizerConfig::new(kind)
    }
    .build()
    .unwrap_or_else(|e| panic!("{e}"));
    let (dims, batch) = (vectors.counts(dims), vectors.counts("batch")[0]);
    let lr = vectors.hyper(lr).expect("a learning rate");
    let width: usize = dims.iter().sum();
    let mut first_column = 0;
    let mut compared = 0;
    for (table, &dim) in dims.iter().enumerate() {
        let start = vectors.f32(&format!("init.table{table}.weight"));
        let mut store = Store::new(optimizer, dim, start);
        for step in 0..vectors.counts("steps")[0] {
            let lengths = vectors.i64(&format!("step{step}.lengths"));
            let values = vectors.i64(&format!("step{step}.values"));
            let upstream = vectors.f32(&format!("step{step}.grad_output"));
            let part = |sample: usize| {
                let from = sample * width + first_column;
                upstream[from..from + dim].to_vec()
            };
            for (row, grad) in row_gradients((&lengths, &values), (table, batch), part) {
                store.step(row, lr, step as u64 + 1, &grad);
            }
            let names = optimizer.slots().iter().map(|slot| slot.name);
            for (got, what) in
                [(&store.weights, "weight")].into_iter().chain(store.slots.iter().zip(names))
            {
                let want = vectors.f32(&format!("step{step}.table{table}.{what}"));
                assert_eq!(got.len(), want.len(), "{what}");
                for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                    let error = f64::from((got - want).abs());
                    assert!(
                        error <= TOLERANCE * f64::from(want.abs().max(1.0)),
                        "{name} step {step} table {table} {what}[{i}]: {got}, stored {want}"
                    );
                    compared += 1;
                }
            }
        }
        first_column += dim;
    }
    assert!(compared > 1000, "{name}: only {compared} values");
}

#[test]
fn sgd_follows_the_golden_run() {
    follow("tbe_sgd", RuleKind::Sgd, "dims", "learning_rate");
}

#[test]
fn adagrad_follows_the_golden_run() {
    follow("tbe_adagrad", RuleKind::AdaGrad, "dims", "learning_rate");
}

#[test]
fn rowwise_adagrad_follows_the_golden_run() {
    follow("tbe_rowwise_adagrad", RuleKind::RowWiseAdaGrad, "dims", "learning_rate");
}

#[test]
fn lazy_adam_follows_the_golden_run() {
    follow("sparse_adam", RuleKind::Adam, "dim", "lr");
}
