//! One training step: [`Trainer`].

use crate::model::{DeviceBatch, Dlrm};
use crate::{Error, Result};
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

/// Loss of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLoss {
    /// Sum over the batch.
    pub sum: f64,
    /// Samples.
    pub rows: usize,
}

/// A model in training on one backend.
#[derive(Debug)]
pub struct Trainer<B: Backend> {
    /// The device.
    pub backend: B,
    /// The model.
    pub model: Dlrm<B>,
    batch: DeviceBatch<B>,
    dense_optimizer: DenseOptimizer,
    schedule: Schedule,
    rates: Rates,
    step: u64,
    samples: u64,
}

impl<B: Backend> Trainer<B> {
    /// Puts a model in training from step 0. The schedule is a factor of every learning rate.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(
        mut backend: B,
        model: Dlrm<B>,
        dense_columns: usize,
        dense_optimizer: DenseOptimizer,
        rates: Rates,
        schedule: Schedule,
    ) -> Result<Self> {
        let batch = DeviceBatch::new(&mut backend, dense_columns)?;
        Ok(Self { backend, model, batch, dense_optimizer, schedule, rates, step: 0, samples: 0 })
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

    /// Learning rates of step `step`, from 1.
    pub fn rates(&self, step: u64) -> Rates {
        let factor = self.schedule.lr(step);
        Rates { tables: self.rates.tables * factor, dense: self.rates.dense * factor }
    }

    /// Trains on one batch: the loss is the mean over its samples. An empty batch does nothing.
    ///
    /// # Errors
    /// An id outside its table, by name; a loss that is not finite ([`Error::NonFinite`]). In
    /// both cases nothing of the step has been applied.
    pub fn train_step(&mut self, samples: Samples<'_>) -> Result<StepLoss> {
        let rows = samples.sparse.batch;
        if rows == 0 {
            return Ok(StepLoss { sum: 0.0, rows: 0 });
        }
        let step = self.step + 1;
        let factor = self.schedule.lr(step);
        let rule = self.dense_optimizer.rule(self.rates.dense * factor, step);
        let Self { backend, model, batch, .. } = self;
        let sum = backend.within(|backend| {
            batch.upload(backend, samples.dense, samples.labels, samples.sparse)?;
            model.forward(backend, batch)?;
            let sum = model.loss(backend, batch, 1.0 / rows as f32)?;
            if sum.is_finite() {
                model.backward(backend, batch)?;
                model.update_tables(backend, batch, factor, step)?;
                model.dense.update(backend, &rule)?;
            }
            Ok::<_, Error>(sum)
        })?;
        if !sum.is_finite() {
            return Err(self.non_finite(step, sum / rows as f64));
        }
        self.step = step;
        self.samples += rows as u64;
        Ok(StepLoss { sum, rows })
    }

    /// Computes logits of one batch, `[rows]`, without training.
    ///
    /// # Errors
    /// An id outside its table, by name.
    pub fn logits(&mut self, samples: Samples<'_>, logits: &mut Vec<f32>) -> Result<()> {
        let rows = samples.sparse.batch;
        logits.resize(rows, 0.0);
        if rows == 0 {
            return Ok(());
        }
        let Self { backend, model, batch, .. } = self;
        backend.within(|backend| {
            batch.upload(backend, samples.dense, samples.labels, samples.sparse)?;
            model.forward(backend, batch)?;
            Ok(backend.download(model.logits(rows), logits)?)
        })
    }

    /// Names the first tensor of the forward pass that is not finite.
    fn non_finite(&mut self, step: u64, loss: f64) -> Error {
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
