//! The same numbers as other implementations: output, weights and state after each of five steps.
//!
//! The vectors are files of `safetensors` in the folder that `EMB_VECTORS` names; without it the
//! tests say so and pass.

use emb_kernels::cpu::{Cpu, CpuOptions, CpuTables};
use emb_kernels::{Backend, Feature, FeatureMap, Gradients, Jagged, Mat, Pooling, TableSpec};
use emb_optim::{Optimizer, OptimizerConfig, RuleKind};
use safetensors::SafeTensors;
use std::collections::HashMap;
use std::path::PathBuf;

/// Largest difference, absolute below 1 and relative above.
const TOLERANCE: f32 = 2e-6;

macro_rules! golden {
    ($($test:ident: $file:literal),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                run($file);
            }
        )*
    };
}

golden! {
    golden_sgd: "tbe_sgd",
    golden_sgd_mean: "tbe_sgd_mean",
    golden_sgd_weighted: "tbe_sgd_weighted",
    golden_adagrad: "tbe_adagrad",
    golden_rowwise_adagrad: "tbe_rowwise_adagrad",
    golden_rowwise_adagrad_mean: "tbe_rowwise_adagrad_mean",
    golden_rowwise_adagrad_weighted: "tbe_rowwise_adagrad_weighted",
    golden_adam: "sparse_adam",
}

fn run(name: &str) {
    let folder = std::env::var_os("EMB_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
        PathBuf::from,
    );
    let Ok(bytes) = std::fs::read(folder.join(format!("{name}.safetensors"))) else {
        eprintln!("skipped: {} has no {name}.safetensors", folder.display());
        return;
    };
    for threads in [1, 2] {
        File::new(&bytes).replay(threads);
    }
}

/// One file of vectors.
struct File<'a> {
    tensors: SafeTensors<'a>,
    about: HashMap<String, String>,
}

impl<'a> File<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let (_, metadata) = SafeTensors::read_metadata(bytes).expect("a header");
        let about = metadata.metadata().clone().expect("metadata");
        Self { tensors: SafeTensors::deserialize(bytes).expect("tensors"), about }
    }

    fn replay(&self, threads: usize) {
        let specs = self.specs();
        let mut cpu = Cpu::new(CpuOptions { threads }).expect("threads");
        let mut tables = cpu.create_tables(&specs, 1).expect("tables");
        self.load(&mut cpu, &mut tables, &specs);
        let pooling = match self.about.get("pooling").map(String::as_str) {
            Some("MEAN") => Pooling::Mean,
            _ => Pooling::Sum,
        };
        let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let features = names.iter().enumerate();
        let features = features.map(|(table, name)| Feature { name: name.clone(), table, pooling });
        let map = FeatureMap::new(features.collect(), &specs, 0).expect("features");
        for step in 0..self.number("steps") {
            let batch = self.batch(step, &names);
            self.forward(step, &mut cpu, &mut tables, &map, &batch);
            self.backward(step, &mut cpu, &mut tables, &map, &batch);
        }
    }

    fn forward(
        &self,
        step: usize,
        cpu: &mut Cpu,
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: &Jagged,
    ) {
        let samples = batch.batch();
        let mut out = vec![f32::NAN; samples * map.width()];
        let matrix = Mat::new(&mut out[..], samples, map.width());
        cpu.pool(tables, map, batch.as_ref().view(), matrix).expect("lookup");
        near(&format!("step {step} output"), &out, &self.floats(&format!("step{step}.output")));
    }

    fn backward(
        &self,
        step: usize,
        cpu: &mut Cpu,
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: &Jagged,
    ) {
        let gradient = self.floats(&format!("step{step}.grad_output"));
        let pooled = Mat::new(&gradient[..], batch.batch(), map.width());
        let view = batch.as_ref().view();
        let wanted = format!("step{step}.grad_per_sample_weights");
        if self.tensors.tensor(&wanted).is_ok() {
            let mut out = vec![f32::NAN; batch.as_ref().values.len()];
            cpu.weight_gradients(tables, map, view, pooled, &mut out).expect("gradients");
            near(&wanted, &out, &self.floats(&wanted));
        }
        let specs = Cpu::specs(tables).to_vec();
        let lr = self.option("learning_rate").or(self.option("lr")).expect("a learning rate");
        let rules: Vec<_> =
            specs.iter().map(|spec| spec.optimizer.rule(lr, step as u64 + 1)).collect();
        let gradients = Gradients { pooled, sequences: &[] };
        cpu.scatter_update(tables, map, view, &gradients, &rules, step as u64).expect("update");
        for (t, spec) in specs.iter().enumerate() {
            let mut weights = vec![0.0; spec.rows as usize * spec.dim];
            let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
            cpu.read_rows(tables, t, 0, &mut weights, &mut state).expect("rows");
            let expected = self.floats(&format!("step{step}.table{t}.weight"));
            near(&format!("step {step} table {t}"), &weights, &expected);
            for (slot, values) in spec.optimizer.slots().iter().zip(&state) {
                let name = format!("step{step}.table{t}.{}", slot.name);
                near(&name, values, &self.floats(&name));
            }
        }
    }

    fn specs(&self) -> Vec<TableSpec> {
        let rows = self.numbers("rows");
        let dims = self.numbers(if self.about.contains_key("dims") { "dims" } else { "dim" });
        let tables = rows.iter().zip(&dims).enumerate();
        tables
            .map(|(t, (&rows, &dim))| {
                TableSpec::new(format!("t{t}"), rows as u64, dim, self.optimizer())
            })
            .collect()
    }

    fn optimizer(&self) -> Optimizer {
        let kind = match self.about.get("optimizer").map(String::as_str) {
            Some("exact_sgd") => RuleKind::Sgd,
            Some("exact_adagrad") => RuleKind::AdaGrad,
            Some("exact_row_wise_adagrad") => RuleKind::RowWiseAdaGrad,
            None if self.about["source"].contains("SparseAdam") => RuleKind::Adam,
            other => panic!("unknown optimizer {other:?}"),
        };
        let config = OptimizerConfig {
            eps: self.option("eps"),
            beta1: self.option("beta1"),
            beta2: self.option("beta2"),
            ..OptimizerConfig::new(kind)
        };
        config.build().expect("options of the file")
    }

    fn load(&self, cpu: &mut Cpu, tables: &mut CpuTables, specs: &[TableSpec]) {
        for (t, spec) in specs.iter().enumerate() {
            let weights = self.floats(&format!("init.table{t}.weight"));
            let state: Vec<Vec<f32>> = spec
                .optimizer
                .slots()
                .iter()
                .map(|slot| match slot.extent {
                    emb_optim::Extent::Row => vec![0.0; spec.rows as usize],
                    emb_optim::Extent::Element => vec![0.0; weights.len()],
                })
                .collect();
            cpu.write_rows(tables, t, 0, &weights, &state).expect("rows");
        }
    }

    fn batch(&self, step: usize, names: &[String]) -> Jagged {
        let lengths = self.integers(&format!("step{step}.lengths"));
        let values = self.integers(&format!("step{step}.values"));
        let weights = format!("step{step}.per_sample_weights");
        let weights = self.tensors.tensor(&weights).is_ok().then(|| self.floats(&weights));
        Jagged::from_lengths(names, self.number("batch"), &lengths, values, weights).expect("batch")
    }

    /// A number of the JSON object `hyper`.
    fn option(&self, name: &str) -> Option<f64> {
        let after = self.about["hyper"].split_once(&format!("\"{name}\": "))?.1;
        after.split([',', '}']).next()?.trim().parse().ok()
    }

    fn number(&self, name: &str) -> usize {
        self.numbers(name)[0]
    }

    /// A number or a list of numbers of the metadata.
    fn numbers(&self, name: &str) -> Vec<usize> {
        let text = self.about[name].trim_matches(['[', ']']);
        text.split(',').map(|n| n.trim().parse().expect("a number")).collect()
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        let tensor = self.tensors.tensor(name).expect("a tensor of this name");
        let (chunks, _) = tensor.data().as_chunks::<4>();
        chunks.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    }

    fn integers(&self, name: &str) -> Vec<i64> {
        let tensor = self.tensors.tensor(name).expect("a tensor of this name");
        let (chunks, _) = tensor.data().as_chunks::<8>();
        chunks.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect()
    }
}

#[track_caller]
fn near(what: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (k, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= TOLERANCE * e.abs().max(1.0), "{what}, element {k}: {g} not {e}");
    }
}
