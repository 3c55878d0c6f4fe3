//! One training step: [`Trainer`].

use super::compare::{self, Reads};
use super::reduce::DenseReducer;
use crate::model::{Dense, DeviceBatch, Dlrm};
use crate::sharded::Wires;
use crate::{EmbeddingBags, Embeddings, Error, Result};
use emb_comm::{Collective, Meter, Solo, Trace};
use emb_kernels::{Backend, JaggedRef};
use emb_optim::{DenseOptimizer, Schedule};

/// A host batch as slices: `dense` `[rows, columns]`, `labels` `[rows]`, jagged ids.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// Dense features, row-major.
    pub dense: &'a [f32],
    /// Labels; empty for prediction.
    pub labels: &'a [f32],
    /// Ids.
    pub sparse: JaggedRef<'a>,
}

/// Learning rates before the schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Of the embedding tables, for reports (each table keeps its own).
    pub tables: f64,
    /// Of the dense part.
    pub dense: f64,
}

/// Loss of one step, over the whole global batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLoss {
    /// Sum over the batch.
    pub sum: f64,
    /// Samples.
    pub rows: usize,
    /// Sum of the labels.
    pub positives: f64,
}

/// A model in training: alone, or as one rank of `C` with tables `E`.
///
/// Every rank has the whole dense part, whose gradients are summed over the ranks, and what `E`
/// gives it of the tables. Ranks call the same methods in the same order.
#[derive(Debug)]
pub struct Trainer<B: Backend, E = EmbeddingBags<B>, C = Solo> {
    /// The device.
    pub backend: B,
    /// The model.
    pub model: Dlrm<B, E>,
    ranks: C,
    /// `None` for one rank.
    reducer: Option<DenseReducer>,
    trace: Trace,
    batch: DeviceBatch<B>,
    /// What is known of the data, to be compared with the others.
    reads: Reads,
    /// Whether the ids of the next batch are at their owners.
    prepared: bool,
    dense_optimizer: DenseOptimizer,
    schedule: Schedule,
    rates: Rates,
    step: u64,
    samples: u64,
}

impl<B: Backend, E: Embeddings<B>, C: Collective + 'static> Trainer<B, E, C> {
    /// Puts a model in training from step 0, on every rank of `ranks` at the same time. The schedule
    /// is a factor of every learning rate.
    ///
    /// # Errors
    /// The device is out of memory; a peer that does not arrive.
    pub fn new(
        mut backend: B,
        model: Dlrm<B, E>,
        mut ranks: C,
        dense_columns: usize,
        dense_optimizer: DenseOptimizer,
        rates: Rates,
        schedule: Schedule,
    ) -> Result<Self> {
        let batch = DeviceBatch::new(&mut backend, dense_columns)?;
        let reducer = if ranks.world() > 1 { Some(DenseReducer::new(&mut ranks)?) } else { None };
        let (step, samples) = (0, 0);
        Ok(Self {
            backend,
            model,
            ranks,
            reducer,
            trace: Trace::default(),
            batch,
            reads: Reads::default(),
            prepared: false,
            dense_optimizer,
            schedule,
            rates,
            step,
            samples,
        })
    }

    /// How dense gradients travel from now on, unchanged at first; how those of the tables do is said
    /// to the tables. Every rank calls it with the same, before the same step.
    pub fn set_wires(&mut self, wires: Wires) {
        if let Some(reducer) = &mut self.reducer {
            reducer.set(wires.of_dense());
        }
    }

    /// Records the phases of every step from now on.
    pub fn set_trace(&mut self, trace: Trace) {
        self.model.embeddings.set_trace(trace.clone());
        self.trace = trace;
    }

    /// Where phases are recorded.
    #[cfg(feature = "data")]
    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Seconds that this rank's own thread has spent on sums of dense gradients after its backward
    /// pass: waiting for them, and putting them in place. What the backward pass hid is not
    /// counted, nor are bytes.
    pub fn dense_sums(&self) -> Meter {
        self.reducer.as_ref().map(DenseReducer::spent).unwrap_or_default()
    }

    /// The ranks that train together.
    pub fn ranks(&mut self) -> &mut C {
        &mut self.ranks
    }

    /// Steps done.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Samples trained on.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Names of the dense optimizer's slots.
    pub fn dense_slots(&self) -> Vec<&'static str> {
        self.dense_optimizer.optimizer().slots().iter().map(|slot| slot.name).collect()
    }

    /// Goes on after `step` steps and `samples` samples.
    pub fn resume(&mut self, step: u64, samples: u64) {
        self.step = step;
        self.samples = samples;
    }

    /// What is known of the data of the next step, for ranks that read it each for itself: the step
    /// refuses ranks that know otherwise. All ranks compare, or none does.
    #[cfg(feature = "data")]
    pub(super) fn reads(&mut self) -> &mut Reads {
        &mut self.reads
    }

    /// Refuses ranks that have read other data: as [`Reads::note`] has it, on every rank.
    ///
    /// # Errors
    /// The ranks that differ, or why this one can't read on; a peer that fails.
    #[cfg(feature = "data")]
    pub(super) fn compare_reads(
        &mut self,
        when: &str,
        seen: u64,
        rows: u64,
        trouble: Option<&crate::data::Error>,
    ) -> Result<()> {
        self.reads.note(seen, rows, trouble);
        self.reads.compare(&mut self.ranks, when)
    }

    /// Learning rates of step `step`, from 1.
    pub fn rates(&self, step: u64) -> Rates {
        let factor = self.schedule.lr(step);
        Rates { tables: self.rates.tables * factor, dense: self.rates.dense * factor }
    }

    /// Trains one rank on one batch: the loss is the mean over its samples. An empty batch does
    /// nothing. One of many ranks takes [`train_share`](Self::train_share).
    ///
    /// # Errors
    /// An id outside its table, by name; a loss that is not finite ([`Error::NonFinite`]). In
    /// both cases nothing of the step has been applied.
    pub fn train_step(&mut self, samples: Samples<'_>) -> Result<StepLoss> {
        self.train_share(samples, samples.sparse.batch)
    }

    /// Trains on this rank's samples, maybe none, of a global batch of `rows`: the loss is the mean
    /// over the global batch. Every rank calls it in the same step with the same `rows`.
    ///
    /// # Errors
    /// An id outside its table, by name; a loss that is not finite ([`Error::NonFinite`]); shares
    /// that aren't `rows` together. In all cases nothing of the step has been applied on any rank.
    /// A peer that fails.
    pub fn train_share(&mut self, samples: Samples<'_>, rows: usize) -> Result<StepLoss> {
        self.train_before(samples, rows, None)
    }

    /// [`train_share`](Self::train_share), beginning with `next` on the way: the ids of this rank's
    /// samples of the batch that is trained on next, and before anything else is computed. Their
    /// exchange goes on beside the backward pass of a device. All ranks give one, or none does.
    ///
    /// # Errors
    /// As there; an id of `next` outside its table is refused in this step already.
    pub fn train_before(
        &mut self,
        samples: Samples<'_>,
        rows: usize,
        next: Option<JaggedRef<'_>>,
    ) -> Result<StepLoss> {
        if rows == 0 {
            return Ok(StepLoss { sum: 0.0, rows: 0, positives: 0.0 });
        }
        let step = self.step + 1;
        self.ranks.set_step(step);
        let factor = self.schedule.lr(step);
        let rule = self.dense_optimizer.rule(self.rates.dense * factor, step);
        let Self { backend, model, batch, ranks, reducer, trace, prepared, reads, .. } = self;
        let positives = samples.labels.iter().map(|&label| f64::from(label)).sum();
        let (own, loss) = backend.within(|backend| {
            trace.phase("upload", || {
                batch.upload(backend, samples.dense, samples.labels, samples.sparse)
            })?;
            if !std::mem::take(prepared) {
                trace.phase("ids", || model.embeddings.prepare(backend, samples.sparse))?;
            }
            trace.phase("tables forward", || model.forward_tables(backend, batch))?;
            trace.phase("dense forward", || model.forward_dense(backend, batch))?;
            let own = model.loss(backend, batch, 1.0 / rows as f32)?;
            let loss = trace.phase("loss", || {
                total(ranks, StepLoss { sum: own, rows: batch.rows(), positives }, step, reads)
            })?;
            if !loss.sum.is_finite() || loss.rows != rows {
                return Ok::<_, Error>((own, loss));
            }
            let mut sum = |backend: &mut B, dense: &Dense<B>, part| match reducer {
                None => Ok(()),
                Some(reducer) => reducer.start(backend, dense, step, part),
            };
            trace.phase("dense backward", || model.backward_to_tables(backend, batch, &mut sum))?;
            if let Some(next) = next {
                trace.phase("next ids", || model.embeddings.prepare(backend, next))?;
                *prepared = true;
            }
            // As soon as it may: syncs of replicas go on beside all that follows.
            trace.phase("tables backward", || model.update_tables(backend, batch, factor, step))?;
            trace.phase("bottom backward", || model.backward_bottom(backend, batch, &mut sum))?;
            if let Some(reducer) = reducer {
                trace.phase("dense sums", || reducer.finish(backend, &mut model.dense))?;
            }
            trace.phase("dense update", || model.dense.update(backend, &rule))?;
            Ok((own, loss))
        })?;
        if loss.rows != rows {
            let (given, expected) = (loss.rows, rows);
            return Err(Error::Config(format!(
                "step {step}: the ranks have {given} samples of a global batch of {expected}"
            )));
        }
        if !loss.sum.is_finite() {
            return Err(self.non_finite(step, own, loss));
        }
        self.step = step;
        self.samples += rows as u64;
        Ok(loss)
    }

    /// Computes logits of one batch, `[rows]`, without training. Ranks compute theirs together, some
    /// maybe for no samples.
    ///
    /// # Errors
    /// An id outside its table, by name.
    pub fn logits(&mut self, samples: Samples<'_>, logits: &mut Vec<f32>) -> Result<()> {
        let rows = samples.sparse.batch;
        logits.resize(rows, 0.0);
        let Self { backend, model, batch, .. } = self;
        backend.within(|backend| {
            batch.upload(backend, samples.dense, samples.labels, samples.sparse)?;
            model.forward(backend, batch)?;
            Ok(backend.download(model.logits(rows), logits)?)
        })
    }

    /// Makes replicas of tables equal, where there are any: before evaluation, checkpoint and exit.
    ///
    /// # Errors
    /// A peer that fails.
    pub fn sync(&mut self) -> Result<()> {
        self.model.embeddings.sync(&mut self.backend)
    }

    /// Refuses replicas that differ after a [`sync`](Self::sync), by table and row. Reads all rows.
    ///
    /// # Errors
    /// The first row that differs; a peer that fails.
    pub fn check_replicas(&mut self) -> Result<()> {
        self.model.embeddings.check_replicas(&mut self.backend)
    }

    /// Names the first tensor of the forward pass that is not finite. Ranks whose own part is finite
    /// wait for the one that says so.
    fn non_finite(&mut self, step: u64, own: f64, total: StepLoss) -> Error {
        if own.is_finite()
            && let Err(error) = self.ranks.barrier()
        {
            return error.into();
        }
        let loss = total.sum / total.rows as f64;
        let tensor = self.first_non_finite().unwrap_or_else(|error| format!("unknown: {error}"));
        let rates = self.rates(step);
        Error::NonFinite { step, loss, lr: rates.tables, dense_lr: rates.dense, tensor }
    }

    fn first_non_finite(&mut self) -> Result<String> {
        let rows = self.batch.rows();
        let mut weights = vec![0.0; self.model.dense.total()];
        let flat = B::view(&self.model.dense.weights, 0..weights.len());
        self.backend.download(flat, &mut weights)?;
        for parameter in &self.model.dense.parameters {
            if weights[parameter.range.clone()].iter().any(|value| !value.is_finite()) {
                return Ok(format!("dense/{}", parameter.name));
            }
        }
        let vectors = self.model.vectors(rows);
        let width = vectors.cols;
        let mut x = vec![0.0; rows * width];
        self.backend.download(vectors.data, &mut x)?;
        let bad = |columns: std::ops::Range<usize>| {
            (0..rows).find(|row| {
                x[row * width + columns.start..row * width + columns.end]
                    .iter()
                    .any(|value| !value.is_finite())
            })
        };
        let map = self.model.embeddings.map();
        for (f, feature) in map.features().iter().enumerate() {
            let columns = map.column(f)..map.column(f) + map.dim(f);
            if let Some(sample) = bad(columns) {
                let table = &self.model.embeddings.specs()[feature.table].name;
                return Ok(format!("{table}/weight (feature {:?}, sample {sample})", feature.name));
            }
        }
        if let Some(sample) = bad(0..map.column(0)) {
            return Ok(format!("output of the bottom MLP (sample {sample})"));
        }
        let mut logits = vec![0.0; rows];
        self.backend.download(self.model.logits(rows), &mut logits)?;
        let sample = logits.iter().position(|value| !value.is_finite());
        Ok(sample.map_or("the loss".into(), |sample| format!("logit of sample {sample}")))
    }
}

/// The loss of all ranks together. Where they compare what they have read, they do it here, before
/// anything of the step is applied.
fn total<C: Collective>(
    ranks: &mut C,
    own: StepLoss,
    step: u64,
    reads: &Reads,
) -> Result<StepLoss> {
    if reads.seen == 0 {
        let mut sums = [own.sum, own.rows as f64, own.positives];
        ranks.all_reduce(&mut sums)?;
        return Ok(StepLoss { sum: sums[0], rows: sums[1] as usize, positives: sums[2] });
    }
    let mark = compare::mark(reads.seen);
    let mut sums = [own.sum, own.rows as f64, own.positives, mark, mark * mark];
    ranks.all_reduce(&mut sums)?;
    if !compare::are_equal(ranks.world(), sums[3], sums[4]) {
        return Err(reads.differ(ranks, &format!("step {step}"))?);
    }
    Ok(StepLoss { sum: sums[0], rows: sums[1] as usize, positives: sums[2] })
}
