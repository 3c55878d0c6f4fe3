//! How rows travel inside a group and how replicas are kept equal: [`Exchange`], [`ReplicaSync`].

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;

/// How the ranks of a group reach the rows of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Exchange {
    /// Not at all: every rank has every row. Exactly the groups of one rank.
    Local,
    /// Owners pool and partial sums travel. For pooled features.
    Reduce {
        /// The way that partial sums take.
        over: Path,
    },
    /// Ids are de-duplicated, rows travel and are pooled where they arrive.
    Unique {
        /// Among whom ids are de-duplicated.
        per: Per,
    },
    /// One row travels for every id, duplicates included. For sequence features.
    Rows,
}

/// The way that partial sums take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// Every rank of the group sends to every other.
    #[default]
    Flat,
    /// Partial sums are added up inside a node before they leave it.
    Hierarchical,
}

/// Among whom ids are de-duplicated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// The ids of one rank.
    #[default]
    Rank,
    /// The ids of all ranks of a group on one node: every distinct row enters the node once.
    Node,
}

/// How the replicas of a row, one in every group, are kept equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReplicaSync {
    /// Not at all: there is one replica.
    None,
    /// Weights and optimizer state are averaged.
    Weights {
        /// Steps between two syncs.
        every: NonZeroU32,
    },
    /// As `Weights`, but only rows that any replica touched since the last sync travel.
    TouchedRows {
        /// Steps between two syncs.
        every: NonZeroU32,
    },
    /// Gradients of touched rows are summed over the replicas every step, then all take the same
    /// update.
    Gradients,
    /// Each replica keeps `1/M` of the rows while the dense model runs: gathered before the
    /// update, averaged and scattered after the lookup.
    FullyShardedReplicas,
}

impl Exchange {
    /// Whether it works by nodes.
    pub fn by_node(self) -> bool {
        matches!(self, Self::Reduce { over: Path::Hierarchical } | Self::Unique { per: Per::Node })
    }
}

/// As tables print it: `reduce`, `reduce by node`, `unique`, `unique by node`.
impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Reduce { over: Path::Flat } => "reduce",
            Self::Reduce { over: Path::Hierarchical } => "reduce by node",
            Self::Unique { per: Per::Rank } => "unique",
            Self::Unique { per: Per::Node } => "unique by node",
            Self::Rows => "rows",
        })
    }
}

/// As tables print it: `weights/10` is every ten steps.
impl fmt::Display for ReplicaSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("-"),
            Self::Weights { every } => write!(f, "weights/{every}"),
            Self::TouchedRows { every } => write!(f, "touched rows/{every}"),
            Self::Gradients => f.write_str("gradients"),
            Self::FullyShardedReplicas => f.write_str("fully sharded"),
        }
    }
}
