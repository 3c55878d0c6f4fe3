//! The batches of the bench: files, or generated.

use super::ids::{Random, draw_ids};
use super::{BATCH, DENSE, ROWS, STEPS, TABLES};
use emb_dlrm::train::Samples;
use emb_kernels::Jagged;
use std::path::PathBuf;

/// Batches of one distribution.
pub(crate) struct Data {
    ids: Vec<Jagged>,
    dense: Vec<f32>,
    labels: Vec<f32>,
    batch: usize,
}

impl Data {
    /// The share of rank `rank` of `world` of every batch.
    pub(crate) fn share(&self, world: usize, rank: usize) -> Self {
        let rows = BATCH / world;
        let own = |step: usize, width: usize| {
            let first = (step * BATCH + rank * rows) * width;
            first..first + rows * width
        };
        let steps = 0..self.ids.len();
        let ids = self.ids.iter().map(|batch| {
            let batch = batch.as_ref();
            let values = (0..TABLES).flat_map(|t| {
                let first = t * BATCH + rank * rows;
                batch.values[first..first + rows].to_vec()
            });
            let lengths = vec![1; TABLES * rows];
            Jagged::from_lengths(batch.names, rows, &lengths, values.collect(), None)
                .expect("a batch")
        });
        Self {
            ids: ids.collect(),
            dense: steps.clone().flat_map(|step| self.dense[own(step, DENSE)].to_vec()).collect(),
            labels: steps.flat_map(|step| self.labels[own(step, 1)].to_vec()).collect(),
            batch: rows,
        }
    }

    pub(crate) fn load(distribution: &str) -> Self {
        let n = STEPS * TABLES * BATCH;
        let ids = read(&format!("idx_dlrm_{distribution}.bin"), |bytes| {
            bytes.as_chunks::<8>().0.iter().map(|&b| i64::from_le_bytes(b)).collect()
        })
        .unwrap_or_else(|| draw_ids(n, ROWS, distribution));
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
        };
        let mut random = Random(7);
        let dense = read("dlrm_dense.bin", floats)
            .unwrap_or_else(|| (0..STEPS * BATCH * DENSE).map(|_| random.unit() as f32).collect());
        let labels = read("dlrm_label.bin", floats).unwrap_or_else(|| {
            (0..STEPS * BATCH).map(|_| f32::from(random.unit() < 0.25)).collect()
        });
        let names: Vec<String> = (0..TABLES).map(|t| format!("t{t}")).collect();
        let lengths = vec![1; TABLES * BATCH];
        let jagged = |values: &[i64]| {
            Jagged::from_lengths(&names, BATCH, &lengths, values.to_vec(), None).expect("a batch")
        };
        let ids = ids.chunks_exact(TABLES * BATCH).map(jagged).collect();
        Self { ids, dense, labels, batch: BATCH }
    }

    /// The samples of a step.
    pub(crate) fn samples(&self, step: usize) -> Samples<'_> {
        let (step, rows) = (step % self.ids.len(), self.batch);
        Samples {
            dense: &self.dense[step * rows * DENSE..(step + 1) * rows * DENSE],
            labels: &self.labels[step * rows..(step + 1) * rows],
            sparse: self.ids[step].as_ref(),
        }
    }
}

fn read<T>(name: &str, decode: impl Fn(&[u8]) -> Vec<T>) -> Option<Vec<T>> {
    let folder = PathBuf::from(std::env::var_os("PEER_DATA")?);
    std::fs::read(folder.join(name)).ok().map(|bytes| decode(&bytes))
}
