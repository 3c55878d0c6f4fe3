//! Tables over ranks as the embedding layer of a model: [`ShardedBags`].

use super::ShardedEmbeddings;
use super::error::Error;
use super::exchange::Prepared;
use super::pool::Pooled;
use crate::embeddings::Embeddings;
use crate::{DeviceBatch, Result};
use emb_comm::{Collective, Meter, Trace};
use emb_kernels::{Backend, FeatureMap, JaggedRef, Mat, TableSpec};

/// [`ShardedEmbeddings`] behind the seam that a model trains through.
///
/// It keeps what the backward pass of a step needs from its forward pass.
#[derive(Debug)]
pub struct ShardedBags<B: Backend, C: Collective> {
    tables: ShardedEmbeddings<B, C>,
    /// Ids of the next batch, with their owners already.
    ahead: Option<Prepared<B>>,
    pooled: Option<Pooled<B>>,
    offsets: Vec<u64>,
    ids: Vec<i64>,
    weights: Vec<f32>,
    gradient: Vec<f32>,
}

impl<B: Backend, C: Collective> ShardedBags<B, C> {
    /// Puts tables behind the seam.
    pub fn new(tables: ShardedEmbeddings<B, C>) -> Self {
        let (offsets, ids, weights) = (Vec::new(), Vec::new(), Vec::new());
        Self { tables, ahead: None, pooled: None, offsets, ids, weights, gradient: Vec::new() }
    }

    /// The tables themselves.
    pub fn tables(&self) -> &ShardedEmbeddings<B, C> {
        &self.tables
    }

    /// The tables themselves.
    pub fn tables_mut(&mut self) -> &mut ShardedEmbeddings<B, C> {
        &mut self.tables
    }

    /// Sends the ids of a batch that is on this device to their owners.
    fn exchange(&mut self, backend: &mut B, batch: &DeviceBatch<B>) -> Result<Prepared<B>> {
        let ids = batch.sparse();
        self.offsets.resize(ids.names.len() * ids.batch + 1, 0);
        self.ids.resize(ids.len, 0);
        backend.download(ids.offsets, &mut self.offsets)?;
        backend.download(ids.values, &mut self.ids)?;
        let weights = match ids.weights {
            Some(weights) => {
                self.weights.resize(ids.len, 0.0);
                backend.download(weights, &mut self.weights)?;
                Some(&self.weights[..])
            }
            None => None,
        };
        let host = JaggedRef {
            names: ids.names,
            batch: ids.batch,
            offsets: &self.offsets,
            values: &self.ids,
            weights,
        };
        let exchanged = self.tables.route(host)?.exchange(&mut self.tables)?;
        Ok(exchanged.prepare(&mut self.tables, backend)?)
    }
}

impl<B: Backend, C: Collective> Embeddings<B> for ShardedBags<B, C> {
    fn map(&self) -> &FeatureMap {
        self.tables.map()
    }

    fn specs(&self) -> &[TableSpec] {
        self.tables.specs()
    }

    fn prepare(&mut self, backend: &mut B, ids: JaggedRef<'_>) -> Result<()> {
        if self.ahead.is_some() {
            return Err(Error::Mismatch("a batch was prepared and not looked up".to_owned()).into());
        }
        let exchanged = self.tables.route(ids)?.exchange(&mut self.tables)?;
        self.ahead = Some(exchanged.prepare(&mut self.tables, backend)?);
        Ok(())
    }

    fn forward(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        out: Mat<B::ViewMut<'_, f32>>,
    ) -> Result<()> {
        let prepared = match self.ahead.take() {
            Some(ahead) => same_batch(ahead, batch)?,
            None => self.exchange(backend, batch)?,
        };
        let pooled = prepared.pool(&mut self.tables, backend)?;
        backend.upload(pooled.output(), out.data)?;
        self.pooled = Some(pooled);
        Ok(())
    }

    fn backward(
        &mut self,
        backend: &mut B,
        _batch: &DeviceBatch<B>,
        gradient: Mat<B::View<'_, f32>>,
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let pooled = self.pooled.take().ok_or_else(|| {
            Error::Mismatch(format!("step {step}: a backward pass without its forward pass"))
        })?;
        self.gradient.resize(gradient.rows * gradient.cols, 0.0);
        backend.download(gradient.data, &mut self.gradient)?;
        Ok(pooled.backward(&mut self.tables, backend, &self.gradient, factor, step)?)
    }

    fn exchanged(&self) -> Meter {
        [self.tables.exchanged(), self.tables.synced()].into_iter().sum()
    }

    fn set_trace(&mut self, trace: Trace) {
        self.tables.set_trace(trace);
    }

    fn sync(&mut self, backend: &mut B) -> Result<()> {
        Ok(self.tables.sync(backend)?)
    }

    fn check_replicas(&mut self, backend: &mut B) -> Result<()> {
        Ok(self.tables.check_replicas(backend)?)
    }

    fn read_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()> {
        Ok(self.tables.read_rows(backend, table, first, weights, state)?)
    }

    fn write_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()> {
        Ok(self.tables.write_rows(backend, table, first, weights, state)?)
    }
}

/// What was prepared, if it is of this batch as far as can be seen.
fn same_batch<B: Backend>(ahead: Prepared<B>, batch: &DeviceBatch<B>) -> Result<Prepared<B>> {
    let (prepared, given) = (ahead.size(), (batch.rows(), batch.sparse().len));
    if prepared == given {
        return Ok(ahead);
    }
    Err(Error::Mismatch(format!(
        "a batch of {} samples and {} ids was prepared, one of {} and {} is looked up",
        prepared.0, prepared.1, given.0, given.1
    ))
    .into())
}
