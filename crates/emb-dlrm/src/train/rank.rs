//! What every rank of a run does: [`Rank`].

use super::begin::Begin;
use super::evaluate::evaluate;
use super::health::{Health, Watch};
use super::observer::{Event, Observer};
use super::report::{Exchange, Report};
use super::trainer::{Samples, Trainer};
use crate::checkpoint::{self, Position};
use crate::config::Config;
use crate::data::{Feed, Share};
use crate::launch::Status;
use crate::metrics::EvalReport;
use crate::{Embeddings, Error, Result};
use emb_comm::{Collective, Lane, Meter, Trace};
use emb_kernels::Backend;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

/// Steps whose mean loss a report gives.
const LOSS_STEPS: usize = 100;

/// The data of one rank.
pub(super) struct Feeds {
    pub(super) train: Feed,
    pub(super) eval: Option<Feed>,
}

/// One rank in a run, or the only one. Ranks go through it in step; rank 0 reports and saves.
pub(super) struct Rank<'a, B: Backend, E, C> {
    trainer: Trainer<B, E, C>,
    config: &'a Config,
    /// Of rank 0 alone.
    observer: Option<&'a mut (dyn Observer + Send)>,
    trace: Trace,
    /// `(loss sum, samples)` of the last steps.
    losses: VecDeque<(f64, usize)>,
    seconds: f64,
    samples: u64,
    begin: Begin,
    /// Rows read of the epoch that is going on, and epochs before it.
    row: u64,
    epoch: u64,
    /// Steps done before this run.
    begun: u64,
    /// What the tables' collectives of the training steps cost, and in how many of them.
    exchanged: Meter,
    /// Looks at the ranks' health, and what rank 0 saw last.
    watch: Option<Watch<E>>,
    health: Option<Health>,
    /// The step of the last evaluation, and on rank 0 its result.
    evaluated: Option<(u64, Option<EvalReport>)>,
    /// The step of the last checkpoint.
    saved: Option<u64>,
    /// Where `emb launch` asks in which step this rank is.
    status: Option<Status>,
}

impl<'a, B: Backend, E: Embeddings<B>, C: Collective + 'static> Rank<'a, B, E, C> {
    /// Loads what the configuration says.
    pub(super) fn new(
        mut trainer: Trainer<B, E, C>,
        config: &'a Config,
        observer: Option<&'a mut (dyn Observer + Send)>,
        trace: Trace,
        watch: Option<Watch<E>>,
    ) -> Result<Self> {
        trainer.set_trace(trace.clone());
        let begin = Begin::load(&mut trainer, config)?;
        let (losses, begun) = (VecDeque::new(), trainer.step());
        let (seconds, samples) = (0.0, 0);
        Ok(Self {
            trainer,
            config,
            observer,
            trace,
            losses,
            seconds,
            samples,
            begin,
            row: begin.row,
            epoch: begin.epoch,
            begun,
            exchanged: Meter::default(),
            watch,
            health: None,
            evaluated: None,
            saved: None,
            status: Status::from_environment(),
        })
    }

    /// Trains, saves, evaluates. Other processes know why that failed before this one's ends of their
    /// sets are dropped, which would say only that it left.
    pub(super) fn run(mut self, feeds: Feeds) -> Result<Report> {
        let done = self.go(feeds);
        if let Err(error) = &done
            && self.trainer.reads().of_processes()
        {
            self.trainer.ranks().abort(&error.to_string());
        }
        done
    }

    fn go(&mut self, mut feeds: Feeds) -> Result<Report> {
        let skipped_rows = self.train(&mut feeds)?;
        self.sync()?;
        let last = match &mut feeds.eval {
            Some(data) => self.evaluate(data),
            None => Ok(None),
        };
        let kept = self.begin.resumed && self.trainer.step() == self.begun;
        if let Some(dir) = self.config.save.as_deref()
            && !kept
            && self.outlasts(&last)
        {
            self.save(dir)?;
        }
        let last = last?;
        let skipped_eval_rows = feeds.eval.map_or(0, |data| data.skipped().total());
        Ok(self.report(skipped_rows, skipped_eval_rows, last))
    }

    fn tell(&mut self, event: Event<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.event(event);
        }
    }

    /// Trains to the configured length; returns the lines that were skipped.
    fn train(&mut self, feeds: &mut Feeds) -> Result<u64> {
        let Begin { last_step, last_epoch, .. } = self.begin;
        let steps = (last_step != u64::MAX).then_some(last_step);
        let rates = self.trainer.rates(self.begun + 1);
        self.tell(Event::Start { steps, rates });
        let data = &mut feeds.train;
        if self.row > 0 {
            data.restart_at(self.row)?;
        }
        let (mut rows_of_epoch, mut skipped) = (self.row, 0);
        let mut since = Instant::now();
        while self.trainer.step() < last_step && self.epoch < last_epoch {
            let Some((share, after)) = self.trace.phase("data", || data.next_pair())? else {
                self.epoch += 1;
                skipped += data.skipped().total();
                self.row = 0;
                if rows_of_epoch == 0 || self.epoch >= last_epoch {
                    return self.finish(since, skipped);
                }
                rows_of_epoch = 0;
                // A rank that does not come is noticed here: reading anew waits for all.
                self.trainer.ranks().barrier()?;
                data.restart_at(0)?;
                continue;
            };
            self.row += share.rows as u64;
            if share.rows < self.config.batch_size && self.config.drop_last {
                continue;
            }
            rows_of_epoch += share.rows as u64;
            let step = self.trainer.step() + 1;
            let falls = |every: u64| step.is_multiple_of(every) && step < last_step;
            let evaluates = self.config.eval_every.is_some_and(falls);
            let saves = self.config.save_every.is_some_and(falls);
            // What is prepared is what is looked up next: no evaluation comes between.
            let goes_on = |after: &Share<'_>| {
                let whole = after.rows == self.config.batch_size || !self.config.drop_last;
                whole && !evaluates && !saves && step < last_step
            };
            self.step(&share, after.filter(goes_on))?;
            if evaluates || saves {
                self.seconds += since.elapsed().as_secs_f64();
                self.pause(feeds.eval.as_mut().filter(|_| evaluates), saves)?;
                since = Instant::now();
            }
        }
        skipped += data.skipped().total();
        self.finish(since, skipped)
    }

    /// Whether the model is to be saved after this evaluation. One whose scores are not numbers
    /// replaces no checkpoint; one whose evaluation data no rank can read is worth keeping. Of all
    /// else that fails on one rank others may not know yet, and saving is done together.
    fn outlasts(&mut self, evaluation: &Result<Option<EvalReport>>) -> bool {
        match evaluation {
            Ok(_) | Err(Error::Data(_)) => true,
            Err(Error::Metric(_)) => false,
            Err(_) => self.trainer.ranks().world() == 1,
        }
    }

    /// Closes the books of a training; one without a single step is an error.
    fn finish(&mut self, since: Instant, skipped: u64) -> Result<u64> {
        self.seconds += since.elapsed().as_secs_f64();
        if self.trainer.step() > self.begun || self.begin.resumed {
            return Ok(skipped);
        }
        Err(Error::Config(format!(
            "nothing was trained: the data has no whole batch of {} rows{}",
            self.config.batch_size,
            if self.config.drop_last { ", and --drop-last leaves the rest out" } else { "" }
        )))
    }

    fn step(&mut self, share: &Share<'_>, next: Option<Share<'_>>) -> Result<()> {
        if let Some(status) = &self.status {
            status.step(self.trainer.step() + 1);
        }
        let batch = share.batch;
        let samples =
            Samples { dense: &batch.dense, labels: &batch.labels, sparse: batch.sparse.as_ref() };
        let before = self.trainer.model.embeddings.exchanged();
        let loss = {
            let ahead = next.map_or(0, |next| next.rows);
            let rows = self.row + ahead as u64;
            self.trainer.reads().note(share.seen, rows, share.trouble);
            let next = next.map(|next| next.batch.sparse.as_ref());
            self.trainer.train_before(samples, share.rows, next)?
        };
        let after = self.trainer.model.embeddings.exchanged();
        self.exchanged = [self.exchanged, after - before].into_iter().sum();
        self.samples += loss.rows as u64;
        if self.losses.len() == LOSS_STEPS {
            self.losses.pop_front();
        }
        self.losses.push_back((loss.sum, loss.rows));
        let (step, samples) = (self.trainer.step(), self.trainer.samples());
        let rates = self.trainer.rates(step);
        self.tell(Event::Step {
            step,
            samples,
            loss_sum: loss.sum,
            rows: loss.rows,
            positives: loss.positives,
            rates,
        });
        let Some(watch) = &mut self.watch else { return Ok(()) };
        if let Some(health) = watch.after_step(&mut self.trainer, batch.sparse.as_ref())? {
            self.tell(Event::Health(&health));
            self.health = Some(health);
        }
        Ok(())
    }

    /// Between two steps: makes replicas equal, evaluates on `eval`, saves.
    fn pause(&mut self, eval: Option<&mut Feed>, saves: bool) -> Result<()> {
        if let Some(watch) = &mut self.watch {
            watch.pause(&mut self.trainer);
        }
        self.sync()?;
        if let Some(eval) = eval {
            self.evaluate(eval)?;
        }
        if let Some(dir) = self.config.save.as_deref().filter(|_| saves) {
            self.save(dir)?;
        }
        if let Some(watch) = &mut self.watch {
            watch.resume(&mut self.trainer);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.trace.phase("sync", || self.trainer.sync())?;
        if self.config.check_replicas {
            self.trace.phase("check replicas", || self.trainer.check_replicas())?;
        }
        Ok(())
    }

    fn evaluate(&mut self, data: &mut Feed) -> Result<Option<EvalReport>> {
        let step = self.trainer.step();
        if let Some((done, report)) = self.evaluated
            && done == step
        {
            return Ok(report);
        }
        let soft = self.config.soft_labels;
        let report = self.trace.phase("evaluate", || evaluate(&mut self.trainer, data, soft))?;
        if let Some(report) = &report {
            self.tell(Event::Evaluated { step, report });
        }
        self.evaluated = Some((step, report));
        Ok(report)
    }

    /// Saves on rank 0, to which the others lend their rows.
    fn save(&mut self, dir: &Path) -> Result<()> {
        let (begun, start) = (Instant::now(), self.trace.now());
        let slots = self.trainer.dense_slots();
        let (step, samples) = (self.trainer.step(), self.trainer.samples());
        let at = Position { step, samples, row: self.row, epoch: self.epoch };
        let first = self.trainer.ranks().rank() == 0;
        if self.saved == Some(step) && self.lies_there(dir, at)? {
            return Ok(());
        }
        let Trainer { backend, model, .. } = &mut self.trainer;
        if first {
            let options = &self.config.options;
            let bytes = checkpoint::save(dir, backend, model, &slots, options, at)?.bytes;
            let (memory, seconds) = (checkpoint::buffers(model), begun.elapsed().as_secs_f64());
            self.tell(Event::Saved { step, bytes, memory, seconds });
        } else {
            checkpoint::lend(backend, model, &slots)?;
        }
        self.saved = Some(step);
        // A rank that fails right after it lent its rows leaves the checkpoint whole.
        self.trainer.ranks().barrier()?;
        self.trace.add(Lane::Phases, "save", start, Meter::default());
        Ok(())
    }

    /// Whether the weights that this rank would save lie there already; then only where in the data they
    /// are is said anew, which has another name at the end of the data.
    fn lies_there(&mut self, dir: &Path, at: Position) -> Result<bool> {
        let ranks = self.trainer.ranks();
        let mut lies = [0_u32];
        if ranks.rank() == 0 {
            lies[0] = u32::from(checkpoint::reposition(dir, at)?);
        }
        ranks.broadcast(&mut lies, 0)?;
        Ok(lies[0] == 1)
    }

    fn report(
        &mut self,
        skipped_rows: u64,
        skipped_eval_rows: u64,
        eval: Option<EvalReport>,
    ) -> Report {
        let (sum, rows) = self
            .losses
            .iter()
            .fold((0.0, 0), |(sum, rows), (loss, samples)| (sum + loss, rows + samples));
        let device = &self.config.device;
        Report {
            device: device.kind,
            device_name: self.trainer.backend.name(),
            transport: self.config.ranks.as_ref().map(|_| device.transport),
            steps: self.trainer.step(),
            loaded_steps: self.begun,
            samples: self.trainer.samples(),
            loss: (rows > 0).then(|| sum / rows as f64),
            samples_per_second: self.samples as f64 / self.seconds.max(1e-9),
            seconds: self.seconds,
            skipped_rows,
            skipped_eval_rows,
            eval,
            teacher_auc: None,
            teacher_normalized_entropy: None,
            exchange: self.exchange(),
            health: self.health.take(),
        }
    }

    fn exchange(&mut self) -> Option<Exchange> {
        let world = self.trainer.ranks().world();
        let meter = self.exchanged;
        let steps = (self.trainer.step() - self.begun).max(1) as f64;
        (world > 1).then(|| Exchange {
            world,
            collectives_per_step: meter.calls as f64 / steps,
            intra_node_bytes_per_step: meter.intra_node_bytes as f64 / steps,
            inter_node_bytes_per_step: meter.inter_node_bytes as f64 / steps,
            seconds: meter.seconds(),
        })
    }
}
