//! What shards ask of their owners and of the peers: [`Load`], plain sums.

use std::ops::AddAssign;

/// Bytes between an owner and each of its peers in one scope of an exchange, for a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Channel {
    /// From each peer to the owner: ids and lengths.
    pub(super) ids: f64,
    /// From the owner to each peer: sums or rows.
    pub(super) outputs: f64,
    /// From each peer to the owner: their gradients.
    pub(super) gradients: f64,
}

/// All that the shards of one position of a group ask for in a step.
///
/// Everything adds up: a plan's load is the sum over its shards, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Load {
    /// With every rank of the group.
    pub(super) flat: Channel,
    /// With every rank of the group on the same node.
    pub(super) node: Channel,
    /// With the ranks of the group that have the same index on the other nodes.
    pub(super) rail: Channel,
    /// Bytes read and written in memory to look up and to pool.
    pub(super) lookup: f64,
    /// Bytes read and written in memory to sort, to sum gradients and to update rows.
    pub(super) update: f64,
    /// Bytes of weights.
    pub(super) weights: f64,
    /// Bytes of optimizer state.
    pub(super) state: f64,
    /// Bytes that replicas sum or average, a step.
    pub(super) reduced: f64,
    /// Bytes that every replica tells all others, a step: ids of touched rows.
    pub(super) gathered: f64,
    /// Bytes that a rank keeps for them until its replicas agree.
    pub(super) staged: f64,
}

impl Channel {
    fn times(self, factor: f64) -> Self {
        Self {
            ids: self.ids * factor,
            outputs: self.outputs * factor,
            gradients: self.gradients * factor,
        }
    }
}

impl AddAssign for Channel {
    fn add_assign(&mut self, other: Self) {
        self.ids += other.ids;
        self.outputs += other.outputs;
        self.gradients += other.gradients;
    }
}

impl Load {
    /// Everything times `factor`; -1 takes a shard away again.
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            flat: self.flat.times(factor),
            node: self.node.times(factor),
            rail: self.rail.times(factor),
            lookup: self.lookup * factor,
            update: self.update * factor,
            weights: self.weights * factor,
            state: self.state * factor,
            reduced: self.reduced * factor,
            gathered: self.gathered * factor,
            staged: self.staged * factor,
        }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.flat += other.flat;
        self.node += other.node;
        self.rail += other.rail;
        self.lookup += other.lookup;
        self.update += other.update;
        self.weights += other.weights;
        self.state += other.state;
        self.reduced += other.reduced;
        self.gathered += other.gathered;
        self.staged += other.staged;
    }
}
