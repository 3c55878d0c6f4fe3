//! What tiers cost: the traffic of a table whose hot rows are stored more often than its cold ones.
//!
//! ```text
//!   rows by frequency   [ replicated | in_node | the rest ]      TierCut
//!   stored once in        every rank   every node  all ranks
//!   look-ups travel       nowhere      in a node   everywhere
//!   gradients are summed  over all     over nodes  by the owner
//! ```
//!
//! Formulas are those of the reconstruction of `FlexShard` (arXiv 2301.02959) from its published
//! figures, for `N` nodes of `G` ranks, `W = N G`, and rows and their gradients of one size. A row
//! that a rank asks for `x` times a step costs every rank in the mean, forward and backward:
//!
//! ```text
//!   tier         between nodes             in a node
//!   the rest     2 x (N - 1) / N           2 x (G - 1) / W
//!   in_node      2 (N - 1) / (N G)         2 x (G - 1) / G
//!   replicated   2 (N - 1) / (N G)         2 (G - 1) / G
//! ```
//!
//! Terms without `x` are all-reduces of the gradients of all rows of the tier, dense: a row worth
//! a tier of its own is touched by so many ranks that ids of touched rows would cost more. Here
//! they are written for any groups of `g` ranks, of which the three tiers are `g = W, G, 1`.

use crate::{Error, Layout, MAX_WORLD, Mesh, NodeSplit, Result, RowFrequencies, RowRange};
use std::num::NonZeroU32;

/// One number for links inside a node, one for links between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ByLink {
    /// Inside a node.
    pub in_node: f64,
    /// Between nodes.
    pub inter_node: f64,
}

impl ByLink {
    /// The sum of both products: bytes by seconds a byte, for instance.
    pub fn dot(self, other: Self) -> f64 {
        self.in_node * other.in_node + self.inter_node * other.inter_node
    }

    /// Both times `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { in_node: self.in_node * factor, inter_node: self.inter_node * factor }
    }

    /// Both, added.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            in_node: self.in_node + other.in_node,
            inter_node: self.inter_node + other.inter_node,
        }
    }
}

/// How the groups of a mesh, and the replica sets across them, lie among nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSpread {
    group: u32,
    part: u32,
    replicas: u32,
    near: u32,
}

impl GroupSpread {
    /// The groups of `mesh` among nodes of `node_ranks` ranks. Where nodes cut groups unevenly, all
    /// ranks count as nodes of their own, which is the dearest case.
    ///
    /// # Errors
    /// Nodes of no ranks, or that do not share out the world.
    pub fn new(mesh: Mesh, node_ranks: u32) -> Result<Self> {
        let split = NodeSplit::new(mesh, node_ranks)?;
        // A node has `part` positions of each of its groups, so `near` groups.
        let (part, near) = split.map_or((1, 1), |split| {
            let part = split.part_ranks();
            (part, node_ranks / part)
        });
        Ok(Self { group: mesh.group_ranks(), part, replicas: mesh.replicas(), near })
    }

    /// Ranks of a group, `g`.
    pub fn group_ranks(self) -> u32 {
        self.group
    }

    /// Ranks of a group on one node.
    pub fn part_ranks(self) -> u32 {
        self.part
    }

    /// Replicas of every row, `M = W / g`.
    pub fn replicas(self) -> u32 {
        self.replicas
    }

    /// Rows that travel to a rank for each row that it asks for: owners are spread evenly over the
    /// group, and its own rows need not travel.
    pub fn fetched(self) -> ByLink {
        let group = f64::from(self.group);
        ByLink {
            in_node: f64::from(self.part - 1) / group,
            inter_node: f64::from(self.group - self.part) / group,
        }
    }

    /// As [`fetched`](Self::fetched), but every row enters a node once for all ranks of the group
    /// there (*by node*): for each distinct row of the node, and for each distinct row of a rank.
    ///
    /// ```text
    ///   of the node   (n - 1) / n / part between nodes,  n = g / part nodes
    ///   of a rank     (part - 1) / part in the node
    /// ```
    pub fn fetched_by_node(self) -> ByLink {
        let (part, nodes) = (f64::from(self.part), f64::from(self.group / self.part));
        ByLink { in_node: (part - 1.0) / part, inter_node: (nodes - 1.0) / nodes / part }
    }

    /// Rows that a rank sends, and as many that it receives, to sum the gradients of one row of
    /// the tier over the replicas of each owner: rings in the nodes, then between them, of the part
    /// that each rank is left with (NCCL, hierarchical all-reduce).
    pub fn summed(self) -> ByLink {
        let (near, owned) = (f64::from(self.near), 1.0 / f64::from(self.group));
        let nodes = f64::from(self.replicas) / near;
        ByLink {
            in_node: 2.0 * (near - 1.0) / near * owned,
            inter_node: 2.0 * (nodes - 1.0) / nodes / near * owned,
        }
    }

    /// The part of them that goes in one hop of a ring.
    pub(crate) fn summed_in_a_hop(self) -> ByLink {
        let owned = 1.0 / f64::from(self.group);
        ByLink {
            in_node: owned / f64::from(self.near),
            inter_node: owned / f64::from(self.replicas),
        }
    }
}

/// Where the tiers of a table end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TierCut {
    /// The hottest rows, on every rank.
    pub replicated: u64,
    /// The next ones, once in every node. All others are once over all ranks.
    pub in_node: u64,
}

impl TierCut {
    /// Rows that never leave a node.
    pub fn hot(self) -> u64 {
        self.replicated.saturating_add(self.in_node)
    }

    /// The three tiers of a table of `rows` rows, hottest first; empty ones are kept.
    ///
    /// # Errors
    /// More hot rows than there are.
    pub fn tiers(self, rows: u64) -> Result<[RowRange; 3]> {
        Ok([
            RowRange::new(0, self.replicated)?,
            RowRange::new(self.replicated, self.hot())?,
            RowRange::new(self.hot(), rows)?,
        ])
    }
}

/// Whether a row that is asked for twice travels twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// It does.
    #[default]
    Kept,
    /// Once for each rank that asks for it.
    PerRank,
    /// Once for each node between nodes, once for each rank inside.
    PerNode,
}

/// What one rank sends in a step, and receives alike; a mean over the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TierTraffic {
    /// Rows forward and their gradients backward, the gradients of replicas not among them.
    pub rows: ByLink,
    /// Gradients of rows that are summed over replicas.
    pub summed: ByLink,
    /// Ids.
    pub ids: ByLink,
}

impl TierTraffic {
    /// Rows and gradients together: what the published figures count.
    pub fn vectors(self) -> ByLink {
        self.rows.plus(self.summed)
    }

    /// Bytes, for rows, gradients that are summed, and ids of so many bytes.
    pub fn bytes(self, row: f64, summed: f64, id: f64) -> ByLink {
        self.rows.times(row).plus(self.summed.times(summed)).plus(self.ids.times(id))
    }

    /// Both, added.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            rows: self.rows.plus(other.rows),
            summed: self.summed.plus(other.summed),
            ids: self.ids.plus(other.ids),
        }
    }
}

/// The look-ups of one table on equal nodes, ready to be cut into tiers.
///
/// ```
/// use emb_shard::{Access, Duplicates, RowFrequencies, TierCut, TieredLookups};
///
/// let zipf = RowFrequencies::new(&Access::Zipf { exponent: 1.05 }, 10_000_000)?;
/// let table = TieredLookups { frequencies: &zipf, lookups: 1e5, nodes: 16, node_ranks: 8 };
/// let row_wise = table.traffic(TierCut::default(), Duplicates::Kept)?;
/// let tiers = table.traffic(TierCut { replicated: 5_000, in_node: 30_000 }, Duplicates::Kept)?;
/// assert!(row_wise.vectors().inter_node > 3.0 * tiers.vectors().inter_node);
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TieredLookups<'a> {
    /// How often each row is looked up.
    pub frequencies: &'a RowFrequencies,
    /// Look-ups of one rank in a step, `n`.
    pub lookups: f64,
    /// Nodes, `N`.
    pub nodes: u32,
    /// Ranks of a node, `G`.
    pub node_ranks: u32,
}

impl TieredLookups<'_> {
    /// What a rank sends and receives in a step; a cut without hot rows is a row-wise table.
    ///
    /// # Errors
    /// More hot rows than the table has; no nodes or ranks, or more than [`MAX_WORLD`] of them; look-ups
    /// that are negative or not finite.
    pub fn traffic(&self, cut: TierCut, duplicates: Duplicates) -> Result<TierTraffic> {
        self.traffic_of_syncs(cut, duplicates, NonZeroU32::MIN)
    }

    /// As [`traffic`](Self::traffic), where gradients of replicas are summed only every `every`
    /// steps: cheaper, and no longer equal to one process.
    ///
    /// # Errors
    /// As [`traffic`](Self::traffic).
    pub fn traffic_of_syncs(
        &self,
        cut: TierCut,
        duplicates: Duplicates,
        every: NonZeroU32,
    ) -> Result<TierTraffic> {
        let (nodes, node_ranks) = (self.nodes, self.node_ranks);
        let world = nodes.saturating_mul(node_ranks);
        if world > MAX_WORLD {
            return Err(Error::WorldTooLarge { world, limit: MAX_WORLD });
        }
        let groups = [1, node_ranks, world];
        let mut all = TierTraffic::default();
        for (rows, group) in cut.tiers(self.frequencies.rows())?.into_iter().zip(groups) {
            let mesh = Mesh::new(world, group, Layout::Contiguous)?;
            let spread = GroupSpread::new(mesh, node_ranks)?;
            let summed = spread.summed().times(rows.rows() as f64 / f64::from(every.get()));
            all = all.plus(TierTraffic { summed, ..self.exchanged(rows, spread, duplicates)? });
        }
        Ok(all)
    }

    fn exchanged(
        &self,
        rows: RowRange,
        spread: GroupSpread,
        duplicates: Duplicates,
    ) -> Result<TierTraffic> {
        let law = self.frequencies;
        let distinct = |lookups| law.expected_unique_in(rows, lookups);
        let ids = match duplicates {
            Duplicates::Kept => {
                let share = law.share_of_top(rows.end()) - law.share_of_top(rows.start());
                spread.fetched().times(self.lookups * share)
            }
            Duplicates::PerRank => spread.fetched().times(distinct(self.lookups)?),
            Duplicates::PerNode => {
                let once = spread.fetched_by_node();
                let of_node = distinct(self.lookups * f64::from(spread.part_ranks()))?;
                ByLink {
                    in_node: once.in_node * distinct(self.lookups)?,
                    inter_node: once.inter_node * of_node,
                }
            }
        };
        Ok(TierTraffic { rows: ids.times(2.0), summed: ByLink::default(), ids })
    }
}
