//! [`Options`] of a world of ranks.

use std::time::Duration;

/// How the ranks of a world treat each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How long a collective waits for peers before it fails. Two minutes by default.
    pub timeout: Duration,
    /// Ranks of a node: meters tell bytes inside a node from bytes between nodes. Zero, the
    /// default, puts all ranks on one node.
    pub ranks_per_node: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_mins(2), ranks_per_node: 0 }
    }
}

impl Options {
    /// The same with another timeout.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The same with another number of ranks per node.
    #[must_use]
    pub fn with_ranks_per_node(self, ranks_per_node: usize) -> Self {
        Self { ranks_per_node, ..self }
    }

    /// Whether two ranks share a node.
    pub(crate) fn same_node(&self, a: usize, b: usize) -> bool {
        let node = |rank: usize| rank.checked_div(self.ranks_per_node);
        node(a) == node(b)
    }
}
