//! Steps of one case over tables that stay, in memory of any backend of the kind.

use crate::bits;
use emb_kernels::conformance::embedding::{Case, DeviceBatch, DeviceGradients, download};
use emb_kernels::{Backend, FeatureMap, Gradients, Mat, Result, RowTransfer};
use emb_optim::{Extent, Rule};

/// A case in a backend's memory, with room for what is looked up.
pub(crate) struct Trial<B: Backend> {
    pub(crate) batch: DeviceBatch<B>,
    pub(crate) map: FeatureMap,
    gradients: DeviceGradients<B>,
    rules: Vec<Rule>,
    samples: usize,
    pooled: B::Buffer<f32>,
    gathered: B::Buffer<f32>,
}

impl<B: Backend> Trial<B> {
    pub(crate) fn new(backend: &mut B, case: &Case) -> Self {
        let (map, samples) = (case.map(), case.batch.batch());
        let gathered: usize = case.sequences().iter().map(|(_, rows, dim)| rows * dim).sum();
        Self {
            batch: DeviceBatch::new(backend, &case.batch),
            gradients: DeviceGradients::new(backend, case),
            rules: case.rules(),
            samples,
            pooled: backend.zeros(samples * map.width()).expect("memory"),
            gathered: backend.zeros(gathered).expect("memory"),
            map,
        }
    }

    /// What pooled and sequence features look up, as bits.
    pub(crate) fn look_up(&mut self, backend: &mut B, tables: &mut B::Tables) -> Result<Looked> {
        let width = self.map.width();
        let whole = B::view_mut(&mut self.pooled, 0..self.samples * width);
        let matrix = Mat::new(whole, self.samples, width);
        backend.pool(tables, &self.map, self.batch.view(), matrix)?;
        let len = B::len(&self.gathered);
        let whole = B::view_mut(&mut self.gathered, 0..len);
        backend.gather_all(tables, &self.map, self.batch.view(), whole)?;
        Ok([&self.pooled, &self.gathered].map(|buffer| bits(&download(backend, buffer))))
    }

    pub(crate) fn update(&self, backend: &mut B, tables: &mut B::Tables, step: u64) -> Result<()> {
        let (pooled, sequences) = self.gradients.views();
        let gradients = Gradients { pooled, sequences: &sequences };
        let batch = self.batch.view();
        backend.scatter_update(tables, &self.map, batch, &gradients, &self.rules, step)
    }

    /// Two steps, the second with the rows of the first: what each has looked up.
    pub(crate) fn steps(&mut self, backend: &mut B, tables: &mut B::Tables) -> Result<[Looked; 2]> {
        let first = self.look_up(backend, tables)?;
        self.update(backend, tables, 1)?;
        let second = self.look_up(backend, tables)?;
        self.update(backend, tables, 2)?;
        Ok([first, second])
    }
}

/// Pooled rows, then those of sequences.
pub(crate) type Looked = [Vec<u32>; 2];

/// Floats that [`RowTransfer`] lists of each row of a table: weights, then state.
pub(crate) fn listed<B: Backend>(tables: &B::Tables, table: usize) -> usize {
    let spec = &B::specs(tables)[table];
    let slots = spec.optimizer.slots().iter();
    let state = slots.map(|slot| if slot.extent == Extent::Row { 1 } else { spec.dim });
    spec.dim + state.sum::<usize>()
}

/// Weights and state of rows of a table, as bits.
pub(crate) fn rows<B: Backend>(
    backend: &mut B,
    tables: &mut B::Tables,
    table: usize,
    numbers: &[u64],
) -> Vec<u32> {
    let mut values = vec![f32::NAN; numbers.len() * listed::<B>(tables, table)];
    let read = RowTransfer::Read(&mut values);
    backend.transfer_rows(tables, table, numbers, read).expect("rows of the table");
    bits(&values)
}

/// Weights and state of all rows of all tables, as bits.
pub(crate) fn all_rows<B: Backend>(backend: &mut B, tables: &mut B::Tables) -> Vec<Vec<u32>> {
    let counts: Vec<u64> = B::specs(tables).iter().map(|spec| spec.rows).collect();
    let numbers = counts.iter().map(|&count| (0..count).collect::<Vec<u64>>()).enumerate();
    numbers.map(|(t, numbers)| rows(backend, tables, t, &numbers)).collect()
}
