//! What a rank's collectives cost: [`Meters`].

use crate::Operation;
use std::ops::Index;
use std::time::Duration;

/// Calls, bytes and seconds of one rank, by operation: `meters[Operation::AllReduce]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meters {
    operations: [Meter; Operation::ALL.len()],
}

/// Calls, bytes and seconds of one operation on one rank.
///
/// Bytes are what this rank took from others; what it keeps for itself is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Meter {
    /// Successful calls.
    pub calls: u64,
    /// Bytes taken from ranks of the same node.
    pub intra_node_bytes: u64,
    /// Bytes taken from ranks of other nodes.
    pub inter_node_bytes: u64,
    /// Seconds in which this rank waited for others.
    pub wait_seconds: f64,
    /// Seconds in which this rank copied and summed.
    pub copy_seconds: f64,
}

impl Meter {
    /// Bytes taken from other ranks.
    pub fn bytes(&self) -> u64 {
        self.intra_node_bytes + self.inter_node_bytes
    }

    /// Seconds inside the operation.
    pub fn seconds(&self) -> f64 {
        self.wait_seconds + self.copy_seconds
    }
}

impl Meters {
    /// Each operation with its meter.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, &Meter)> {
        Operation::ALL.into_iter().zip(&self.operations)
    }

    /// All operations together.
    pub fn total(&self) -> Meter {
        self.operations.iter().copied().sum()
    }

    pub(crate) fn add(&mut self, operation: Operation, took: Took) {
        let meter = &mut self.operations[operation as usize];
        meter.calls += 1;
        meter.intra_node_bytes += took.intra_node_bytes;
        meter.inter_node_bytes += took.inter_node_bytes;
        meter.wait_seconds += took.waited.as_secs_f64();
        meter.copy_seconds += took.total.saturating_sub(took.waited).as_secs_f64();
    }
}

impl std::ops::Sub for Meter {
    type Output = Self;

    /// What came since an earlier reading of the same meter.
    fn sub(self, earlier: Self) -> Self {
        Self {
            calls: self.calls - earlier.calls,
            intra_node_bytes: self.intra_node_bytes - earlier.intra_node_bytes,
            inter_node_bytes: self.inter_node_bytes - earlier.inter_node_bytes,
            wait_seconds: self.wait_seconds - earlier.wait_seconds,
            copy_seconds: self.copy_seconds - earlier.copy_seconds,
        }
    }
}

impl std::iter::Sum for Meter {
    fn sum<I: Iterator<Item = Self>>(meters: I) -> Self {
        meters.fold(Self::default(), |sum, meter| Self {
            calls: sum.calls + meter.calls,
            intra_node_bytes: sum.intra_node_bytes + meter.intra_node_bytes,
            inter_node_bytes: sum.inter_node_bytes + meter.inter_node_bytes,
            wait_seconds: sum.wait_seconds + meter.wait_seconds,
            copy_seconds: sum.copy_seconds + meter.copy_seconds,
        })
    }
}

impl Index<Operation> for Meters {
    type Output = Meter;

    fn index(&self, operation: Operation) -> &Meter {
        &self.operations[operation as usize]
    }
}

/// What one call took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    pub(crate) intra_node_bytes: u64,
    pub(crate) inter_node_bytes: u64,
    pub(crate) waited: Duration,
    pub(crate) total: Duration,
}
