//! A saved model, ready to score: [`Saved`].

use super::evaluate::{evaluate, probability};
use super::run::build;
use super::trainer::{Samples, Trainer};
use crate::checkpoint::{self, Manifest};
use crate::config::{BadRows, Config, DeviceKind, PrecisionKind};
use crate::data::{Batch, Feed, Labels};
use crate::device::{Machine, Peers, Work, with_machine};
use crate::metrics::EvalReport;
use crate::{Error, Result, sources};
use emb_kernels::Backend;
use std::path::{Path, PathBuf};

/// How a saved model reads and scores data.
#[derive(Clone, Debug)]
pub struct ScoreOptions {
    /// Criteo files or patterns.
    pub data: Vec<PathBuf>,
    /// Lines that can't be read.
    pub bad_rows: BadRows,
    /// Samples computed at a time; results do not depend on it.
    pub batch_size: usize,
    /// What computes; the processor where nothing is said.
    pub device: Option<DeviceKind>,
    /// What matrix products of a GPU multiply.
    pub precision: Option<PrecisionKind>,
    /// Threads, or `None` for all cores; results do not depend on it.
    pub threads: Option<usize>,
}

/// A model loaded from a checkpoint, with the data to score.
#[derive(Debug)]
pub struct Saved {
    model: Box<dyn Scorer>,
    config: Config,
    options: ScoreOptions,
}

impl Saved {
    /// Loads a checkpoint; its own configuration says what the model is.
    ///
    /// # Errors
    /// No complete checkpoint in `dir`; a file that is damaged.
    pub fn load(dir: &Path, options: ScoreOptions) -> Result<Self> {
        if options.data.iter().any(|path| path.as_os_str() == "synthetic") {
            return Err(Error::Config(
                "a saved model scores files; a file of that name is written ./synthetic".into(),
            ));
        }
        let mut saved = Manifest::read(dir)?.options;
        // Files have one id a column, of weight 1, whatever the model was trained on.
        for feature in &mut saved.feature {
            (feature.weighted, feature.bag) = (None, None);
        }
        saved.data.clone_from(&options.data);
        saved.eval.clear();
        saved.bad_rows = Some(options.bad_rows);
        saved = saved.alone();
        (saved.device, saved.precision) = (options.device, options.precision);
        saved.threads = options.threads;
        (saved.load, saved.save, saved.eval_every) = (None, None, None);
        (saved.save_every, saved.resume) = (None, None);
        let config = Config::resolve(saved)?;
        let model = with_machine(&config, Peers::default(), Loading { config: &config, dir })?;
        Ok(Self { model, config, options })
    }

    /// What computes.
    pub fn device(&self) -> DeviceKind {
        self.config.device.kind
    }

    /// Training steps behind the model.
    pub fn step(&self) -> u64 {
        self.model.step()
    }

    /// Evaluates the model on every row of the data; returns the lines skipped as well.
    ///
    /// # Errors
    /// Data that can't be read or has no labels, an id outside its table.
    pub fn evaluate(&mut self) -> Result<(EvalReport, u64)> {
        let source = sources::files(&self.config, &self.options.data, Labels::Required)?;
        let mut feeds = Feed::start(source, self.options.batch_size, 1)?;
        let data = &mut feeds[0];
        let report = self.model.evaluate(data, self.config.soft_labels)?;
        let skipped = data.skipped().total();
        let report = report.ok_or_else(|| Error::Config("rank 0 has no report".into()))?;
        Ok((report, skipped))
    }

    /// Calls `each` with the probability of every row, in order; rows need no label. Returns rows
    /// scored and lines skipped.
    ///
    /// # Errors
    /// Data that can't be read, an id outside its table, a score that is NaN (by row), what
    /// `each` returns.
    pub fn predict(&mut self, mut each: impl FnMut(f64) -> Result<()>) -> Result<(u64, u64)> {
        let mut source = sources::files(&self.config, &self.options.data, Labels::Optional)?;
        let mut batch = Batch::default();
        let mut logits = Vec::new();
        let mut rows = 0;
        while source.next(self.options.batch_size, &mut batch)? > 0 {
            let samples =
                Samples { dense: &batch.dense, labels: &[], sparse: batch.sparse.as_ref() };
            self.model.logits(samples, &mut logits)?;
            for &logit in &logits {
                if logit.is_nan() {
                    return Err(crate::metrics::Error::NanScore { row: rows }.into());
                }
                each(probability(logit))?;
                rows += 1;
            }
        }
        Ok((rows, source.skipped().total()))
    }
}

/// A model that scores, on whatever device.
trait Scorer: std::fmt::Debug {
    fn step(&self) -> u64;
    fn evaluate(&mut self, data: &mut Feed, soft_labels: bool) -> Result<Option<EvalReport>>;
    fn logits(&mut self, samples: Samples<'_>, logits: &mut Vec<f32>) -> Result<()>;
}

impl<B: Backend + std::fmt::Debug> Scorer for Trainer<B> {
    fn step(&self) -> u64 {
        self.step()
    }

    fn evaluate(&mut self, data: &mut Feed, soft_labels: bool) -> Result<Option<EvalReport>> {
        evaluate(self, data, soft_labels)
    }

    fn logits(&mut self, samples: Samples<'_>, logits: &mut Vec<f32>) -> Result<()> {
        self.logits(samples, logits)
    }
}

/// A checkpoint to be loaded.
struct Loading<'a> {
    config: &'a Config,
    dir: &'a Path,
}

impl Work for Loading<'_> {
    type Output = Box<dyn Scorer>;

    fn on<M: Machine>(self, machine: &M) -> Result<Box<dyn Scorer>> {
        let mut trainer = build(machine.backend()?, self.config)?;
        let slots = trainer.dense_slots();
        let report = checkpoint::load(self.dir, &mut trainer.backend, &mut trainer.model, &slots)?;
        trainer.resume(report.position.step, report.position.samples);
        Ok(Box::new(trainer))
    }
}
