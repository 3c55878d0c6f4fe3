//! Runs on real click logs, what they leave behind, and how far apart two are.

use emb_dlrm::checkpoint::Manifest;
use emb_dlrm::config::{Config, DeviceKind, Options, TableOptions, TransportKind};
use emb_dlrm::train::{Report, Silent, train};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A fresh folder, removed at the end.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("emb-cuda-{}-{number}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of this text.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Whether there are as many devices; says so where there are not.
pub(crate) fn devices(wanted: usize) -> bool {
    match emb_cuda::Device::count() {
        Ok(count) if count >= wanted => true,
        Ok(count) => {
            eprintln!("skipped: {wanted} devices wanted, the driver has {count}");
            false
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// A part of the Criteo sample: `train`, `dev` or `test`; says so where it is not there.
pub(crate) fn criteo(part: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("EMB_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let file = folder.join(format!("criteo8k_{part}.tsv"));
    if file.exists() {
        return Some(file);
    }
    eprintln!("skipped: there is no {} (set EMB_DATA)", file.display());
    None
}

/// A table of the column of this name.
pub(crate) fn table(name: &str, rows: u64) -> TableOptions {
    TableOptions {
        name: name.into(),
        rows: Some(rows),
        dim: Some(4),
        weight_type: None,
        init: None,
        optimizer: None,
        lr: None,
        placement: None,
        replicas: None,
    }
}

/// A model over all columns of real click logs, as a run of its own would have it.
pub(crate) fn whole_model(data: &Path) -> Options {
    Options {
        data: vec![data.to_owned()],
        rows_per_table: Some(10_000),
        dim: Some(16),
        bottom: Some(vec![64]),
        top: Some(vec![64]),
        batch_size: Some(64),
        initial_accumulator: Some(0.1),
        ..Options::default()
    }
}

/// A small model over real click logs: every third sparse column.
pub(crate) fn options(data: &Path) -> Options {
    let column = |c: usize| table(&format!("C{c}"), 500);
    Options {
        data: vec![data.to_owned()],
        table: (1..=26).step_by(3).map(column).collect(),
        dim: Some(4),
        bottom: Some(vec![8]),
        top: Some(vec![8]),
        batch_size: Some(16),
        initial_accumulator: Some(0.1),
        ..Options::default()
    }
}

/// The same over ranks.
pub(crate) fn over(alone: &Options, world: u32, replicas: u32) -> Options {
    let plan = Some("row-wise".into());
    let (world, replicas) = (Some(world), Some(replicas));
    Options { world, replicas, plan, timeout: Some(300.0), ..alone.clone() }
}

/// The same on GPUs.
pub(crate) fn on_gpus(options: &Options, transport: Option<TransportKind>) -> Options {
    let (threads, threads_per_rank) = (None, None);
    let device = Some(DeviceKind::Cuda);
    Options { device, transport, threads, threads_per_rank, ..options.clone() }
}

/// The same on the processor, with a thread a rank.
pub(crate) fn on_the_processor(options: &Options) -> Options {
    let ranks = options.world.is_some();
    let (one, none) = (Some(1), None);
    let (threads, threads_per_rank) = if ranks { (none, one) } else { (one, none) };
    let (device, transport) = (None, None);
    Options { device, transport, threads, threads_per_rank, ..options.clone() }
}

/// What a training leaves behind.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    pub(crate) tensors: BTreeMap<String, Vec<f32>>,
    /// The tensor file.
    pub(crate) bytes: Vec<u8>,
}

/// Trains, saves to `dir`, reads what was saved.
pub(crate) fn outcome_in(options: &Options, dir: &Path) -> Outcome {
    let options = Options { save: Some(dir.to_owned()), ..options.clone() };
    let config = Config::resolve(options).unwrap_or_else(|error| panic!("{error}"));
    let report = train(&config, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
    let file = Manifest::read(dir).expect("a checkpoint").path(dir);
    let bytes = std::fs::read(file).expect("tensors");
    let read = safetensors::SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let values = |view: &safetensors::tensor::TensorView<'_>| {
        assert_eq!(view.dtype(), safetensors::Dtype::F32);
        let numbers = view.data().as_chunks::<4>().0.iter();
        numbers.map(|&bytes| f32::from_le_bytes(bytes)).collect()
    };
    let tensors = read.tensors().into_iter().map(|(name, view)| (name, values(&view))).collect();
    Outcome { report, tensors, bytes }
}

/// Trains and reads what was saved.
pub(crate) fn outcome(options: &Options) -> Outcome {
    let folder = Folder::new();
    outcome_in(options, &folder.path("saved"))
}

/// The tensor that is furthest apart, norm-wise: `|a - b| / |b|`. A tensor of one value may be about 0
/// by chance; its size is that of its steps.
pub(crate) fn furthest(got: &Outcome, expected: &Outcome) -> (f64, String) {
    let square = |x: f64| x * x;
    let names = |outcome: &Outcome| outcome.tensors.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(got), names(expected));
    let apart = |(name, expected): (&String, &Vec<f32>)| {
        let got = &got.tensors[name];
        assert_eq!(got.len(), expected.len(), "{name}");
        let pairs = got.iter().zip(expected);
        let apart: f64 = pairs.map(|(&a, &b)| square(f64::from(a) - f64::from(b))).sum();
        let norm: f64 = expected.iter().map(|&b| square(f64::from(b))).sum();
        let step = if expected.len() == 1 { 0.01 } else { f64::MIN_POSITIVE };
        (apart.sqrt() / norm.sqrt().max(step), name.clone())
    };
    let furthest = expected.tensors.iter().map(apart).max_by(|a, b| a.0.total_cmp(&b.0));
    furthest.expect("tensors")
}

/// Two trainings within `limit` in every tensor and metric.
pub(crate) fn assert_near(got: &Outcome, expected: &Outcome, limit: f64, case: &str) {
    let (apart, name) = furthest(got, expected);
    eprintln!("{case}: {apart:.1e} apart at most, {name}");
    assert!(apart <= limit, "{case}: {name}: {apart:e} apart");
    let (got, expected) = (&got.report, &expected.report);
    assert_eq!((got.steps, got.samples), (expected.steps, expected.samples), "{case}");
    let loss = |report: &Report| report.loss.expect("steps");
    assert!((loss(got) - loss(expected)).abs() <= limit, "{case}: training loss");
    let eval = |report: &Report| report.eval.and_then(|eval| eval.loss);
    let (got, expected) = (eval(got), eval(expected));
    assert_eq!(got.is_some(), expected.is_some(), "{case}");
    let apart = got.zip(expected).map_or(0.0, |(got, expected)| (got - expected).abs());
    assert!(apart <= limit, "{case}: loss of the evaluation is {apart:e} apart");
}
