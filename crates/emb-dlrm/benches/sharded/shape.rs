//! Tables and batches that exchanges are measured with.

use super::ids::{Random, draw_ids};
use emb_kernels::Jagged;

/// Tables of one kind, their ranks, and how much is looked up.
#[derive(Debug)]
pub(crate) struct Shape {
    /// What the command line calls it.
    pub(crate) name: &'static str,
    pub(crate) tables: usize,
    pub(crate) rows: u64,
    pub(crate) dim: usize,
    /// Samples of all ranks.
    pub(crate) batch: usize,
    /// Fewest and most lookups a bag.
    pub(crate) lookups: [usize; 2],
    pub(crate) world: usize,
    pub(crate) node_ranks: usize,
}

pub(crate) const SHAPES: [Shape; 2] = [
    Shape {
        name: "exchanges",
        tables: 26,
        rows: 100_000,
        dim: 64,
        batch: 2048,
        lookups: [4, 10],
        world: 4,
        node_ranks: 2,
    },
    // Many small lists: what a list costs, rather than its rows.
    Shape {
        name: "many",
        tables: 300,
        rows: 2_000,
        dim: 16,
        batch: 512,
        lookups: [1, 3],
        world: 16,
        node_ranks: 4,
    },
];

/// Batches that steps cycle through.
const BATCHES: usize = 4;

impl Shape {
    pub(crate) fn names(&self) -> Vec<String> {
        (0..self.tables).map(|t| format!("t{t}")).collect()
    }

    /// By batch and rank, ids of Zipf 1.05.
    pub(crate) fn batches(&self) -> Vec<Vec<Jagged>> {
        let (samples, names) = (self.batch / self.world, self.names());
        let [fewest, most] = self.lookups;
        let mut random = Random(5);
        let bags = BATCHES * self.batch * self.tables;
        let length = |_| (fewest as f64 + random.unit() * (most - fewest + 1) as f64) as i64;
        let lengths: Vec<i64> = (0..bags).map(length).collect();
        let ids = draw_ids(lengths.iter().sum::<i64>() as usize, self.rows, "zipf");
        let mut ids = ids.into_iter();
        let ranks = lengths.chunks(samples * self.tables).map(|lengths| {
            let own = ids.by_ref().take(lengths.iter().sum::<i64>() as usize).collect();
            Jagged::from_lengths(&names, samples, lengths, own, None).expect("a batch")
        });
        let ranks: Vec<Jagged> = ranks.collect();
        ranks.chunks(self.world).map(<[Jagged]>::to_vec).collect()
    }
}
