//! What the cost model assumes: [`CostOptions`].

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// What of a step runs at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overlap {
    /// Nothing: parts follow each other.
    None,
    /// Ids of the next batch travel while the dense model works on this one, and dense gradients
    /// are summed behind the backward pass, as `HugeCTR` (`model_pipeline.cpp`) and `TorchRec`
    /// (`TrainPipelineSparseDist`) do.
    #[default]
    Pipelined,
}

/// How replicas sum the gradients of [`ReplicaSync::Gradients`](crate::ReplicaSync::Gradients).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GradientSum {
    /// Every replica tells all others the rows that it touched, with their gradients.
    Gathered,
    /// The way of fewest bytes, shard by shard, as `emb train` does: `Gathered`, or touched rows
    /// are dealt out to the replicas, which sum them and tell all others, or all rows are summed,
    /// touched or not (`FlexShard` reconstruction 1.3: a dense block wins once a rank touches more
    /// than `2/W` of its rows).
    #[default]
    Cheapest,
}

/// The way on which replicas sum and average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaWay {
    /// By a ring in every level: `2 (m - 1) / m` of the bytes among `m` units, then as much of the
    /// `1/m` that each is left with among the units of the next level (NCCL).
    #[default]
    Rings,
    /// Each of `m` replicas averages its `1/m` of the values, which all others send to it, and
    /// hands it out to all others, as `emb train` does. Weights, and gradients that replicas sum,
    /// travel as the workload says ([`synced`](crate::Workload::synced)), all else in 32 bits.
    Direct,
}

/// What the cost model assumes beyond the workload and the topology.
///
/// The rates of a topology are peaks; each is reached to the part that stands here. All are 1 by
/// default, and no rank is slower than another, so that seconds are lower bounds until somebody
/// measures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostOptions {
    /// What runs at the same time.
    pub overlap: Overlap,
    /// How replicas sum gradients.
    pub gradient_sum: GradientSum,
    /// The way on which replicas sum and average.
    pub replica_way: ReplicaWay,
    /// Bytes of a count that travels ahead of ids and rows: three to each peer of an exchange of
    /// sums; one, and one for each shard that it has, to each peer of an exchange of rows; one a
    /// shard to each replica that is told rows, three where rows are dealt out. 0 where they are not
    /// counted.
    pub count_bytes: u8,
    /// Part of the memory's bandwidth that look-ups and updates of rows reach, above 0, at most 1.
    pub memory_efficiency: f64,
    /// Part of every link's bandwidth that collectives reach, above 0, at most 1.
    pub link_efficiency: f64,
    /// Part of a rank's operations a second that a dense model reaches whose operations are counted
    /// ([`DenseTime::FlopsPerSample`](crate::DenseTime)), above 0, at most 1.
    pub compute_efficiency: f64,
    /// Standard deviation of what a rank takes to compute, as a part of its mean; 0 by default.
    ///
    /// Ranks wait for the slowest. Of `W` independent normal times with the mean `m` and the
    /// deviation `s m` the slowest takes `m (1 + s sqrt(2 ln W))` at most in the mean (maximal
    /// inequality for sub-Gaussian variables: Boucheron, Lugosi, Massart, Concentration
    /// Inequalities, theorem 2.5).
    pub straggling: f64,
}

impl Default for CostOptions {
    fn default() -> Self {
        let gradient_sum = GradientSum::default();
        Self {
            overlap: Overlap::default(),
            gradient_sum,
            replica_way: ReplicaWay::default(),
            count_bytes: 0,
            memory_efficiency: 1.0,
            link_efficiency: 1.0,
            compute_efficiency: 1.0,
            straggling: 0.0,
        }
    }
}

impl CostOptions {
    /// With the collectives that `emb train` runs over threads, for predictions of the bytes that
    /// it counts.
    pub fn of_emb_train() -> Self {
        Self {
            gradient_sum: GradientSum::Cheapest,
            replica_way: ReplicaWay::Direct,
            count_bytes: 8,
            ..Self::default()
        }
    }

    /// Refuses what would make seconds infinite or negative.
    pub(super) fn check(&self) -> Result<()> {
        let parts = [
            ("memory_efficiency", self.memory_efficiency),
            ("link_efficiency", self.link_efficiency),
            ("compute_efficiency", self.compute_efficiency),
        ];
        let bad = parts.into_iter().find(|(_, part)| !(*part > 0.0 && *part <= 1.0));
        let what = match bad {
            Some((name, part)) => format!("{name} {part}: must be above 0, at most 1"),
            None if self.straggling >= 0.0 && self.straggling.is_finite() => return Ok(()),
            None => format!("straggling {}: must be finite, at least 0", self.straggling),
        };
        Err(Error::Constraint { what })
    }

    /// How many times its mean the slowest of `world` ranks computes.
    pub(super) fn slowest(&self, world: u32) -> f64 {
        1.0 + self.straggling * (2.0 * f64::from(world).ln()).sqrt()
    }
}

/// Fewest bytes that reading a row costs: `max(dim, 32)` weights of 4 bytes in `TorchRec`'s
/// estimator (`planner/estimator/estimator.py`).
pub(super) const LEAST_ROW_BYTES: f64 = 128.0;

/// Bytes of a position that is sorted beside its id.
pub(super) const POSITION_BYTES: f64 = 4.0;

/// Bits that a pass of a radix sort takes care of.
pub(super) const SORT_BITS: u32 = 8;

/// Part of the dense model's time that its backward pass takes: twice the forward pass (`TorchRec`,
/// `planner/constants.py`, `BWD_COMPUTE_MULTIPLIER`).
pub(super) const BACKWARD_PART: f64 = 2.0 / 3.0;
