//! [`MpiOptions`] of a world of processes.

use crate::{Check, Options};
use std::time::Duration;

/// How the ranks of a world over MPI treat each other. The same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MpiOptions {
    /// How long a collective waits for peers before it fails. Two minutes by default.
    pub timeout: Duration,
    /// How long [`start`](crate::Mpi::start) waits for all processes. Two minutes by default.
    pub meeting: Duration,
    /// Ranks of a node: meters tell bytes inside a node from bytes between nodes. Without, the
    /// default, nodes are the hosts that the ranks find themselves on; where these have unequally
    /// many ranks, every rank counts as a node of its own.
    pub ranks_per_node: Option<usize>,
    /// Whether ranks compare their calls and counts before data move.
    pub check: Check,
}

impl Default for MpiOptions {
    fn default() -> Self {
        let Options { timeout, .. } = Options::default();
        Self { timeout, meeting: timeout, ranks_per_node: None, check: Check::default() }
    }
}

impl MpiOptions {
    /// The same with another timeout.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The same with another time to wait for all processes at the start.
    #[must_use]
    pub fn with_meeting(self, meeting: Duration) -> Self {
        Self { meeting, ..self }
    }

    /// The same with a number of ranks per node, whatever the hosts are.
    #[must_use]
    pub fn with_ranks_per_node(self, ranks_per_node: usize) -> Self {
        Self { ranks_per_node: Some(ranks_per_node), ..self }
    }

    /// The same with calls compared or not.
    #[must_use]
    pub fn with_check(self, check: Check) -> Self {
        Self { check, ..self }
    }
}
