//! Ranks as threads of one process: [`Local`].
//!
//! The crate's documentation draws the protocol; `board.rs` is its core and has the only `unsafe`.

#[cfg(any(feature = "nccl", feature = "mpi"))]
mod awaited;
mod board;
#[cfg(any(feature = "nccl", feature = "mpi"))]
mod carried;
mod exchange;
mod groups;
#[cfg(loom)]
pub mod model;
mod options;
mod reduce;
mod run;
mod terms;
#[cfg(all(test, not(loom)))]
mod tests;
mod turn;
pub(crate) mod world;

#[cfg(any(feature = "nccl", feature = "mpi"))]
pub(crate) use board::Call;
pub use options::Options;
#[cfg(any(feature = "nccl", feature = "mpi"))]
pub(crate) use reduce::chunk;
pub use run::{Guard, run, run_over};
#[cfg(any(feature = "nccl", feature = "mpi"))]
pub(crate) use terms::Terms as CallTerms;
#[cfg(any(feature = "nccl", feature = "mpi"))]
pub(crate) use turn::Turn;

use crate::failure::{Failure, FailureKind};
use crate::sync::Ordering;
use crate::{Collective, Element, Host, Meters, Operation, Reduction, Result, Space, Sum};
use std::fmt;
use std::sync::Arc;
use terms::Terms;
use world::{Group, World};

/// One rank among threads of this process.
///
/// Made by [`run`], or by [`world`](Local::world) for threads of your own. It moves to the rank's
/// thread. Dropped while peers still need it, or in a panic, it makes them fail by name; dropped
/// after a failure it does nothing.
pub struct Local<S: Space = Host> {
    space: Arc<S>,
    world: Arc<World<S>>,
    group: Arc<Group<S>>,
    /// This rank's place in the group.
    position: usize,
    /// The last round of the group.
    round: u64,
    meters: Meters,
}

impl Local {
    /// The ranks of a new world, in order, for one thread each.
    pub fn world(ranks: usize, options: &Options) -> Vec<Self> {
        Self::over(vec![Host; ranks], options)
    }
}

impl<S: Space> Local<S> {
    /// The ranks of a new world, one for each of `spaces`.
    pub fn over(spaces: Vec<S>, options: &Options) -> Vec<Self> {
        let world = Arc::new(World::new(spaces.len(), *options));
        let group = Arc::new(world.group((0..spaces.len()).collect()));
        let ranks = spaces.into_iter().enumerate();
        ranks
            .map(|(rank, space)| Self::new(&Arc::new(space), &world, Arc::clone(&group), rank))
            .collect()
    }

    fn new(space: &Arc<S>, world: &Arc<World<S>>, group: Arc<Group<S>>, position: usize) -> Self {
        let (space, world) = (Arc::clone(space), Arc::clone(world));
        Self { space, world, group, position, round: 0, meters: Meters::default() }
    }

    /// The members of this set, as numbered in the world, by their rank in this set.
    pub fn members(&self) -> &[usize] {
        &self.group.members
    }

    /// The rank in this set of a rank of the world, as [`broadcast`](Collective::broadcast) takes
    /// it; `None` for a rank that is not a member.
    pub fn rank_of(&self, world_rank: usize) -> Option<usize> {
        self.group.members.iter().position(|&member| member == world_rank)
    }

    /// What happened first in this world, if anything went wrong.
    pub fn failure(&self) -> Option<Failure> {
        self.world.failure()
    }

    /// Starts the meters of this set anew.
    pub fn reset_meters(&mut self) {
        self.meters = Meters::default();
    }

    /// Fails the world when dropped before [`Guard::done`] is called.
    pub fn guard(&self) -> Guard<S> {
        Guard::new(Arc::clone(&self.world), self.world_rank())
    }

    fn world_rank(&self) -> usize {
        self.group.members[self.position]
    }
}

impl<S: Space> Collective<S> for Local<S> {
    fn rank(&self) -> usize {
        self.position
    }

    fn world(&self) -> usize {
        self.group.members.len()
    }

    fn set_step(&mut self, step: u64) {
        self.world.ranks[self.world_rank()].step.store(step, Ordering::Relaxed);
    }

    fn abort(&self, reason: &str) {
        let failure = self.world.own_failure(FailureKind::Aborted, self.world_rank(), reason);
        self.world.fail(failure);
    }

    fn meters(&self) -> Meters {
        self.meters
    }

    fn all_to_all_v<T: Element>(
        &mut self,
        send: S::Ref<'_, T>,
        send_counts: &[usize],
        recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        self.all_to_all(send, send_counts, recv, recv_counts)
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        self.counts(Operation::ExchangeCounts, send, recv)
    }

    fn all_reduce<T: Sum>(&mut self, values: S::Mut<'_, T>) -> Result<()> {
        self.reduce_all(Reduction::Sum, values)
    }

    fn all_reduce_max<T: Sum>(&mut self, values: S::Mut<'_, T>) -> Result<()> {
        self.reduce_all(Reduction::Max, values)
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: S::Ref<'_, T>,
        recv: S::Mut<'_, T>,
        counts: &[usize],
    ) -> Result<()> {
        self.reduce_parts(send, recv, Some(counts))
    }

    fn reduce_scatter<T: Sum>(&mut self, send: S::Ref<'_, T>, recv: S::Mut<'_, T>) -> Result<()> {
        self.reduce_parts(send, recv, None)
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: S::Ref<'_, T>,
        recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        self.all_gather(send, recv, recv_counts)
    }

    fn broadcast<T: Element>(&mut self, values: S::Mut<'_, T>, root: usize) -> Result<()> {
        self.copy_from_root(values, root)
    }

    fn barrier(&mut self) -> Result<()> {
        self.meet(Terms::new(Operation::Barrier))
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        self.split_by(color, key)
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        self.divide(groups)
    }

    fn duplicate(&mut self) -> Result<Self> {
        self.copy_of_all()
    }
}

impl<S: Space> Drop for Local<S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let world = &self.world;
            world.fail(world.own_failure(FailureKind::Panic, self.world_rank(), ""));
        }
        self.group.board.leave(self.position);
    }
}

impl<S: Space> fmt::Debug for Local<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local")
            .field("rank", &self.position)
            .field("members", &self.group.members)
            .finish_non_exhaustive()
    }
}
