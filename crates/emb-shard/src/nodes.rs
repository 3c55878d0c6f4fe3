//! How nodes cut sharding groups: [`NodeSplit`].

use crate::{Error, Layout, Mesh, Rank, Result};

/// Groups cut by nodes into equal parts of consecutive positions.
///
/// A node of an exchange is a physical node intersected with a group. Ranks of a physical node are
/// consecutive, and so are their positions in a group. Exchanges by node need every part to have
/// the same number of ranks: then the ranks at one index of every part form a *rail*, and whatever
/// leaves a node goes from rank to rank of a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeSplit {
    mesh: Mesh,
    part: u32,
}

impl NodeSplit {
    /// Cuts the groups of `mesh` by nodes of `node_ranks` ranks; `None` where that is uneven.
    ///
    /// # Errors
    /// Nodes of no ranks, or that do not share out the world.
    pub fn new(mesh: Mesh, node_ranks: u32) -> Result<Option<Self>> {
        let world = mesh.world();
        if node_ranks == 0 || !world.is_multiple_of(node_ranks) {
            return Err(Error::NodeRanks { world, node_ranks });
        }
        let (group, replicas) = (mesh.group_ranks(), mesh.replicas());
        let part = match mesh.layout() {
            // Neighbours in a group are `M` ranks apart.
            Layout::Strided if replicas >= node_ranks => Some(1),
            Layout::Strided if node_ranks.is_multiple_of(replicas) => Some(node_ranks / replicas),
            Layout::Contiguous if group.is_multiple_of(node_ranks) => Some(node_ranks),
            Layout::Contiguous if node_ranks.is_multiple_of(group) => Some(group),
            _ => None,
        };
        Ok(part.map(|part| Self { mesh, part }))
    }

    /// Ranks of a group on one node.
    pub fn part_ranks(&self) -> u32 {
        self.part
    }

    /// Nodes that a group touches.
    pub fn parts(&self) -> u32 {
        self.mesh.group_ranks() / self.part
    }

    /// The ranks of the group of `rank` on its node, ascending.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn node_of(&self, rank: Rank) -> Result<impl ExactSizeIterator<Item = Rank> + use<>> {
        let (group, position) = self.place(rank)?;
        let (mesh, part) = (self.mesh, self.part);
        let first = position / part * part;
        Ok((0..part).map(move |index| mesh.rank_at(group, first + index)))
    }

    /// The ranks of the group of `rank` that have its index on their nodes, ascending.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn rail_of(&self, rank: Rank) -> Result<impl ExactSizeIterator<Item = Rank> + use<>> {
        let (group, position) = self.place(rank)?;
        let (mesh, part) = (self.mesh, self.part);
        let first = position % part;
        Ok((0..self.parts()).map(move |node| mesh.rank_at(group, first + node * part)))
    }

    fn place(&self, rank: Rank) -> Result<(u32, u32)> {
        Ok((self.mesh.group_of(rank)?.get(), self.mesh.replica_set_of(rank)?.get()))
    }
}
