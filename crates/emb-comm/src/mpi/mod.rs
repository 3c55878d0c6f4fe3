//! Ranks as processes, started by an MPI launcher: [`Mpi`].
//!
//! A thin transport of our own over non-blocking messages between two processes: no call of the
//! library waits, so that a rank notices whatever happens while it waits. Ranks first agree on
//! what they are about to do, then data move:
//!
//! ```text
//!   rank 0                             rank 1
//!     call, counts --------------------> header of each, from each    mismatch: names who differs
//!     header of each, from each <------- call, counts
//!     receives and sends begin           receives and sends begin
//!     wait: ended? failed? late?         wait                         late: asks all where they are
//!     sum in rank order, gather          sum in rank order, gather
//! ```
//!
//! Beside it, failures travel on a channel of their own, to every process of the world.
//!
//! `calls.rs` has the calls of the library, `wire.rs` what is on its way, `late.rs` what happens
//! while a rank waits, `control.rs` the channel, `start.rs` how processes come together and end.
//! Sets of ranks are told apart by the tags of their messages: making one costs two headers, and
//! nothing of the library has to be freed.

mod calls;
mod chunks;
mod control;
mod exchange;
mod groups;
mod late;
mod options;
mod pace;
mod reduce;
mod start;
mod wire;

pub use options::MpiOptions;

use crate::failure::Failure;
use crate::header::verdict;
use crate::local::{CallTerms as Terms, Turn};
use crate::{Check, Collective, Element, Host, Local, Meters, Operation, Reduction, Result, Sum};
use std::fmt;
use std::sync::Arc;
use wire::{Room, Wire};

/// One rank of a world of processes, each started by an MPI launcher.
///
/// Made by [`start`](Mpi::start). An operation returns when its result is there, or with an error
/// within the timeout: work that should go on meanwhile is done by another thread, with a
/// [`duplicate`](Collective::duplicate).
///
/// **Sums** are taken in rank order, with the bits of every other transport of this crate.
///
/// **Failure.** A rank that refuses its arguments, gives up, panics or ends while others need it
/// tells all processes at once: those that wait fail within milliseconds. When the time of an
/// operation is over, ranks that wait tell each other where they are, and those that say nothing
/// are named. A process that is killed is noticed by the launcher, which ends the others.
///
/// **Memory.** After an error nothing of the library uses the caller's memory any more. Where a
/// message cannot be ended, because a peer was stopped in the midst of taking it, the failure is
/// printed and the job ends.
///
/// **End.** [`close`](Self::close) ends a set in order, on all ranks. Dropped without, it ends
/// quietly. When the process exits, it waits until the others have come to their end, too. After a
/// failure it waits up to 1.5 seconds, so that every rank can say what happened before the launcher
/// ends the job, and leaves the library as it is.
pub struct Mpi {
    /// What ranks know of each other.
    control: Local,
    wire: Wire,
    /// Headers; none once a failure has left them to the library.
    room: Option<Room>,
    /// What peers send of values to be reduced; grows to what is needed.
    parts: Vec<u64>,
    check: Check,
    /// The host of each rank of the world.
    hosts: Arc<[String]>,
    /// Whether it has ended in order.
    closed: bool,
}

/// Words of a header before the counts: the call, and what dividing ranks takes.
const FIXED: usize = 8;

/// Words of the call.
const CALL: usize = 4;

/// An operation in progress.
struct Op<'a> {
    turn: Turn<'a, Host>,
    wire: &'a mut Wire,
    room: &'a mut Option<Room>,
    parts: &'a mut Vec<u64>,
    check: Check,
}

impl Mpi {
    fn new(control: Local, wire: Wire, check: Check, hosts: &Arc<[String]>) -> Self {
        let world = control.world();
        let room = Some(Room::new(FIXED + 2 * world, world));
        let (parts, hosts) = (Vec::new(), Arc::clone(hosts));
        Self { control, wire, room, parts, check, hosts, closed: false }
    }

    /// What happened first in this world, if anything went wrong.
    pub fn failure(&self) -> Option<Failure> {
        self.control.failure()
    }

    /// The members of this set, as numbered in the world, by their rank in this set.
    pub fn members(&self) -> &[usize] {
        self.control.members()
    }

    /// The name of the host of every rank of the world, also where this is a set of some of them.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Ranks of a host, where every host has equally many and they are neighbours: then ranks
    /// `0..n` are on the first host, `n..2 * n` on the next, and so on.
    pub fn ranks_per_host(&self) -> Option<usize> {
        start::ranks_per_host(&self.hosts)
    }

    /// Ends this set in order, once all its ranks do.
    ///
    /// # Errors
    /// What happened first, if the world has failed; a rank that does not come to its end.
    pub fn close(mut self) -> Result<()> {
        self.barrier()?;
        self.closed = true;
        Ok(())
    }

    fn begin(&mut self, terms: Terms) -> Result<Op<'_>> {
        let Self { control, wire, room, parts, check, .. } = self;
        // Whether others have failed shows while this rank waits for them; asking the library
        // here would cost as much as a message.
        let turn = Turn::begin(control, terms)?;
        Ok(Op { turn, wire, room, parts, check: *check })
    }

    /// Tells all of the failure that an operation has ended in.
    fn tells<R>(&self, outcome: Result<R>) -> Result<R> {
        if outcome.is_err() {
            self.wire.control.tell();
        }
        outcome
    }
}

impl Op<'_> {
    /// Ranks compare what they call, if they are to. `fits` is what this rank finds wrong with its
    /// own arguments.
    fn agree(&mut self, fits: Result<()>) -> Result<()> {
        self.agree_on(fits, &[], &[])
    }

    /// [`agree`](Self::agree); and whether each sends to each what that one expects.
    fn agree_on(&mut self, fits: Result<()>, sends: &[usize], expects: &[usize]) -> Result<()> {
        fits.map_err(|error| self.turn.refuse(error))?;
        match self.check {
            Check::Calls => self.meet(sends, expects, [0; FIXED - CALL]),
            Check::Nothing => Ok(()),
        }
    }

    /// Ranks meet and compare what they call; `more` is for [`more`](Self::more) of the others.
    fn meet(
        &mut self,
        sends: &[usize],
        expects: &[usize],
        more: [u64; FIXED - CALL],
    ) -> Result<()> {
        let Self { turn, wire, .. } = self;
        let mut own =
            self.room.take().expect("invariant: it is lost only in a failure of the world");
        own.said[..CALL].copy_from_slice(&turn.call());
        own.said[CALL..FIXED].copy_from_slice(&more);
        let counts = sends.iter().chain(expects).map(|&count| count as u64);
        own.said[FIXED..].iter_mut().zip(counts).for_each(|(word, count)| *word = count);
        let shared = wire.share(turn, own)?;
        let words = shared.said.len();
        let header = |rank: usize| &shared.all[rank * words..][..words];
        let call = |rank: usize| [0, 1, 2, 3].map(|word| header(rank)[word]);
        let counts = |rank: usize| &header(rank)[FIXED..];
        let verdict = verdict(turn, call, (!expects.is_empty()).then_some(counts));
        *self.room = Some(shared);
        verdict
    }

    /// What a rank has said beside its call.
    fn more(&self, rank: usize) -> [u64; FIXED - CALL] {
        let room = self.room.as_ref().expect("invariant: asked after ranks have met");
        let header = &room.all[rank * room.said.len()..];
        [4, 5, 6, 7].map(|word| header[word])
    }

    /// Ends the operation well.
    fn end(self) {
        self.turn.end();
    }

    /// Counts what came from each rank.
    fn took<T: Element>(&mut self, counts: &[usize]) {
        for (peer, &count) in counts.iter().enumerate() {
            self.turn.took::<T>(peer, count);
        }
    }
}

impl Collective for Mpi {
    fn rank(&self) -> usize {
        self.control.rank()
    }

    fn world(&self) -> usize {
        self.control.world()
    }

    fn set_step(&mut self, step: u64) {
        self.control.set_step(step);
    }

    fn abort(&self, reason: &str) {
        self.control.abort(reason);
        self.wire.control.tell();
    }

    fn meters(&self) -> Meters {
        self.control.meters()
    }

    fn all_to_all_v<T: Element>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let done = self.all_to_all(send, send_counts, recv, recv_counts);
        self.tells(done)
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        let done = self.counts(send, recv);
        self.tells(done)
    }

    fn all_reduce<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        let done = self.reduce_all(Reduction::Sum, values);
        self.tells(done)
    }

    fn all_reduce_max<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        let done = self.reduce_all(Reduction::Max, values);
        self.tells(done)
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        let done = self.reduce_parts(send, recv, Some(counts));
        self.tells(done)
    }

    fn reduce_scatter<T: Sum>(&mut self, send: &[T], recv: &mut [T]) -> Result<()> {
        let done = self.reduce_parts(send, recv, None);
        self.tells(done)
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let done = self.all_gather(send, recv, recv_counts);
        self.tells(done)
    }

    fn broadcast<T: Element>(&mut self, values: &mut [T], root: usize) -> Result<()> {
        let done = self.copy_from_root(values, root);
        self.tells(done)
    }

    fn barrier(&mut self) -> Result<()> {
        let done = self.meet(Terms::new(Operation::Barrier));
        self.tells(done)
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let part = self.split_by(color, key);
        self.tells(part)
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let part = self.divide(groups);
        self.tells(part)
    }

    fn duplicate(&mut self) -> Result<Self> {
        let copy = self.copy_of_all();
        self.tells(copy)
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(self.control.guard());
        }
        let Wire { control, tag, .. } = &self.wire;
        if self.control.failure().is_some() {
            control.tell();
        } else if !self.closed {
            control.leave(*tag, self.control.step(), self.control.members());
        }
        control.forget(*tag);
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi")
            .field("rank", &self.control.rank())
            .field("members", &self.control.members())
            .finish_non_exhaustive()
    }
}
