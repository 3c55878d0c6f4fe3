//! One operation of one rank, from its call to its end.

use super::Local;
use super::board::{Call, Offer, Pins, Publication, Stage, Stop};
use super::terms::{Terms, mismatch};
use super::world::{Group, World};
use crate::failure::{Failure, FailureKind, list};
use crate::meter::{Meters, Took};
use crate::sync::Ordering;
use crate::{Element, Error, Operation, Result, Space};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a rank waits for the reason why another has gone.
const GRACE: Duration = Duration::from_millis(50);

/// An operation in progress. While it lives, the rank is in no other.
pub(crate) struct Turn<'a, S: Space> {
    pub(crate) me: usize,
    pub(super) group: &'a Group<S>,
    pub(super) space: &'a S,
    pub(super) world: &'a World<S>,
    meters: &'a mut Meters,
    pub(super) operation: Operation,
    pub(super) call: Call,
    round: &'a mut u64,
    pub(super) began: Instant,
    pub(super) waited: Cell<Duration>,
    took: Took,
}

impl<'a, S: Space> Turn<'a, S> {
    pub(crate) fn begin(local: &'a mut Local<S>, terms: Terms) -> Result<Self> {
        let Local { space, world, group, position, round, meters } = local;
        let rank = group.members[*position];
        let operation = terms.operation;
        if let Some(failure) = world.failure() {
            return Err(world.error(operation, rank, failure));
        }
        let state = &world.ranks[rank];
        if state.busy.swap(true, Ordering::Acquire) {
            let error = Error::Busy { operation: operation.name(), rank };
            world.fail(world.own_failure(FailureKind::Error, rank, &error.to_string()));
            return Err(error);
        }
        state.group.store(group.id, Ordering::Relaxed);
        state.operation.store(operation as u64 + 1, Ordering::Relaxed);
        let call = terms.call(world.step(rank));
        Ok(Self {
            me: *position,
            group,
            space,
            world,
            meters,
            operation,
            call,
            round,
            began: Instant::now(),
            waited: Cell::new(Duration::ZERO),
            took: Took::default(),
        })
    }

    /// Number of ranks.
    pub(crate) fn world(&self) -> usize {
        self.group.members.len()
    }

    /// This and then the others, each rank starting at another one, so that not all read the same
    /// peer at once.
    pub(crate) fn peers(&self) -> impl Iterator<Item = usize> + use<S> {
        let (me, world) = (self.me, self.world());
        (0..world).map(move |turn| (me + turn) % world)
    }

    /// Starts the next round without offering anything.
    pub(super) fn announce(&mut self) {
        *self.round += 1;
        self.group.board.announce(self.me, *self.round, self.call);
    }

    /// Starts the next round with an offer.
    pub(super) fn publish<'o, T: Element>(
        &mut self,
        offer: &'o Offer<'_, S, T>,
    ) -> Publication<'o, S>
    where
        'a: 'o,
    {
        *self.round += 1;
        let group: &'a Group<S> = self.group;
        group.board.publish(self.me, *self.round, self.call, offer)
    }

    pub(super) fn round(&self) -> u64 {
        *self.round
    }

    /// Waits until all have started this round, and compares what they call.
    pub(super) fn gather(&self) -> Result<()> {
        self.wait(Stage::Published)?;
        let round = self.round();
        let board = &self.group.board;
        self.compare(|peer| board.call(peer, round))
    }

    /// Fails where calls differ.
    pub(crate) fn compare(&self, call: impl Fn(usize) -> Call) -> Result<()> {
        if (0..self.world()).all(|peer| call(peer) == self.call) {
            return Ok(());
        }
        let calls: Vec<Call> = (0..self.world()).map(call).collect();
        Err(self.fail(mismatch(&calls, &self.group.members, self.operation)))
    }

    /// Every rank's offer of this round, for as long as the result lives.
    pub(super) fn pins(&self) -> Result<Pins<'a, S>> {
        let group: &'a Group<S> = self.group;
        if let Some(pins) = group.board.pin(self.me, self.round()) {
            return Ok(pins);
        }
        // A peer gave up and says why, before or very soon after.
        let deadline = Instant::now() + GRACE;
        while !self.world.has_failed() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let reason = "a peer withdrew what it had offered";
        let rank = self.rank();
        Err(self.fail(self.world.own_failure(FailureKind::Error, rank, reason)))
    }

    /// Declares that this rank has read all it wants of this round.
    pub(super) fn done(&self) {
        self.group.board.done(self.me, self.round());
    }

    /// Waits until all are done with this round.
    pub(super) fn wait_done(&self) -> Result<()> {
        self.wait(Stage::Done)
    }

    /// Waits until all have started this round: so all are done with the round before.
    pub(super) fn wait_published(&self) -> Result<()> {
        self.wait(Stage::Published)
    }

    fn wait(&self, stage: Stage) -> Result<()> {
        let began = Instant::now();
        let waits_for = &self.world.ranks[self.rank()].waits_for;
        let give_up = |position: usize| {
            waits_for.store(self.group.members[position] as u64 + 1, Ordering::Relaxed);
            let late = self.began.elapsed() > self.world.options.timeout;
            (late || self.world.has_failed()).then_some(())
        };
        let waited = self.group.board.wait(*self.round, stage, give_up);
        self.waited.set(self.waited.get() + began.elapsed());
        let waited = waited.map_err(|stop| match (self.world.failure(), stop) {
            (Some(failure), _) => self.world.error(self.operation, self.rank(), failure),
            (None, Stop::Gone(peer)) => self.peer_left(peer),
            (None, Stop::GaveUp(())) => self.fail(self.missing(stage)),
        });
        waits_for.store(0, Ordering::Relaxed);
        waited
    }

    /// Adds what this rank took from a peer.
    pub(crate) fn took<T: Element>(&mut self, peer: usize, elements: usize) {
        let bytes = (elements * size_of::<T>()) as u64;
        let [own, peer] = [self.me, peer].map(|position| self.group.members[position]);
        if own == peer {
        } else if self.world.options.same_node(own, peer) {
            self.took.intra_node_bytes += bytes;
        } else {
            self.took.inter_node_bytes += bytes;
        }
    }

    /// Ends the operation well.
    pub(crate) fn end(self) {
        let (waited, total) = (self.waited.get(), self.began.elapsed());
        self.meters.add(self.operation, Took { waited, total, ..self.took });
    }

    /// Fails the world with an error of this rank and returns it.
    pub(crate) fn refuse(&self, error: Error) -> Error {
        let reason = error.to_string();
        let failure = self.world.own_failure(FailureKind::Error, self.rank(), &reason);
        self.world.fail(failure);
        error
    }

    pub(super) fn rank(&self) -> usize {
        self.group.members[self.me]
    }

    /// Fails the world unless it has failed before; the error says what happened first.
    pub(super) fn fail(&self, failure: Failure) -> Error {
        self.world.error(self.operation, self.rank(), self.world.fail(failure))
    }

    /// A rank that fails drops its communicators before it says why: the reason may follow.
    fn peer_left(&self, peer: usize) -> Error {
        let deadline = Instant::now() + GRACE.min(self.world.options.timeout);
        while !self.world.has_failed() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(50));
        }
        let rank = self.group.members[peer];
        let (last, step) = (self.world.step(rank), self.world.step(self.rank()));
        let operation = self.operation;
        let message = format!(
            "rank {rank} ended in step {last}, without taking part in {operation} of step {step}"
        );
        self.fail(Failure::new(FailureKind::Left, vec![rank], Some(operation), step, message))
    }

    fn missing(&self, stage: Stage) -> Failure {
        let here = |peer: &usize| self.group.board.has_reached(*peer, *self.round, stage);
        let rank = |peer: usize| self.group.members[peer];
        let (here, missing): (Vec<usize>, Vec<usize>) = (0..self.world()).partition(here);
        let [mut here, mut missing] =
            [here, missing].map(|peers| -> Vec<usize> { peers.into_iter().map(rank).collect() });
        here.sort_unstable();
        missing.sort_unstable();
        // Those that wait for others are not to blame: those others are.
        let mut culprits: Vec<usize> =
            missing.iter().map(|&rank| self.world.culprit(rank)).collect();
        culprits.sort_unstable();
        culprits.dedup();
        let mut places = missing.clone();
        places.extend(culprits.iter().filter(|rank| !missing.contains(rank)));
        let places: Vec<String> =
            places.into_iter().map(|rank| self.world.whereabouts(rank)).collect();
        let step = self.world.step(self.rank());
        let verb = if stage == Stage::Published { "arrive at" } else { "finish" };
        let message = format!(
            "{} did not {verb} {} of group {} in step {step} within {:?}, {} did: {}",
            list(&missing),
            self.operation,
            self.group.id,
            self.world.options.timeout,
            list(&here),
            places.join(", ")
        );
        Failure::new(FailureKind::Missing, culprits, Some(self.operation), step, message)
    }
}

impl<S: Space> Drop for Turn<'_, S> {
    fn drop(&mut self) {
        let state = &self.world.ranks[self.rank()];
        state.operation.store(0, Ordering::Relaxed);
        state.busy.store(false, Ordering::Release);
    }
}
