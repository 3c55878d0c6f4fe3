//! The rank arithmetic of 2D sparse parallelism: [`Mesh`].

use crate::{Error, GroupId, Id, Rank, ReplicaId, Result};
use serde::{Deserialize, Serialize};

/// Which ranks form a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Group `i` is `{i, M+i, 2M+i, ..}`; a replica set is `M` consecutive ranks, so the replicas
    /// of a shard sit close together and their sync stays inside a node.
    #[default]
    Strided,
    /// Group `i` is the `S` consecutive ranks from `i*S`; a replica set is strided by `S`, so the
    /// exchange inside a group stays close together and the sync crosses nodes.
    Contiguous,
}

/// `W` ranks as `M = W / S` sharding groups of `S` ranks each.
///
/// Every group holds every table once, cut over its `S` ranks in the same way, so the `k`-th ranks
/// of all groups hold the same shards: they are replica set `k`. A rank is thus a pair (group `i`
/// of `M`, replica set `k` of `S`), and its number is `k*M + i` (strided) or `i*S + k`
/// (contiguous). `S = W` is one group without replicas, `S = 1` is data parallelism.
///
/// For `W = 8, S = 4`, strided: groups `[0,2,4,6] [1,3,5,7]`, replica sets
/// `[0,1] [2,3] [4,5] [6,7]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mesh {
    world: u32,
    group_ranks: u32,
    layout: Layout,
}

impl Mesh {
    /// `world` ranks in groups of `group_ranks`.
    ///
    /// # Errors
    /// No ranks, groups of none, or a world that the group size does not divide.
    pub fn new(world: u32, group_ranks: u32, layout: Layout) -> Result<Self> {
        if world == 0 || group_ranks == 0 || !world.is_multiple_of(group_ranks) {
            return Err(Error::GroupSize { world, group_ranks });
        }
        Ok(Self { world, group_ranks, layout })
    }

    /// Ranks of the run, `W`.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// Ranks of one group, `S`: also the number of replica sets.
    pub fn group_ranks(&self) -> u32 {
        self.group_ranks
    }

    /// Replicas of every shard, `M = W / S`: also the number of groups.
    pub fn replicas(&self) -> u32 {
        self.world / self.group_ranks
    }

    /// Which ranks form a group.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The group that `rank` works in.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn group_of(&self, rank: Rank) -> Result<GroupId> {
        check(rank, self.world)?;
        Ok(GroupId::new(match self.layout {
            Layout::Strided => rank.get() % self.replicas(),
            Layout::Contiguous => rank.get() / self.group_ranks,
        }))
    }

    /// The replica set of `rank`, which is also its position in its group.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn replica_set_of(&self, rank: Rank) -> Result<ReplicaId> {
        check(rank, self.world)?;
        Ok(ReplicaId::new(match self.layout {
            Layout::Strided => rank.get() / self.replicas(),
            Layout::Contiguous => rank.get() % self.group_ranks,
        }))
    }

    /// The rank of group `group` that belongs to replica set `set`.
    ///
    /// # Errors
    /// A group or a replica set that does not exist.
    pub fn rank_of(&self, group: GroupId, set: ReplicaId) -> Result<Rank> {
        check(group, self.replicas())?;
        check(set, self.group_ranks)?;
        Ok(self.rank_at(group.get(), set.get()))
    }

    /// The ranks of a group, ascending: position `k` belongs to replica set `k`.
    ///
    /// # Errors
    /// A group that does not exist.
    pub fn group_members(
        &self,
        group: GroupId,
    ) -> Result<impl ExactSizeIterator<Item = Rank> + use<>> {
        check(group, self.replicas())?;
        let mesh = *self;
        Ok((0..self.group_ranks).map(move |set| mesh.rank_at(group.get(), set)))
    }

    /// The ranks of a replica set, ascending: position `i` works in group `i`.
    ///
    /// # Errors
    /// A replica set that does not exist.
    pub fn replica_members(
        &self,
        set: ReplicaId,
    ) -> Result<impl ExactSizeIterator<Item = Rank> + use<>> {
        check(set, self.group_ranks)?;
        let mesh = *self;
        Ok((0..self.replicas()).map(move |group| mesh.rank_at(group, set.get())))
    }

    /// Group and replica set of a rank that exists.
    pub(crate) fn place_of(&self, rank: Rank) -> (GroupId, ReplicaId) {
        let group = self.group_of(rank).expect("invariant: the caller checked the rank");
        let set = self.replica_set_of(rank).expect("invariant: the caller checked the rank");
        (group, set)
    }

    /// [`rank_of`](Self::rank_of) for a group and a replica set that exist.
    pub(crate) fn rank_at(&self, group: u32, set: u32) -> Rank {
        Rank::new(match self.layout {
            Layout::Strided => set * self.replicas() + group,
            Layout::Contiguous => group * self.group_ranks + set,
        })
    }
}

fn check<I: Id>(id: I, count: u32) -> Result<()> {
    if id.index() >= count as usize {
        let (index, count) = (id.index() as u64, u64::from(count));
        return Err(Error::NoSuch { kind: I::KIND, index, count });
    }
    Ok(())
}
