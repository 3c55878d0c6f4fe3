//! Small data files, small models, and what a training leaves behind.

use emb_comm::{Collective, Local};
use emb_dlrm::checkpoint::{self, Manifest, Position};
use emb_dlrm::config::{
    Config, FeatureOptions, Length, ModelKind, Options, PoolingKind, Ranks, TableOptions,
};
use emb_dlrm::data::Feed;
use emb_dlrm::train::{Report, Samples, Silent, Trainer, build, build_rank, train};
use emb_dlrm::{Embeddings, Error, sources};
use emb_kernels::{Backend, Cpu, CpuOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// A fresh folder, removed at the end.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("emb-ranks-{}-{number}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Random numbers that are the same everywhere.
fn random(seed: u64, at: u64) -> u64 {
    let mut z = (seed ^ at.wrapping_mul(0xD134_2543_DE82_EF95)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Criteo rows whose label has to do with their first ids.
pub(crate) fn criteo(rows: usize, seed: u64) -> String {
    labelled(rows, seed, |_, chance| u8::from(chance).to_string())
}

/// Criteo rows with a label made from their number and the usual one.
pub(crate) fn labelled(rows: usize, seed: u64, label: impl Fn(usize, bool) -> String) -> String {
    let mut text = String::new();
    for row in 0..rows {
        let value = |column: u64| random(seed, row as u64 * 64 + column);
        let id = |column: u64| value(column) % 1000 * (value(column) >> 32) % 1000;
        let chance = id(20) % 3 + id(21) % 3 + value(60) % 3 > 3;
        text.push_str(&label(row, chance));
        for column in 0..13 {
            let _ = write!(text, "\t{}", value(column) % 40);
        }
        for column in 20..46 {
            let _ = write!(text, "\t{:x}", id(column));
        }
        text.push('\n');
    }
    text
}

pub(crate) fn table(name: &str, rows: u64, dim: usize) -> TableOptions {
    TableOptions {
        name: name.into(),
        rows: Some(rows),
        dim: Some(dim),
        weight_type: None,
        init: None,
        optimizer: None,
        lr: None,
        placement: None,
        replicas: None,
    }
}

pub(crate) fn feature(name: &str, table: &str, pooling: PoolingKind) -> FeatureOptions {
    FeatureOptions {
        name: name.into(),
        table: Some(table.into()),
        column: None,
        pooling: Some(pooling),
        weighted: None,
        bag: None,
    }
}

/// A small model over a data file: three tables, one of them of two features.
pub(crate) fn options(data: &Path, model: ModelKind) -> Options {
    let cross = model == ModelKind::DlrmDcn;
    let dims = if cross { [1, 10, 3] } else { [4; 3] };
    Options {
        data: vec![data.to_owned()],
        model: Some(model),
        dim: Some(4),
        bottom: Some(vec![6]),
        top: Some(vec![8]),
        dcn_layers: cross.then_some(2),
        dcn_rank: cross.then_some(3),
        table: vec![table("C1", 50, dims[0]), table("C2", 300, dims[1]), table("C3", 7, dims[2])],
        feature: vec![
            feature("C1", "C1", PoolingKind::Sum),
            feature("C2", "C2", PoolingKind::Sum),
            feature("C3", "C3", PoolingKind::Mean),
            feature("C5", "C2", PoolingKind::Mean),
        ],
        batch_size: Some(30),
        ..Options::default()
    }
}

/// A training as these options say, on one thread a rank.
pub(crate) fn run(mut options: Options) -> Result<Report, Error> {
    if options.world.is_some_and(|world| world > 1) {
        options.threads_per_rank = options.threads_per_rank.or(Some(1));
        options.timeout = options.timeout.or(Some(30.0));
    } else {
        options.threads = Some(1);
    }
    train(&Config::resolve(options)?, &mut Silent)
}

/// What a training leaves behind.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    pub(crate) tensors: BTreeMap<String, Vec<f32>>,
    /// The tensor file.
    pub(crate) bytes: Vec<u8>,
}

/// Trains and reads what was saved.
pub(crate) fn outcome(options: Options) -> Outcome {
    let folder = Folder::new();
    let dir = folder.path("saved");
    outcome_in(options, &dir)
}

/// Trains, saves to `dir`, reads what was saved.
pub(crate) fn outcome_in(mut options: Options, dir: &Path) -> Outcome {
    options.save = Some(dir.to_owned());
    let report = run(options).unwrap_or_else(|error| panic!("{error}"));
    saved(report, dir)
}

/// What a run that saved to `dir` left behind.
fn saved(report: Report, dir: &Path) -> Outcome {
    let file = Manifest::read(dir).expect("a checkpoint").path(dir);
    let bytes = std::fs::read(file).expect("tensors");
    let read = safetensors::SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let values = |view: &safetensors::tensor::TensorView<'_>| -> Vec<f32> {
        let pairs = view.data().as_chunks::<2>().0.iter();
        match view.dtype() {
            safetensors::Dtype::BF16 => {
                pairs.map(|&pair| half::bf16::from_le_bytes(pair).to_f32()).collect()
            }
            safetensors::Dtype::F16 => {
                pairs.map(|&pair| half::f16::from_le_bytes(pair).to_f32()).collect()
            }
            _ => {
                let chunks = view.data().as_chunks::<4>().0.iter();
                chunks.map(|&bytes| f32::from_le_bytes(bytes)).collect()
            }
        }
    };
    let tensors = read.tensors().into_iter().map(|(name, view)| (name, values(&view))).collect();
    Outcome { report, tensors, bytes }
}

/// [`outcome`] without an evaluation, of which synthetic data has a long one.
pub(crate) fn trained(options: Options) -> Outcome {
    trained_on(options, |threads| Cpu::new(CpuOptions { threads }))
}

/// [`trained`], every rank with `threads` threads on a backend of its own.
pub(crate) fn trained_on<B: Backend>(
    mut options: Options,
    backend: impl Fn(usize) -> Result<B, emb_kernels::Error> + Sync,
) -> Outcome {
    let folder = Folder::new();
    options.threads_per_rank = options.threads_per_rank.or(Some(1));
    let config = Config::resolve(options).expect("consistent");
    let world = config.ranks.as_ref().map_or(1, Ranks::world);
    let source = sources::training(&config).expect("a source");
    let feeds = Feed::start(source, config.batch_size, world).expect("feeds");
    let feeds: Vec<_> = feeds.into_iter().map(|feed| Mutex::new(Some(feed))).collect();
    let backend = || backend(config.threads);
    let feed = |rank: usize| feeds[rank].lock().expect("whole").take().expect("once");
    let dir = folder.path("saved");
    match &config.ranks {
        None => {
            let mut trainer = build(backend().expect("a backend"), &config).expect("a model");
            steps(&mut trainer, &config, feed(0), &dir).expect("steps");
        }
        Some(ranks) => {
            emb_comm::run(world, &emb_comm::Options::default(), |world: &mut Local| {
                let mut trainer = build_rank(world, backend()?, &config, ranks)?;
                steps(&mut trainer, &config, feed(world.rank()), &dir)
            })
            .unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
    let Length::Steps(steps) = config.length else { panic!("a length in steps") };
    let report = Report {
        device: config.device.kind,
        device_name: String::new(),
        transport: None,
        steps,
        loaded_steps: 0,
        samples: steps * config.batch_size as u64,
        loss: None,
        samples_per_second: 0.0,
        seconds: 0.0,
        skipped_rows: 0,
        skipped_eval_rows: 0,
        eval: None,
        teacher_auc: None,
        teacher_normalized_entropy: None,
        exchange: None,
        health: None,
    };
    saved(report, &dir)
}

/// The steps of a configuration on one rank, and a checkpoint.
fn steps<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
    trainer: &mut Trainer<B, E, C>,
    config: &Config,
    mut feed: Feed,
    dir: &Path,
) -> Result<(), Error> {
    let Length::Steps(steps) = config.length else { panic!("a length in steps") };
    for _ in 0..steps {
        let share = feed.next()?.expect("synthetic data has no end");
        let (batch, rows) = (share.batch, share.rows);
        let (dense, labels) = (&batch.dense[..], &batch.labels[..]);
        trainer.train_share(Samples { dense, labels, sparse: batch.sparse.as_ref() }, rows)?;
    }
    trainer.sync()?;
    let slots = trainer.dense_slots();
    let (first, samples) = (trainer.ranks().rank() == 0, trainer.samples());
    let (backend, model) = (&mut trainer.backend, &mut trainer.model);
    if !first {
        return checkpoint::lend(backend, model, &slots);
    }
    let at = Position { step: steps, samples, row: 0, epoch: 0 };
    checkpoint::save(dir, backend, model, &slots, &Options::default(), at)?;
    Ok(())
}

/// `|a - b| / |b|` in the Euclidean norm.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |x: f64| x * x;
    let apart: f64 = a.iter().zip(b).map(|(&a, &b)| square(f64::from(a) - f64::from(b))).sum();
    let norm: f64 = b.iter().map(|&b| square(f64::from(b))).sum();
    if apart == 0.0 { 0.0 } else { (apart / norm).sqrt() }
}

/// About what a step changes a weight by.
const STEP: f64 = 0.01;

/// Every tensor of two trainings within `limit`, norm-wise, and the metrics.
pub(crate) fn assert_near(got: &Outcome, expected: &Outcome, limit: f64, case: &str) {
    let names = |outcome: &Outcome| outcome.tensors.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(got), names(expected), "{case}");
    for (name, expected) in &expected.tensors {
        let got = &got.tensors[name];
        // The one value of the last bias may be about 0 by chance: its size is that of its steps.
        let apart = match expected[..] {
            [one] => f64::from(got[0] - one).abs() / f64::from(one).abs().max(STEP),
            _ => distance(got, expected),
        };
        assert!(apart <= limit, "{case}: {name}: {apart:e} apart");
    }
    assert_eq!(got.report.steps, expected.report.steps, "{case}");
    assert_eq!(got.report.samples, expected.report.samples, "{case}");
    let near =
        |what: &str, got: Option<f64>, expected: Option<f64>, limit: f64| match (got, expected) {
            (None, None) => {}
            (Some(got), Some(expected)) => {
                assert!((got - expected).abs() <= limit, "{case}: {what} {got}, not {expected}");
            }
            other => panic!("{case}: {what}: {other:?}"),
        };
    if got.report.loaded_steps == expected.report.loaded_steps {
        near("training loss", got.report.loss, expected.report.loss, 1e-5);
    }
    match (&got.report.eval, &expected.report.eval) {
        (None, None) => {}
        (Some(got), Some(expected)) => {
            let counts =
                |eval: &emb_dlrm::metrics::EvalReport| (eval.rows, eval.positives, eval.negatives);
            assert_eq!(counts(got), counts(expected), "{case}");
            near("loss", got.loss, expected.loss, 1e-5);
            near("NE", got.normalized_entropy, expected.normalized_entropy, 2e-5);
            // A rounding may swap a pair of rows.
            let pairs = (expected.positives * expected.negatives).max(1) as f64;
            near("AUC", got.auc, expected.auc, 1e-7 + 3.0 / pairs);
        }
        other => panic!("{case}: evaluation: {other:?}"),
    }
}
