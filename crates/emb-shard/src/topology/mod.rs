//! What the machines are: [`Topology`], levels of links between ranks from the inside out.
//!
//! ```text
//!   rank   memory, its bandwidth, compute rate
//!   level 0, the nodes      [0 1 2 3] [4 5 6 7] [8 9 10 11] [12 13 14 15]     bandwidth, latency
//!   level 1, the racks      [       0..8      ] [          8..16        ]     bandwidth, latency
//!   level 2, the cluster    [                  0..16                    ]     bandwidth, latency
//! ```
//!
//! A level cuts the ranks into units of consecutive ranks. Two ranks talk over the innermost level
//! that has both in one unit. Rates are those of one rank in one direction, with all ranks at work.

mod check;
mod display;
mod fit;
mod level;
mod preset;
mod spec;

pub use fit::LinkFit;
pub use level::Level;
pub use spec::{LevelSpec, TopologySpec, UnitRanks};

use crate::{Bytes, Error, Id, LevelId, NodeId, Rank, Result};
use serde::{Deserialize, Serialize};

/// Ranks, the links between them, and what one rank can hold and compute; checked.
///
/// ```
/// use emb_shard::{LevelId, NodeId, Rank, Topology};
///
/// let topology = Topology::preset("dgx-h100:16")?;
/// assert_eq!((topology.world(), topology.nodes()), (128, 16));
/// assert_eq!(topology.level_of(Rank::new(0), Rank::new(7))?, Some(LevelId::new(0)));
/// assert_eq!(topology.level_of(Rank::new(0), Rank::new(8))?, Some(LevelId::new(1)));
/// assert_eq!(topology.node_of(Rank::new(8))?, NodeId::new(1));
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TopologySpec", into = "TopologySpec")]
pub struct Topology {
    spec: TopologySpec,
    levels: Vec<Level>,
}

impl Topology {
    /// Checks what `spec` says.
    ///
    /// # Errors
    /// By topology and level: no name, no ranks or more than [`MAX_WORLD`](crate::MAX_WORLD), no
    /// memory, a rate that is not above 0 and finite, a latency that is negative or not finite;
    /// units without ranks or that do not share out the ranks, units that cut those of the level
    /// inside, an outermost level of more than one unit; points of an all-to-all that do not
    /// ascend, or whose part of the bandwidth is not in `0..=1`, is 0 or rises; transfers that do
    /// not ascend in bytes and seconds.
    pub fn new(spec: TopologySpec) -> Result<Self> {
        let levels = check::levels(&spec)?;
        Ok(Self { spec, levels })
    }

    /// Known machines: `dgx-h100:N` and `dgx-a100:N` are N nodes of eight ranks, `cpu:N` is one
    /// machine whose memory N ranks share.
    ///
    /// Rates are peaks as the makers state them; no preset slows an all-to-all with its peers.
    /// Measure, and write a [`TopologySpec`] of your own, where it matters.
    ///
    /// # Errors
    /// A name that is unknown, with the nearest known one; a count that is not a number from 1.
    pub fn preset(text: &str) -> Result<Self> {
        Self::new(preset::spec(text)?)
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Ranks, `1..=MAX_WORLD`.
    pub fn world(&self) -> u32 {
        self.spec.ranks
    }

    /// Bytes of memory of one rank.
    pub fn memory(&self) -> Bytes {
        Bytes::new(self.spec.memory_bytes)
    }

    /// Bytes a second between a rank and its memory.
    pub fn memory_bandwidth(&self) -> f64 {
        self.spec.memory_bandwidth
    }

    /// Floating-point operations a second of one rank.
    pub fn flops(&self) -> f64 {
        self.spec.flops
    }

    /// The levels from the inside out; at least one, the last of one unit.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// One level.
    ///
    /// # Errors
    /// A level that is not there.
    pub fn level(&self, level: LevelId) -> Result<&Level> {
        let count = self.levels.len() as u64;
        let missing = Error::NoSuch { kind: "level", index: level.index() as u64, count };
        self.levels.get(level.index()).ok_or(missing)
    }

    /// The level over which two ranks talk; `None` for a rank and itself.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn level_of(&self, a: Rank, b: Rank) -> Result<Option<LevelId>> {
        self.levels[0].unit_of(a)?;
        self.levels[0].unit_of(b)?;
        if a == b {
            return Ok(None);
        }
        let mut inside = 0;
        // The last level has every rank in its one unit.
        for level in &self.levels[..self.levels.len() - 1] {
            if level.unit_of(a)? == level.unit_of(b)? {
                break;
            }
            inside += 1;
        }
        Ok(Some(LevelId::new(inside)))
    }

    /// How many other ranks `rank` talks to over `level`.
    ///
    /// # Errors
    /// A rank or a level that is not there.
    pub fn peers(&self, rank: Rank, level: LevelId) -> Result<u32> {
        let ranks = |level: &Level| Ok(level.ranks_of(level.unit_of(rank)?)?.len() as u32);
        let outside = ranks(self.level(level)?)?;
        let inside = match level.get().checked_sub(1) {
            Some(inner) => ranks(&self.levels[inner as usize])?,
            None => 1,
        };
        Ok(outside - inside)
    }

    /// First rank of every node, then the number of ranks.
    pub fn node_starts(&self) -> &[u32] {
        self.levels[0].starts()
    }

    /// Units of the innermost level.
    pub fn nodes(&self) -> u32 {
        self.levels[0].units()
    }

    /// Ranks of every node, or `None` where nodes differ.
    pub fn node_ranks(&self) -> Option<u32> {
        self.levels[0].unit_ranks()
    }

    /// The node of a rank.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn node_of(&self, rank: Rank) -> Result<NodeId> {
        Ok(NodeId::new(self.levels[0].unit_of(rank)?))
    }

    /// The ranks of a node, ascending.
    ///
    /// # Errors
    /// A node that is not there.
    pub fn ranks_of_node(
        &self,
        node: NodeId,
    ) -> Result<impl ExactSizeIterator<Item = Rank> + use<>> {
        let count = u64::from(self.nodes());
        let missing = Error::NoSuch { kind: "node", index: u64::from(node.get()), count };
        self.levels[0].ranks_of(node.get()).map_err(|_| missing)
    }
}

impl TryFrom<TopologySpec> for Topology {
    type Error = Error;

    fn try_from(spec: TopologySpec) -> Result<Self> {
        Self::new(spec)
    }
}

impl From<Topology> for TopologySpec {
    fn from(topology: Topology) -> Self {
        topology.spec
    }
}

#[cfg(test)]
mod tests;
