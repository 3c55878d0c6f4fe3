//! Where the peers of every rank are: [`MeshShape`], the positions of a group cut by levels.

use super::ReplicaWay;
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
    /// `[levels][W]`, likewise: the ranks of the replica set that are in one unit with it.
    copies: Vec<Vec<Copies>>,
    /// Whether all groups lie alike: among their own ranks, replicas, and all others.
    pub(super) alike: bool,
}

/// The ranks of a replica set in one unit of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copies {
    /// How many there are.
    pub(super) ranks: u32,
    /// Of these, how many are in one unit of the level inside.
    pub(super) inside: u32,
    /// Units of the level inside that have some of them.
    pub(super) units: u32,
    /// Parts that the levels inside cut a sum into.
    pub(super) shares: u32,
}

impl Copies {
    /// Ranks that are reached over this level.
    pub(super) fn others(self) -> u32 {
        self.ranks - self.inside
    }
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
        // Groups of one: where a rank is among all others.
        let each = Mesh::new(mesh.world(), 1, mesh.layout())?;
        let (mut runs, mut copies, mut all, mut units) = (Vec::new(), Vec::new(), Vec::new(), None);
        for level in topology.levels() {
            let mut unit = vec![0; mesh.world() as usize];
            for number in 0..level.units() {
                for rank in level.ranks_of(number)? {
                    unit[rank.index()] = number;
                }
            }
            runs.push(level_runs(mesh, &unit));
            copies.push(level_copies(mesh, &unit, copies.last().zip(units.as_ref())));
            all.push(level_copies(each, &unit, all.last().zip(units.as_ref())));
            units = Some(unit);
        }
        let group = mesh.group_ranks() as usize;
        let same = |number, position| {
            let (rank, first) = (mesh.rank_at(number, position), mesh.rank_at(0, position));
            all.iter().all(|all| all[rank.index()] == all[first.index()])
        };
        let mut places = (0..mesh.replicas())
            .flat_map(|number| (0..mesh.group_ranks()).map(move |position| (number, position)));
        let alike = runs.iter().all(|runs| runs.chunks(group).all(|g| *g == runs[..group]))
            && copies.iter().all(|own| own.chunks(group).all(|g| *g == own[..group]))
            && places.all(|(number, position)| same(number, position));
        Ok(Self { mesh, part, runs, copies, alike })
    }

    /// Group and position of a rank, as one number.
    pub(super) fn place(&self, rank: u32) -> (usize, usize) {
        let (group, set) = self.mesh.place_of(Rank::new(rank));
        let position = set.get() as usize;
        ((group.get() * self.mesh.group_ranks()) as usize + position, position)
    }

    /// Levels of the topology.
    pub(super) fn levels(&self) -> usize {
        self.runs.len()
    }

    /// The positions in one unit of `level` with the rank at `place`.
    pub(super) fn run(&self, level: usize, place: usize) -> Run {
        self.runs[level][place]
    }

    /// The ranks of the replica set in one unit of `level` with the rank at `place`.
    pub(super) fn copies(&self, level: usize, place: usize) -> Copies {
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

/// `inner` has the same of the level inside, and its units.
fn level_copies(mesh: Mesh, unit: &[u32], inner: Option<(&Vec<Copies>, &Vec<u32>)>) -> Vec<Copies> {
    let (group, replicas) = (mesh.group_ranks(), mesh.replicas());
    let mut copies = vec![Copies { ranks: 1, inside: 1, units: 1, shares: 1 }; unit.len()];
    for position in 0..group {
        let unit_at = |number, unit: &[u32]| unit[mesh.rank_at(number, position).index()];
        let mut start = 0;
        while start < replicas {
            let (mut end, mut units) = (start + 1, 1);
            while end < replicas && unit_at(end, unit) == unit_at(start, unit) {
                units += match inner {
                    Some((_, inner)) => u32::from(unit_at(end, inner) != unit_at(end - 1, inner)),
                    None => 1,
                };
                end += 1;
            }
            for number in start..end {
                let place = (number * group + position) as usize;
                let (inside, shares) = inner.map_or((1, 1), |(inner, _)| {
                    (inner[place].ranks, inner[place].shares * inner[place].units)
                });
                copies[place] = Copies { ranks: end - start, inside, units, shares };
            }
            start = end;
        }
    }
    copies
}

impl ReplicaWay {
    /// Part of the bytes to be summed that a rank sends over a level, and receives, where
    /// `replicas` sum.
    pub(super) fn part(self, copies: Copies, replicas: u32) -> f64 {
        match self {
            Self::Rings => {
                let (units, shares) = (f64::from(copies.units), f64::from(copies.shares));
                2.0 * (units - 1.0) / units / shares
            }
            Self::Direct => 2.0 * f64::from(copies.others()) / f64::from(replicas),
        }
    }

    /// Messages, one after the other, in which a rank sends that: around a ring twice, less the
    /// part that it has; or to whoever sums, and from there to all.
    pub(super) fn messages(self, copies: Copies) -> f64 {
        match self {
            Self::Rings => 2.0 * f64::from(copies.units - 1),
            Self::Direct => 2.0,
        }
    }
}
