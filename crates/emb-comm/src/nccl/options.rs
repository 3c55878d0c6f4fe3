//! [`NcclOptions`] of a world of ranks.

use crate::{Check, Options};
use std::time::Duration;

/// How the ranks of a world over NCCL treat each other. The same on every rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NcclOptions {
    /// Timeout, and ranks of a node.
    pub base: Options,
    /// How sums are taken.
    pub sums: Sums,
    /// Whether ranks compare their calls and counts before data move.
    pub check: Check,
}

/// In which order values of ranks are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sums {
    /// In the order of the ranks: the same bits as every other transport of this crate, with any
    /// number of channels and on any links. Ranks exchange parts, each adds up its part, and the
    /// parts are gathered: as many bytes on the links as a ring takes.
    #[default]
    RankOrder,
    /// As NCCL does: by `ncclAllReduce` and `ncclReduceScatter`, whose order depends on its
    /// version, on the links and on the length. Bits are equal on all ranks, and differ from those
    /// of other transports. Maxima, and reductions into uneven parts, are taken in rank order.
    Native,
}

impl NcclOptions {
    /// The same with another timeout.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { base: self.base.with_timeout(timeout), ..self }
    }

    /// The same with another number of ranks per node.
    #[must_use]
    pub fn with_ranks_per_node(self, ranks_per_node: usize) -> Self {
        Self { base: self.base.with_ranks_per_node(ranks_per_node), ..self }
    }

    /// The same with another way to take sums.
    #[must_use]
    pub fn with_sums(self, sums: Sums) -> Self {
        Self { sums, ..self }
    }

    /// The same with calls compared or not.
    #[must_use]
    pub fn with_check(self, check: Check) -> Self {
        Self { check, ..self }
    }

    /// A number that ranks with other options do not have.
    pub(super) fn tag(&self) -> u64 {
        self.sums as u64 | (self.check as u64) << 8
    }
}
