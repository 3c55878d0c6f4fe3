//! The figures of a look at the ranks' health: [`Health`].

use serde::Serialize;

/// How a run fares, over the steps since the last look. Seconds, bytes and shares are means over
/// steps and ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// The last of the steps.
    pub step: u64,
    /// How many they are; the first step of a run is not among them.
    pub steps: u64,
    /// Seconds of a step.
    pub step_seconds: f64,
    /// Parts of a step's time, `0..=1`, that the ranks' own threads spend in collectives.
    pub exposed: Exposed,
    /// Part of a step's time, `0..=1`, in which ranks wait for others.
    pub waiting: f64,
    /// The rank that others wait for, if one stands out.
    pub slowest: Option<SlowRank>,
    /// Bytes that a rank takes from others in exchanges of the tables, a step.
    pub exchange_bytes: Bytes,
    /// Bytes that a rank takes from others to keep replicas equal, a step: over whole periods of
    /// the syncs, the last ones that are over.
    pub sync_bytes: Bytes,
    /// What to try, if anything.
    pub advice: Vec<String>,
}

/// Parts of a step's time, by what the collectives are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Exposed {
    /// Ids, pooled sums and gradients of the tables.
    pub exchange: f64,
    /// Replicas made equal, or their gradients summed; of what goes on beside, the waiting for it.
    pub sync: f64,
    /// The total of the loss, and meeting at the end of an epoch.
    pub loss: f64,
    /// Sums of dense gradients that the backward pass did not hide.
    pub dense_sums: f64,
}

impl Exposed {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.exchange + self.sync + self.loss + self.dense_sums
    }
}

/// A rank that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SlowRank {
    /// Its number.
    pub rank: usize,
    /// Its median time to compute over the mean of those of the others.
    pub compute_ratio: f64,
    /// Part of all waiting, `0..=1`, that would not be if it computed as fast as the others.
    pub waiting_caused: f64,
}

/// Bytes of a step, counted and as the plan has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bytes {
    /// What meters counted; `None` before the first period of the syncs is over.
    pub counted: Option<Levels>,
    /// What the cost model expects of the plan; `None` where it would have to know which rows are
    /// looked up and nobody said.
    pub planned: Option<Levels>,
}

/// Bytes by how far they go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Levels {
    /// From ranks of the same node.
    pub intra_node: f64,
    /// From ranks of other nodes.
    pub inter_node: f64,
}

impl Levels {
    pub(super) fn new([intra_node, inter_node]: [f64; 2]) -> Self {
        Self { intra_node, inter_node }
    }

    /// Both.
    pub fn total(&self) -> f64 {
        self.intra_node + self.inter_node
    }
}
