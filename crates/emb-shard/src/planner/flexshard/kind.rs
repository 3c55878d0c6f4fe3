//! What tiers there can be, and what their links cost: [`TierKind`].

use crate::{ByLink, GroupSpread, Mesh, Objective, Result, Topology};

/// What a rank sends for the rows of one kind of tier in a step, in one message of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TierBytes {
    /// Bytes of rows in an exchange, one way.
    pub exchanged: ByLink,
    /// Bytes in a hop of the rings that sum gradients.
    pub synced: ByLink,
}

impl TierBytes {
    /// Both, added.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            exchanged: self.exchanged.plus(other.exchanged),
            synced: self.synced.plus(other.synced),
        }
    }
}

/// Groups in each of which a tier is stored once, and what bytes cost between their ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierKind {
    /// The groups.
    pub mesh: Mesh,
    /// How they lie among nodes.
    pub spread: GroupSpread,
    /// Cost of a byte that a rank exchanges inside its group, seconds for instance.
    pub exchange_seconds: ByLink,
    /// Cost of a byte that a rank sends while replicas sum gradients.
    pub sync_seconds: ByLink,
}

impl TierKind {
    /// The groups of `mesh` on the machines of `topology`, in nodes of `node_ranks` ranks.
    ///
    /// Links inside a node are those of the innermost level, links between nodes those of the
    /// outermost one, slowed by as many peers as an exchange has there. What a byte costs is
    /// seconds, the byte itself between nodes, or nothing, as `objective` says.
    ///
    /// # Errors
    /// Nodes that do not share out the world.
    pub fn new(
        mesh: Mesh,
        node_ranks: u32,
        topology: &Topology,
        objective: Objective,
    ) -> Result<Self> {
        Self::of_bytes(mesh, node_ranks, topology, objective, TierBytes::default())
    }

    /// The same, where a rank sends so many bytes: with links whose transfers were measured, a byte
    /// costs what it does in messages of this size. 0 for the level's bandwidth.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_bytes(
        mesh: Mesh,
        node_ranks: u32,
        topology: &Topology,
        objective: Objective,
        bytes: TierBytes,
    ) -> Result<Self> {
        let spread = GroupSpread::new(mesh, node_ranks)?;
        let levels = topology.levels();
        let (inner, outer) = (&levels[0], &levels[levels.len() - 1]);
        let (group, part) = (spread.group_ranks(), spread.part_ranks());
        let (exchange_seconds, sync_seconds) = match objective {
            Objective::StepSeconds => {
                let (all, sum) = (bytes.exchanged, bytes.synced);
                let exchange = ByLink {
                    in_node: 1.0 / inner.bandwidth_of(part - 1, all.in_node),
                    inter_node: 1.0 / outer.bandwidth_of(group - part, all.inter_node),
                };
                let sync = ByLink {
                    in_node: 1.0 / inner.bandwidth_at(sum.in_node),
                    inter_node: 1.0 / outer.bandwidth_at(sum.inter_node),
                };
                (exchange, sync)
            }
            Objective::InterNodeBytes => {
                let bytes = ByLink { in_node: 0.0, inter_node: 1.0 };
                (bytes, bytes)
            }
            Objective::Memory => (ByLink::default(), ByLink::default()),
        };
        Ok(Self { mesh, spread, exchange_seconds, sync_seconds })
    }

    /// Part of a row that one rank stores, in the mean.
    pub(super) fn stored(&self) -> f64 {
        1.0 / f64::from(self.spread.group_ranks())
    }

    /// `bytes` where rows have replicas.
    pub(super) fn replicated(&self, bytes: f64) -> f64 {
        if self.spread.replicas() > 1 { bytes } else { 0.0 }
    }

    /// `bytes` where rows travel.
    pub(super) fn exchanged(&self, bytes: f64) -> f64 {
        if self.spread.group_ranks() > 1 { bytes } else { 0.0 }
    }
}
