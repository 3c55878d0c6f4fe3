//! Operations whose data another transport carries: ranks meet, compare and fail here.

use super::Local;
use super::board::Call;
#[cfg(feature = "nccl")]
use super::board::Offer;
use super::options::Options;
use super::turn::Turn;
use super::world::World;
#[cfg(feature = "nccl")]
use crate::Result;
#[cfg(feature = "nccl")]
use crate::arguments::same_count;
use crate::failure::FailureKind;
#[cfg(feature = "nccl")]
use crate::failure::{Failure, list};
use crate::sync::Ordering;
use crate::{Error, Host, Operation};
use std::sync::Arc;
use std::time::Duration;

impl Local {
    /// One rank of a world whose others are in other processes: nobody is met here.
    pub(crate) fn remote(rank: usize, world: usize, options: &Options) -> Self {
        Self::remote_in(Arc::new(World::new(world, *options)), rank)
    }

    /// The same in a world that is there.
    pub(crate) fn remote_in(world: Arc<World<Host>>, rank: usize) -> Self {
        let group = Arc::new(world.group((0..world.ranks.len()).collect()));
        Self::new(&Arc::new(Host), &world, group, rank)
    }

    /// The same for a set of `ranks` of this one, which this rank is one of.
    pub(crate) fn remote_part(&self, ranks: &[usize]) -> Self {
        let own = ranks.iter().position(|&rank| rank == self.position);
        let position = own.expect("invariant: a rank joins the sets that list it");
        let members = ranks.iter().map(|&rank| self.group.members[rank]).collect();
        let group = Arc::new(self.world.group(members));
        Self::new(&self.space, &self.world, group, position)
    }

    /// The same for a duplicate.
    pub(crate) fn remote_duplicate(&self) -> Self {
        let members = self.group.members.to_vec();
        // Nobody else picks it up: it is born and complete at once.
        let own = [self.group.members[self.position]].to_vec();
        let (world, _) = self.world.duplicate((self.group.id, self.round, 0), own);
        let group = Arc::new(world.group(members));
        Self::new(&self.space, &world, group, self.position)
    }
}

impl Turn<'_, Host> {
    /// What this rank says about the operation.
    pub(crate) fn call(&self) -> Call {
        self.call
    }

    /// The operation.
    pub(crate) fn operation(&self) -> Operation {
        self.operation
    }

    /// This rank as numbered in the world, of the rank at a position.
    pub(crate) fn member(&self, position: usize) -> usize {
        self.group.members[position]
    }

    /// Fails because of an error while data moved, unless the world has failed before.
    pub(crate) fn broken(&self, error: &Error) -> Error {
        let reason = error.to_string();
        self.fail(self.world.own_failure(FailureKind::Error, self.rank(), &reason))
    }

    /// Fails because of an error of the rank at a position, which returns it.
    pub(crate) fn refused_by(&self, position: usize, error: Error) -> Error {
        if position == self.me {
            return self.refuse(error);
        }
        let rank = self.member(position);
        // Ranks are in the same step: that was compared.
        let step = self.world.step(self.rank());
        self.world.ranks[rank].step.store(step, Ordering::Relaxed);
        self.fail(self.world.own_failure(FailureKind::Error, rank, &error.to_string()))
    }

    /// Whether the timeout is over.
    pub(crate) fn is_late(&self) -> bool {
        self.began.elapsed() > self.world.options.timeout
    }

    /// Counts time in which this rank waited.
    pub(crate) fn waited_for(&self, time: Duration) {
        self.waited.set(self.waited.get() + time);
    }
}

#[cfg(feature = "nccl")]
impl Local {
    /// The number of this set in this process.
    pub(crate) fn number(&self) -> u64 {
        self.group.id
    }

    /// Tells peers of this set that this rank takes no further part; they fail where they wait.
    pub(crate) fn leave(&self) {
        self.group.board.leave(self.position);
    }
}

#[cfg(feature = "nccl")]
impl Turn<'_, Host> {
    /// Waits for all and compares what they call.
    pub(crate) fn meet(&mut self) -> Result<()> {
        self.announce();
        self.gather()?;
        self.done();
        Ok(())
    }

    /// [`meet`](Self::meet), and compares what each rank sends with what each expects.
    pub(crate) fn meet_with(&mut self, sends: &[usize], expects: &[usize]) -> Result<()> {
        let offer = Offer::<Host, u8> { parts: [None, None], counts: sends };
        let publication = self.publish(&offer);
        self.gather()?;
        let pins = self.pins()?;
        let name = self.operation.name();
        for (peer, &expected) in expects.iter().enumerate() {
            let sent = pins.offer::<u8>(peer).counts[self.me];
            same_count(name, self.member(peer), self.rank(), sent, expected)
                .map_err(|error| self.refuse(error))?;
        }
        drop(pins);
        self.done();
        self.wait_done()?;
        publication.end(self.round());
        Ok(())
    }

    /// Asked while this rank waits for data: fails where a peer has failed, or too late.
    pub(crate) fn go_on(&self) -> Result<()> {
        if let Some(failure) = self.world.failure() {
            return Err(self.world.error(self.operation, self.rank(), failure));
        }
        if !self.is_late() {
            return Ok(());
        }
        let what = "did not end: a rank, a link or a device has stopped";
        Err(self.late(Vec::new(), what))
    }

    /// Fails because these positions have said nothing, until what `ended` the waiting.
    pub(crate) fn absent(&self, positions: &[usize], ended: &str) -> Error {
        let mut missing: Vec<usize> = positions.iter().map(|&peer| self.member(peer)).collect();
        missing.sort_unstable();
        let what = format!("did not take place ({ended}): nothing was heard of {}", list(&missing));
        self.late(missing, &what)
    }

    fn late(&self, ranks: Vec<usize>, what: &str) -> Error {
        let step = self.world.step(self.rank());
        let message = format!(
            "{} of group {} in step {step} {what} within {:?}, says rank {}",
            self.operation,
            self.group.id,
            self.began.elapsed(),
            self.rank()
        );
        let operation = Some(self.operation);
        self.fail(Failure::new(FailureKind::Missing, ranks, operation, step, message))
    }

    /// Fails with what a peer says has happened.
    pub(crate) fn told(&self, failure: Failure) -> Error {
        self.fail(failure)
    }

    /// The failure of the world, if there is one.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.world.failure()
    }
}
