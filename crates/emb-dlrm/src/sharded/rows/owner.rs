//! What an owner does: rows that it is asked for, gradients that it is brought.

use super::RowsWay;
use crate::sharded::error::Result;
use crate::sharded::staged::Staged;
use crate::sharded::trip::Arrived;
use emb_kernels::{Backend, Feature, FeatureMap, Gradients, Mat, Pooling, TableSpec};

/// A feature for each of the `askers` and each stored shard: its list of rows.
pub(super) fn map(local: &[TableSpec], askers: usize) -> Result<FeatureMap> {
    let features = (0..askers).flat_map(|asker| {
        local.iter().enumerate().map(move |(table, spec)| Feature {
            // Parts of one table may lie here together.
            name: format!("{} (part {table}, asked by {asker})", spec.name),
            table,
            pooling: Pooling::None,
        })
    });
    Ok(FeatureMap::new(features.collect(), local, 0)?)
}

impl<B: Backend> RowsWay<B> {
    /// Looks up all rows that are asked for into `served`: by asking rank, shard and list.
    pub(super) fn serve(
        &mut self,
        backend: &mut B,
        tables: &mut B::Tables,
        arrived: &Arrived,
        staged: &Staged<B>,
    ) -> Result<()> {
        let lists = self.map.features().len();
        let elements = |list: usize| arrived.ids_of(list).len() * self.map.dim(list);
        let total = (0..lists).map(elements).sum();
        self.served.resize(total, 0.0);
        if total == 0 {
            return Ok(());
        }
        let out = self.device.room(backend, total)?;
        backend.gather_all(tables, &self.map, staged.view(&self.names, arrived), out)?;
        Ok(backend.download(self.device.view(0..total), &mut self.served)?)
    }

    /// Hands the gradients that the last backward pass brought to `update`.
    pub(in crate::sharded) fn with_gradients<R>(
        &mut self,
        arrived: &Arrived,
        update: impl FnOnce(&FeatureMap, &[String], &Gradients<'_, '_, B>) -> R,
    ) -> R {
        let Self { map, names, device, sequences, .. } = self;
        let mut list = sequences.take();
        let mut start = 0;
        for feature in 0..map.features().len() {
            let (rows, dim) = (arrived.ids_of(feature).len(), map.dim(feature));
            let part = device.view(start..start + rows * dim);
            list.push((feature, Mat::new(part, rows, dim)));
            start += rows * dim;
        }
        let pooled = Mat::new(device.view(0..0), 1, 0);
        let result = update(map, names, &Gradients { pooled, sequences: &list });
        sequences.put(list);
        result
    }
}
