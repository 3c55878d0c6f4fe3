//! Where the peers of every rank are: [`MeshShape`], the positions of a group cut by levels.

use crate::{Id, Mesh, NodeSplit, Rank, Result, Topology};

/// Positions of a group, from `start` to before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// The groups of a mesh on a topology.
#[derive(Clone, Debug)]
pub(super) struct MeshShape {
    pub(super) mesh: Mesh,
    /// Ranks of a group on one node of the plan; all of them where nodes cut groups unevenly.
    pub(super) part: u32,
    /// `[levels][W]` by group, then position: the positions of the group that are in one unit of
    /// the level with it.
    runs: Vec<Vec<Run>>,
    /// `[levels][W]`, likewise: how many ranks of the replica set are in one unit with it.
    copies: Vec<Vec<u32>>,
    /// Whether all groups lie alike.
    pub(super) alike: bool,
}

impl Run {
    pub(super) fn count(self) -> u32 {
        self.end - self.start
    }
}

impl MeshShape {
    pub(super) fn new(mesh: Mesh, node_ranks: u32, topology: &Topology) -> Result<Self> {
        let split = NodeSplit::new(mesh, node_ranks)?;
        let part = split.map_or(mesh.group_ranks(), |split| split.part_ranks());
        let (mut runs, mut copies) = (Vec::new(), Vec::new());
        for level in topology.levels() {
            let mut unit = vec![0; mesh.world() as usize];
            for number in 0..level.units() {
                for rank in level.ranks_of(number)? {
                    unit[rank.index()] = number;
                }
            }
            runs.push(level_runs(mesh, &unit));
            copies.push(level_copies(mesh, &unit));
        }
        let mut shape = Self { mesh, part, runs, copies, alike: true };
        let group = mesh.group_ranks() as usize;
        shape.alike = shape.runs.iter().all(|runs| runs.chunks(group).all(|g| *g == runs[..group]))
            && shape.copies.iter().all(|own| own.chunks(group).all(|g| *g == own[..group]));
        Ok(shape)
    }

    /// Group and position of a rank, as one number.
    pub(super) fn place(&self, rank: u32) -> (usize, usize) {
        let (group, set) = self.mesh.place_of(Rank::new(rank));
        let position = set.get() as usize;
        ((group.get() * self.mesh.group_ranks()) as usize + position, position)
    }

    /// The positions in one unit of `level` with the rank at `place`.
    pub(super) fn run(&self, level: usize, place: usize) -> Run {
        self.runs[level][place]
    }

    /// How many ranks of the replica set are in one unit of `level` with the rank at `place`.
    pub(super) fn copies(&self, level: usize, place: usize) -> u32 {
        self.copies[level][place]
    }

    /// Nodes that a group has parts on.
    pub(super) fn parts(&self) -> u32 {
        self.mesh.group_ranks() / self.part
    }
}

/// Neighbours in a group that are in one unit are consecutive: units are ranges of ranks, and both
/// layouts number positions by rank.
fn level_runs(mesh: Mesh, unit: &[u32]) -> Vec<Run> {
    let group = mesh.group_ranks();
    let mut runs = vec![Run::default(); unit.len()];
    for number in 0..mesh.replicas() {
        let unit_at = |position| unit[mesh.rank_at(number, position).index()];
        let mut start = 0;
        while start < group {
            let mut end = start + 1;
            while end < group && unit_at(end) == unit_at(start) {
                end += 1;
            }
            let first = (number * group + start) as usize;
            runs[first..first + (end - start) as usize].fill(Run { start, end });
            start = end;
        }
    }
    runs
}

fn level_copies(mesh: Mesh, unit: &[u32]) -> Vec<u32> {
    let (group, replicas) = (mesh.group_ranks(), mesh.replicas());
    let mut copies = vec![1; unit.len()];
    for position in 0..group {
        let unit_at = |number| unit[mesh.rank_at(number, position).index()];
        let mut start = 0;
        while start < replicas {
            let mut end = start + 1;
            while end < replicas && unit_at(end) == unit_at(start) {
                end += 1;
            }
            for number in start..end {
                copies[(number * group + position) as usize] = end - start;
            }
            start = end;
        }
    }
    copies
}
