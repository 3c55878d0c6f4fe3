//! The answer of a cost model: [`Estimate`].

use crate::LevelId;
use serde::Serialize;

/// Seconds of the parts of a training step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Parts {
    /// Ids go to the owners; what is not hidden behind the dense model.
    pub id_exchange: f64,
    /// Owners look up and pool.
    pub lookup: f64,
    /// Sums or rows come back.
    pub output_exchange: f64,
    /// The dense model, forward and backward.
    pub dense: f64,
    /// Gradients go to the owners.
    pub backward_exchange: f64,
    /// Ids are sorted, gradients summed by row, rows updated.
    pub update: f64,
    /// Dense gradients are summed; what is not hidden behind the backward pass.
    pub dense_sync: f64,
    /// Replicas of tables are made equal.
    pub replica_sync: f64,
}

/// Bytes over one level in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LevelBytes {
    /// Sent by the rank.
    pub sent: f64,
    /// Received by the rank.
    pub received: f64,
}

/// Bytes of memory of a rank at the peak of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PeakBytes {
    /// Weights of tables.
    pub weights: f64,
    /// Their optimizer state.
    pub state: f64,
    /// What is sent and received: ids, sums or rows, and their gradients; rows and gradients that
    /// replicas sum.
    pub buffers: f64,
    /// The dense model.
    pub dense: f64,
}

/// What a step costs one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankEstimate {
    /// Its number.
    pub rank: u32,
    /// Its seconds, waiting not counted.
    pub parts: Parts,
    /// Its bytes of exchanges over every level, from the inside out.
    pub exchanged: Vec<LevelBytes>,
    /// Its bytes of the sync of replicas over every level.
    pub synced: Vec<LevelBytes>,
    /// Its bytes of the sum of dense gradients over every level.
    pub dense: Vec<LevelBytes>,
    /// Its memory.
    pub peak: PeakBytes,
}

/// What a step of a plan costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Seconds of the slowest rank in each part.
    pub parts: Parts,
    /// Every rank, or those of one group where all groups are alike.
    pub ranks: Vec<RankEstimate>,
}

impl Parts {
    /// Names and seconds, in the order of a step.
    pub fn named(&self) -> [(&'static str, f64); 8] {
        [
            ("id exchange", self.id_exchange),
            ("lookup", self.lookup),
            ("output exchange", self.output_exchange),
            ("dense", self.dense),
            ("backward exchange", self.backward_exchange),
            ("update", self.update),
            ("dense sync", self.dense_sync),
            ("replica sync", self.replica_sync),
        ]
    }

    /// Seconds of all parts.
    pub fn total(&self) -> f64 {
        self.named().iter().map(|(_, seconds)| seconds).sum()
    }

    /// Seconds in which ranks exchange ids, sums, rows or gradients of tables.
    pub fn exchange(&self) -> f64 {
        self.id_exchange + self.output_exchange + self.backward_exchange
    }

    /// Seconds of the tables: all but the dense model and its sync.
    pub fn tables(&self) -> f64 {
        self.exchange() + self.lookup + self.update + self.replica_sync
    }

    /// The larger of both, part by part.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            id_exchange: self.id_exchange.max(other.id_exchange),
            lookup: self.lookup.max(other.lookup),
            output_exchange: self.output_exchange.max(other.output_exchange),
            dense: self.dense.max(other.dense),
            backward_exchange: self.backward_exchange.max(other.backward_exchange),
            update: self.update.max(other.update),
            dense_sync: self.dense_sync.max(other.dense_sync),
            replica_sync: self.replica_sync.max(other.replica_sync),
        }
    }
}

impl PeakBytes {
    /// What tables take of the room for tables, where all else has `beside` bytes of its own: what
    /// it needs beyond those counts as well.
    pub(crate) fn table_room(&self, beside: f64) -> f64 {
        let tables = self.weights + self.state;
        tables.max(self.total() - beside)
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.weights + self.state + self.buffers + self.dense
    }
}

impl RankEstimate {
    /// Bytes sent or received, whichever is more, over the levels from `level` on outwards.
    pub fn bytes_from(&self, level: LevelId) -> f64 {
        let from = |levels: &[LevelBytes]| {
            let outer = levels.iter().skip(level.get() as usize);
            outer.fold((0.0, 0.0), |(sent, received), bytes| {
                (sent + bytes.sent, received + bytes.received)
            })
        };
        let (exchanged, synced) = (from(&self.exchanged), from(&self.synced));
        (exchanged.0 + synced.0).max(exchanged.1 + synced.1)
    }
}

impl Estimate {
    /// Seconds of a step.
    pub fn step_seconds(&self) -> f64 {
        self.parts.total()
    }

    /// Seconds of the tables on the busiest rank over those of the mean rank; 1 where all are
    /// equal.
    pub fn max_over_mean(&self) -> f64 {
        let seconds = || self.ranks.iter().map(|rank| rank.parts.tables());
        let mean = seconds().sum::<f64>() / self.ranks.len().max(1) as f64;
        if mean > 0.0 { seconds().fold(0.0, f64::max) / mean } else { 1.0 }
    }

    /// The fullest rank.
    pub fn fullest(&self) -> Option<&RankEstimate> {
        self.ranks.iter().reduce(|a, b| if b.peak.total() > a.peak.total() { b } else { a })
    }

    /// Bytes that the busiest rank sends or receives outside its node.
    pub fn inter_node_bytes(&self) -> f64 {
        self.busiest(|rank| rank.bytes_from(LevelId::new(1)))
    }

    /// Bytes that the busiest rank sends or receives inside its node.
    pub fn intra_node_bytes(&self) -> f64 {
        let inside = |levels: &[LevelBytes]| {
            levels.first().map_or((0.0, 0.0), |bytes| (bytes.sent, bytes.received))
        };
        self.busiest(|rank| {
            let (a, b) = (inside(&rank.exchanged), inside(&rank.synced));
            (a.0 + b.0).max(a.1 + b.1)
        })
    }

    fn busiest(&self, bytes: impl Fn(&RankEstimate) -> f64) -> f64 {
        self.ranks.iter().map(bytes).fold(0.0, f64::max)
    }
}
