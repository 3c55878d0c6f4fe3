//! The embedding layer: fused tables that several features may share, each with its optimizer.

mod layer;

pub use layer::Embeddings;

use crate::Result;
use emb_kernels::{Backend, Error, Feature, FeatureMap, Gradients, JaggedView, Mat, TableSpec};
use emb_optim::Rule;

/// A group of embedding tables with the features that look them up.
///
/// The forward pass pools all features in one call; the backward pass sorts, sums duplicates and
/// applies each table's rule in the same call: no gradient of a table is ever materialised.
///
/// ```
/// use emb_dlrm::{EmbeddingBags, DeviceBatch};
/// use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, Mat, Pooling, TableSpec, Backend};
/// use emb_optim::{Optimizer, RuleKind};
///
/// let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
/// let tables = vec![TableSpec::new("user", 10, 4, Optimizer::new(RuleKind::Sgd))];
/// let features =
///     vec![Feature { name: "user".into(), table: 0, pooling: Pooling::Sum }];
/// let mut bags = EmbeddingBags::new(&mut cpu, &tables, features, vec![0.1], 0, 7)?;
///
/// let ids = Jagged::from_lengths(&["user"], 2, &[2, 1], vec![3, 4, 9], None)?;
/// let mut batch = DeviceBatch::new(&mut cpu, 0)?;
/// batch.upload(&mut cpu, &[], &[0.0, 1.0], ids.as_ref())?;
/// let mut out = vec![0.0_f32; 2 * 4];
/// bags.forward(&mut cpu, batch.sparse(), Mat::new(&mut out[..], 2, 4))?;
/// let gradient = vec![1.0_f32; 2 * 4];
/// bags.backward(&mut cpu, batch.sparse(), Mat::new(&gradient[..], 2, 4), 1.0, 1)?;
/// # Ok::<(), emb_dlrm::Error>(())
/// ```
#[derive(Debug)]
pub struct EmbeddingBags<B: Backend> {
    tables: B::Tables,
    map: FeatureMap,
    /// Base learning rate of each table; the schedule's factor multiplies it.
    rates: Vec<f64>,
    /// Rules of the current step, kept to be refilled in place.
    rules: Vec<Rule>,
}

impl<B: Backend> EmbeddingBags<B> {
    /// Creates the tables; `rates` has the base learning rate of each, and `first_column` is
    /// where the pooled output begins in a row (see [`FeatureMap`]).
    ///
    /// # Errors
    /// Tables or features that cannot be (by name); `rates` of another count than tables.
    pub fn new(
        backend: &mut B,
        tables: &[TableSpec],
        features: Vec<Feature>,
        rates: Vec<f64>,
        first_column: usize,
        seed: u64,
    ) -> Result<Self> {
        if rates.len() != tables.len() {
            return Err(Error::Shape {
                operation: "embedding tables",
                what: "learning rates, one for each table",
                expected: tables.len(),
                got: rates.len(),
            }
            .into());
        }
        let map = FeatureMap::new(features, tables, first_column)?;
        let rules = Vec::with_capacity(tables.len());
        let tables = backend.create_tables(tables, seed)?;
        Ok(Self { tables, map, rates, rules })
    }

    /// The features and their columns.
    pub fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// What the tables were made from, in order.
    pub fn specs(&self) -> &[TableSpec] {
        B::specs(&self.tables)
    }

    /// The tables themselves, for checkpoints.
    pub fn tables_mut(&mut self) -> &mut B::Tables {
        &mut self.tables
    }

    /// Pools every bag of every feature into `out`, `[batch, map.width()]`.
    ///
    /// # Errors
    /// An id outside its table, by name; shapes that differ. Nothing has been written then.
    pub fn forward(
        &mut self,
        backend: &mut B,
        batch: JaggedView<'_, B>,
        out: Mat<B::ViewMut<'_, f32>>,
    ) -> Result<()> {
        Ok(backend.pool(&mut self.tables, &self.map, batch, out)?)
    }

    /// Updates all touched rows from the gradient of the pooled output, `[batch, map.width()]`.
    ///
    /// `factor` multiplies every table's base learning rate (the schedule); `step` counts from 1.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward(
        &mut self,
        backend: &mut B,
        batch: JaggedView<'_, B>,
        gradient: Mat<B::View<'_, f32>>,
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let specs = B::specs(&self.tables);
        self.rules.clear();
        self.rules.extend(
            specs
                .iter()
                .zip(&self.rates)
                .map(|(spec, rate)| spec.optimizer.rule(rate * factor, step)),
        );
        let gradients = Gradients { pooled: gradient, sequences: &[] };
        backend.scatter_update(
            &mut self.tables,
            &self.map,
            batch,
            &gradients,
            &self.rules,
            step,
        )?;
        Ok(())
    }
}
