//! A whole run from a configuration: [`train`].

use super::evaluate::evaluate;
use super::observer::{Event, Observer};
use super::trainer::{Rates, Samples, Trainer};
use crate::checkpoint::{self, Manifest, Position};
use crate::config::{Config, DENSE_COLUMNS, Length, Origin};
use crate::data::{Batch, Feed, Source};
use crate::metrics::EvalReport;
use crate::model::Dlrm;
use crate::sources;
use crate::{EmbeddingBags, Error, Result};
use emb_kernels::{Backend, Cpu, CpuOptions};
use serde::Serialize;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

/// Samples computed at a time in evaluation; results do not depend on it.
const EVAL_BATCH: usize = 2048;
/// Steps whose mean loss a report gives.
const LOSS_STEPS: usize = 100;

/// What a run did.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Steps of the whole training, earlier runs that were loaded included.
    pub steps: u64,
    /// Steps of earlier runs that were loaded.
    pub loaded_steps: u64,
    /// Samples of the whole training.
    pub samples: u64,
    /// Mean training loss of the last 100 steps, in nats; `None` when nothing was trained.
    pub loss: Option<f64>,
    /// Training samples of this run over the seconds spent training them.
    pub samples_per_second: f64,
    /// Seconds of training, evaluation apart.
    pub seconds: f64,
    /// Lines left out under the policy `skip`, in training.
    pub skipped_rows: u64,
    /// Lines left out under the policy `skip`, in the last evaluation.
    pub skipped_eval_rows: u64,
    /// Metrics on the evaluation data, or `None` without any.
    pub eval: Option<EvalReport>,
    /// On synthetic data: AUC of the teacher that made the labels, on the same evaluation rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teacher_auc: Option<f64>,
    /// On synthetic data: normalized entropy of the teacher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teacher_normalized_entropy: Option<f64>,
}

/// Builds the model of a configuration on a backend, untrained.
///
/// # Errors
/// Memory that can't be had; tables or shapes that can't be.
pub fn build<B: Backend>(mut backend: B, config: &Config) -> Result<Trainer<B>> {
    let specs: Vec<_> = config.tables.tables.iter().map(|table| table.spec.clone()).collect();
    let lrs = config.tables.tables.iter().map(|table| table.lr).collect();
    let first_column = config.shape.bottom.last().copied().unwrap_or(0);
    let features = config.tables.features();
    let embeddings =
        EmbeddingBags::new(&mut backend, &specs, features, lrs, first_column, config.seed)?;
    let optimizers = &config.optimizers;
    let model = Dlrm::new(&mut backend, &config.shape, embeddings, &optimizers.dense, config.seed)?;
    let rates = Rates { tables: optimizers.lr, dense: optimizers.dense_lr };
    let schedule = optimizers.schedule.clone();
    Trainer::new(backend, model, DENSE_COLUMNS, optimizers.dense, rates, schedule)
}

/// Trains as configured: loads, trains, evaluates, saves.
///
/// All data files are opened and the folder to save to is tried before anything is trained; the
/// checkpoint is written when training went well, before the last evaluation.
///
/// # Errors
/// Whatever is refused by name: data, ids, a loss that is not finite, a checkpoint that does not
/// fit, a disk that fails.
pub fn train(config: &Config, observer: &mut dyn Observer) -> Result<Report> {
    if let Some(dir) = &config.save {
        checkpoint::prepare(dir, &config.options)?;
    }
    let data = sources::training(config)?;
    let mut eval = sources::evaluation(config)?;
    let backend = Cpu::new(CpuOptions { threads: config.threads })?;
    let mut trainer = build(backend, config)?;
    let mut row = 0;
    if let Some(dir) = &config.load {
        let slots = trainer.dense_slots();
        let report = checkpoint::load(dir, &mut trainer.backend, &mut trainer.model, &slots)?;
        trainer.resume(report.position.step, report.position.samples);
        row = first_row(dir, config, report.position)?;
    }
    let (losses, begun) = (VecDeque::new(), trainer.step());
    let mut run = Run { trainer, config, observer, losses, seconds: 0.0, samples: 0, row, begun };
    let skipped_rows = run.train(data, eval.as_deref_mut())?;
    if let Some(dir) = &config.save {
        run.save(dir)?;
    }
    let mut last = None;
    if let Some(source) = eval.as_deref_mut() {
        last = Some(run.evaluate(source)?);
    }
    let teacher = match config.data {
        Origin::Synthetic => Some(sources::teacher(config)?),
        Origin::Files(_) => None,
    };
    let skipped_eval_rows = eval.map_or(0, |source| source.skipped().total());
    Ok(run.report(skipped_rows, skipped_eval_rows, last, teacher))
}

/// Where a run that goes on from a checkpoint reads first: generated data and the very files of
/// the earlier run go on where it stopped, other files begin at their first row.
fn first_row(dir: &Path, config: &Config, at: Position) -> Result<u64> {
    Ok(match config.data {
        Origin::Synthetic => at.samples,
        Origin::Files(_) if Manifest::read(dir)?.options.data == config.options.data => at.row,
        Origin::Files(_) => 0,
    })
}

struct Run<'a, B: Backend> {
    trainer: Trainer<B>,
    config: &'a Config,
    observer: &'a mut dyn Observer,
    /// `(loss sum, samples)` of the last steps.
    losses: VecDeque<(f64, usize)>,
    seconds: f64,
    samples: u64,
    /// Rows read of the epoch that is going on.
    row: u64,
    /// Steps done before this run.
    begun: u64,
}

impl<B: Backend> Run<'_, B> {
    /// Trains to the configured length; returns the lines that were skipped.
    fn train(
        &mut self,
        data: Box<dyn Source>,
        mut eval: Option<&mut (dyn Source + 'static)>,
    ) -> Result<u64> {
        let begun = self.trainer.step();
        let (last_step, last_epoch) = match self.config.length {
            Length::Steps(steps) => (begun.saturating_add(steps), u64::MAX),
            Length::Epochs(epochs) => (u64::MAX, epochs),
        };
        self.observer.event(Event::Start {
            steps: (last_step != u64::MAX).then_some(last_step),
            rates: self.trainer.rates(begun + 1),
        });
        let limit = self.config.batch_size;
        let mut data = Feed::start(data, limit, 1)?.remove(0);
        data.restart_at(self.row)?;
        let (mut epoch, mut rows_of_epoch, mut skipped) = (0, self.row, 0);
        let mut since = Instant::now();
        while self.trainer.step() < last_step {
            let Some(share) = data.next()? else {
                epoch += 1;
                skipped += data.skipped().total();
                self.row = 0;
                if rows_of_epoch == 0 || epoch >= last_epoch {
                    return self.finish(begun, since, skipped);
                }
                rows_of_epoch = 0;
                data.restart_at(0)?;
                continue;
            };
            let read = share.rows;
            self.row += read as u64;
            if read < limit && self.config.drop_last {
                continue;
            }
            rows_of_epoch += read as u64;
            self.step(share.batch)?;
            let due = self.config.eval_every.is_some_and(|every| {
                self.trainer.step().is_multiple_of(every) && self.trainer.step() < last_step
            });
            if let (true, Some(source)) = (due, eval.as_deref_mut()) {
                self.seconds += since.elapsed().as_secs_f64();
                self.evaluate(source)?;
                since = Instant::now();
            }
        }
        skipped += data.skipped().total();
        self.finish(begun, since, skipped)
    }

    /// Closes the books of a training; one without a single step is an error.
    fn finish(&mut self, begun: u64, since: Instant, skipped: u64) -> Result<u64> {
        self.seconds += since.elapsed().as_secs_f64();
        if self.trainer.step() > begun {
            return Ok(skipped);
        }
        Err(Error::Config(format!(
            "nothing was trained: the data has no whole batch of {} rows{}",
            self.config.batch_size,
            if self.config.drop_last { ", and --drop-last leaves the rest out" } else { "" }
        )))
    }

    fn step(&mut self, batch: &Batch) -> Result<()> {
        let samples =
            Samples { dense: &batch.dense, labels: &batch.labels, sparse: batch.sparse.as_ref() };
        let loss = self.trainer.train_step(samples)?;
        self.samples += loss.rows as u64;
        if self.losses.len() == LOSS_STEPS {
            self.losses.pop_front();
        }
        self.losses.push_back((loss.sum, loss.rows));
        self.observer.event(Event::Step {
            step: self.trainer.step(),
            samples: self.trainer.samples(),
            loss_sum: loss.sum,
            rows: loss.rows,
            positives: batch.labels.iter().map(|&label| f64::from(label)).sum(),
            rates: self.trainer.rates(self.trainer.step()),
        });
        Ok(())
    }

    fn evaluate(&mut self, source: &mut dyn Source) -> Result<EvalReport> {
        let soft = self.config.soft_labels;
        let report = evaluate(&mut self.trainer, source, EVAL_BATCH, soft)?;
        self.observer.event(Event::Evaluated { step: self.trainer.step(), report: &report });
        Ok(report)
    }

    fn save(&mut self, dir: &Path) -> Result<()> {
        let slots = self.trainer.dense_slots();
        let (step, samples) = (self.trainer.step(), self.trainer.samples());
        let at = Position { step, samples, row: self.row };
        let Trainer { backend, model, .. } = &mut self.trainer;
        checkpoint::save(dir, backend, model, &slots, &self.config.options, at)?;
        Ok(())
    }

    fn report(
        &self,
        skipped_rows: u64,
        skipped_eval_rows: u64,
        eval: Option<EvalReport>,
        teacher: Option<EvalReport>,
    ) -> Report {
        let (sum, rows) = self
            .losses
            .iter()
            .fold((0.0, 0), |(sum, rows), (loss, samples)| (sum + loss, rows + samples));
        Report {
            steps: self.trainer.step(),
            loaded_steps: self.begun,
            samples: self.trainer.samples(),
            loss: (rows > 0).then(|| sum / rows as f64),
            samples_per_second: self.samples as f64 / self.seconds.max(1e-9),
            seconds: self.seconds,
            skipped_rows,
            skipped_eval_rows,
            eval,
            teacher_auc: teacher.and_then(|teacher| teacher.auc),
            teacher_normalized_entropy: teacher.and_then(|teacher| teacher.normalized_entropy),
        }
    }
}
