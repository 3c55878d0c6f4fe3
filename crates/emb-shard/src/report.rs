//! What a plan asks of every rank: [`Report`].

use crate::{PartBytes, Plan, Rank};

/// Load of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankLoad {
    /// Bytes of weights and optimizer state.
    pub bytes: PartBytes,
    /// Mean number of rows that it looks up for one sample of the global batch.
    pub lookups: f64,
    /// Mean number of weights that it reads for one sample of the global batch: look-ups times the
    /// columns they read.
    pub cost: f64,
}

/// Load of every rank under a plan.
///
/// Look-ups are means: a table's pooling factor times its features, spread evenly over its rows,
/// and samples spread evenly over the ranks. An owner in a group of `g` of `W` ranks serves `g/W`
/// of the samples, so a table owned whole costs its owner all look-ups without replicas, half of
/// them with two. A column block is looked up as often as the whole row, and costs its width.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    ranks: Vec<RankLoad>,
}

impl Plan {
    /// The load of every rank.
    pub fn report(&self) -> Report {
        let mut ranks = vec![RankLoad::default(); self.world() as usize];
        for (id, plan) in self.placed().iter() {
            let table = &self.tables().tables()[id];
            for tier in &plan.tiers {
                let mesh = tier.mesh;
                let served = f64::from(mesh.group_ranks()) / f64::from(mesh.world());
                let per_row = served * table.lookups() / table.rows() as f64;
                for block in &tier.blocks {
                    let columns = block.columns.columns() as f64;
                    for (part, owner) in block.owners.iter().enumerate() {
                        let rows = block.part_rows(part);
                        let lookups = per_row * rows as f64;
                        for group in 0..mesh.replicas() {
                            let load = &mut ranks[mesh.rank_at(group, owner).get() as usize];
                            load.lookups += lookups;
                            load.cost += lookups * columns;
                        }
                    }
                }
            }
        }
        for (load, rank) in ranks.iter_mut().zip((0..).map(Rank::new)) {
            load.bytes = self.rank_bytes(rank);
        }
        Report { ranks }
    }
}

impl Report {
    /// `[W]`
    pub fn ranks(&self) -> &[RankLoad] {
        &self.ranks
    }

    /// Largest bytes of a rank over their mean; 1 where all are equal.
    pub fn bytes_max_to_mean(&self) -> f64 {
        self.max_to_mean(|load| load.bytes.total().get() as f64)
    }

    /// Largest look-ups of a rank over their mean; 1 where all are equal.
    pub fn lookups_max_to_mean(&self) -> f64 {
        self.max_to_mean(|load| load.lookups)
    }

    /// Largest cost of a rank over the mean; 1 where all are equal.
    pub fn cost_max_to_mean(&self) -> f64 {
        self.max_to_mean(|load| load.cost)
    }

    fn max_to_mean(&self, value: impl Fn(&RankLoad) -> f64) -> f64 {
        let max = self.ranks.iter().map(&value).fold(0.0, f64::max);
        let mean = self.ranks.iter().map(&value).sum::<f64>() / self.ranks.len() as f64;
        if mean > 0.0 { max / mean } else { 1.0 }
    }
}
