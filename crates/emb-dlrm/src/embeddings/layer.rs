//! What a model needs of its embedding tables, wherever they live: [`Embeddings`].

use super::EmbeddingBags;
use crate::{DeviceBatch, Result};
use emb_comm::{Meter, Trace};
use emb_kernels::{Backend, FeatureMap, JaggedRef, Mat, TableSpec};

/// The embedding layer of a model: tables on this backend ([`EmbeddingBags`]), or over many ranks
/// ([`ShardedBags`](crate::sharded::ShardedBags)), where every rank calls the same methods in the
/// same order.
pub trait Embeddings<B: Backend>: Send {
    /// The features and their columns.
    fn map(&self) -> &FeatureMap;

    /// The whole tables, in order.
    fn specs(&self) -> &[TableSpec];

    /// Begins with the ids of the batch that the next [`forward`](Self::forward) will be for: ranks
    /// send them to their owners, beside what devices still do for the batch before. Ranks call it
    /// at the same place, or none does.
    ///
    /// # Errors
    /// An id outside its table, by name; a peer that fails.
    fn prepare(&mut self, _backend: &mut B, _ids: JaggedRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Pools every bag of every feature into `out`, `[batch, map().width()]`. The columns before the
    /// first feature are left as they are or set to 0.
    ///
    /// # Errors
    /// An id outside its table, by name; shapes that differ.
    fn forward(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        out: Mat<B::ViewMut<'_, f32>>,
    ) -> Result<()>;

    /// Updates all rows touched by the last [`forward`](Self::forward) from the gradient of its
    /// output, of the mean loss over the global batch. `factor` multiplies every table's base
    /// learning rate; `step` counts from 1.
    ///
    /// # Errors
    /// Shapes that differ; the device failed.
    fn backward(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        gradient: Mat<B::View<'_, f32>>,
        factor: f64,
        step: u64,
    ) -> Result<()>;

    /// What the collectives of the tables have cost this rank so far; nothing where there are none.
    fn exchanged(&self) -> Meter {
        Meter::default()
    }

    /// Records in `trace` from now on what the rank waits for beside its collectives.
    fn set_trace(&mut self, _trace: Trace) {}

    /// Makes replicas of tables equal, if there are any and they may differ.
    ///
    /// # Errors
    /// A peer that fails.
    fn sync(&mut self, backend: &mut B) -> Result<()>;

    /// Refuses replicas that differ, by table and row: after a [`sync`](Self::sync) they are equal bit
    /// by bit. Reads all rows.
    ///
    /// # Errors
    /// The first row that differs; a peer that fails.
    fn check_replicas(&mut self, _backend: &mut B) -> Result<()> {
        Ok(())
    }

    /// Reads rows `first..` of a table on rank 0: `weights` is `[rows, dim]`, each slot `[rows]` or
    /// `[rows, dim]`. On other ranks what is read is unspecified.
    ///
    /// # Errors
    /// Rows that don't exist; a peer that fails.
    fn read_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()>;

    /// Writes rows `first..` of a table, the same on every rank.
    ///
    /// # Errors
    /// Rows that don't exist, values of another shape.
    fn write_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()>;
}

impl<B: Backend> Embeddings<B> for EmbeddingBags<B> {
    fn map(&self) -> &FeatureMap {
        self.map()
    }

    fn specs(&self) -> &[TableSpec] {
        self.specs()
    }

    fn forward(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        out: Mat<B::ViewMut<'_, f32>>,
    ) -> Result<()> {
        self.forward(backend, batch.sparse(), out)
    }

    fn backward(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        gradient: Mat<B::View<'_, f32>>,
        factor: f64,
        step: u64,
    ) -> Result<()> {
        self.backward(backend, batch.sparse(), gradient, factor, step)
    }

    fn sync(&mut self, _backend: &mut B) -> Result<()> {
        Ok(())
    }

    fn read_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()> {
        Ok(backend.read_rows(self.tables_mut(), table, first, weights, state)?)
    }

    fn write_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()> {
        Ok(backend.write_rows(self.tables_mut(), table, first, weights, state)?)
    }
}
