//! Ranks on a device each, over NCCL: [`Nccl`].
//!
//! A thin communicator of our own over the library's functions. Ranks first agree on what they are
//! about to do, then NCCL moves the data, and the rank waits until they have arrived, looking out
//! for failures:
//!
//! ```text
//!   rank 0                                rank 1
//!     call, counts                          call, counts
//!     agree: threads on a board, processes by a header each        mismatch: names who differs
//!     queue on the communicator's stream    queue
//!     wait: done? error? failed? late?      wait                   late: names who is missing
//! ```
//!
//! `library.rs` finds the library, `comm.rs` has its calls, `link.rs` watches them; `header.rs` is
//! how processes agree, `control/` how they tell each other of failures.

mod comm;
mod control;
mod exchange;
mod groups;
mod header;
mod library;
mod link;
mod options;
mod reduce;
mod start;

pub use control::NcclControl;
pub use options::{NcclOptions, Sums};
pub use start::UniqueId;

use crate::cuda::DeviceSpace;
use crate::failure::Failure;
use crate::local::{CallTerms as Terms, Turn};
use crate::{Check, Collective, Element, Host, Local, Meters, Operation, Reduction, Result, Sum};
use emb_cuda::{View, ViewMut};
use header::Headers;
use link::Link;
use std::fmt;
use std::time::Duration;

/// One rank of a world of GPUs, a device each.
///
/// Made by [`threads`](Nccl::threads) for the threads of one process, or by
/// [`from_id_with`](Nccl::from_id_with) in many processes. An operation returns when its result is there, or
/// with an error within the timeout: work that should go on meanwhile is queued before, or done by
/// another thread, with a [`duplicate`](Collective::duplicate).
///
/// **Sums** are taken in rank order, with the bits of every other transport of this crate, unless
/// [`Sums::Native`] asks for NCCL's own.
///
/// **Failure.** Before data move, ranks compare calls and counts. A rank that gives up tells the
/// threads of its process at once, and with an [`NcclControl`] those of other processes too, before
/// it ends its communicators: every rank's error names who failed first. Without one, ranks of other
/// processes that wait for its next call are told when it makes one or ends, and else time out; with
/// several sets at work they may see an error of the library instead. An error of the library, or a
/// timeout, ends the communicator; ending it can take ten seconds more, where the library hangs
/// itself.
///
/// **With a duplicate at work**, no thread may wait for the whole device: neither
/// `cuCtxSynchronize` nor freeing memory other than a stream's. A rank that does so waits for a
/// peer that may wait for this rank. Nothing of this project does.
///
/// **End.** [`close`](Self::close) ends it in order and says whether that went well. Dropped
/// without, it does the same quietly; dropped after a failure or in a panic it is ended at once.
pub struct Nccl {
    /// What ranks say to each other and know of each other. It ends after the link.
    control: Local,
    link: Link,
    /// How ranks of several processes agree; `None` among threads of one.
    headers: Option<Headers>,
    options: NcclOptions,
}

/// An operation in progress.
struct Op<'a> {
    turn: Turn<'a, Host>,
    link: &'a mut Link,
    headers: &'a mut Option<Headers>,
    options: NcclOptions,
}

impl Nccl {
    /// What happened first in this world, if anything went wrong.
    pub fn failure(&self) -> Option<Failure> {
        self.control.failure()
    }

    /// The members of this set, as numbered in the world, by their rank in this set.
    pub fn members(&self) -> &[usize] {
        self.control.members()
    }

    /// The space of this rank: its device and the stream that its exchanges are queued on.
    pub fn space(&self) -> &DeviceSpace {
        &self.link.space
    }

    /// Ends this rank's communicator in order, once all ranks do.
    ///
    /// # Errors
    /// What happened first, if the world has failed; an end that takes longer than the timeout.
    pub fn close(mut self) -> Result<()> {
        drop(self.turn(Terms::new(Operation::Barrier))?);
        let timeout = self.options.base.timeout;
        self.end(timeout)
    }

    /// Ends the communicator in order. Those that still wait for this rank in it are told.
    fn end(&mut self, timeout: Duration) -> Result<()> {
        let Self { control, link, .. } = self;
        let Some(member) = &link.member else { return link.close(timeout, || false) };
        member.leave();
        link.close(timeout, || control.failure().is_some())
    }

    fn begin(&mut self, terms: Terms) -> Result<Op<'_>> {
        let op = self.turn(terms)?;
        if let Some(member) = &op.link.member {
            member.begins();
        }
        Ok(op)
    }

    fn turn(&mut self, terms: Terms) -> Result<Op<'_>> {
        let Self { control, link, headers, options } = self;
        if let (Some(failure), Some(headers)) = (control.failure(), headers.as_mut()) {
            headers.part(link, &failure);
        }
        let turn = Turn::begin(control, terms).inspect_err(|_| tell(link))?;
        Ok(Op { turn, link, headers, options: *options })
    }

    /// Tells all of the failure that an operation has ended in.
    fn tells<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|_| tell(&self.link))
    }
}

/// Tells other processes of the failure of the world, if there is a way.
fn tell(link: &Link) {
    if let Some(member) = &link.member {
        member.tell();
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
        match self.options.check {
            Check::Calls => self.meet(fits, sends, expects),
            Check::Nothing => fits.map_err(|error| self.turn.refuse(error)),
        }
    }

    /// Ranks meet and compare what they call.
    fn meet(&mut self, fits: Result<()>, sends: &[usize], expects: &[usize]) -> Result<()> {
        let Self { turn, link, headers, .. } = self;
        let fits = fits.map_err(|error| turn.refuse(error));
        let Some(headers) = headers else {
            fits?;
            return if expects.is_empty() { turn.meet() } else { turn.meet_with(sends, expects) };
        };
        if let (Err(_), Some(failure)) = (&fits, turn.failure()) {
            headers.part(link, &failure);
        }
        fits?;
        headers.agree(turn, link, sends, expects)
    }
}

impl Collective<DeviceSpace> for Nccl {
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
        tell(&self.link);
    }

    fn meters(&self) -> Meters {
        self.control.meters()
    }

    fn all_to_all_v<T: Element>(
        &mut self,
        send: View<'_, T>,
        send_counts: &[usize],
        recv: ViewMut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        let done = self.all_to_all(send, send_counts, recv, recv_counts);
        self.tells(done)
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        let done = self.counts(Operation::ExchangeCounts, send, recv);
        self.tells(done)
    }

    fn all_reduce<T: Sum>(&mut self, values: ViewMut<'_, T>) -> Result<()> {
        let done = self.reduce_all(Reduction::Sum, values);
        self.tells(done)
    }

    fn all_reduce_max<T: Sum>(&mut self, values: ViewMut<'_, T>) -> Result<()> {
        let done = self.reduce_all(Reduction::Max, values);
        self.tells(done)
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: View<'_, T>,
        recv: ViewMut<'_, T>,
        counts: &[usize],
    ) -> Result<()> {
        let done = self.reduce_parts(send, recv, Some(counts));
        self.tells(done)
    }

    fn reduce_scatter<T: Sum>(&mut self, send: View<'_, T>, recv: ViewMut<'_, T>) -> Result<()> {
        let done = self.reduce_parts(send, recv, None);
        self.tells(done)
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: View<'_, T>,
        recv: ViewMut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        let done = self.all_gather(send, recv, recv_counts);
        self.tells(done)
    }

    fn broadcast<T: Element>(&mut self, values: ViewMut<'_, T>, root: usize) -> Result<()> {
        let done = self.copy_from_root(values, root);
        self.tells(done)
    }

    fn barrier(&mut self) -> Result<()> {
        let done = self.meet(Terms::new(Operation::Barrier));
        self.tells(done)
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let done = self.split_by(color, key);
        self.tells(done)
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let done = self.divide(groups);
        self.tells(done)
    }

    fn duplicate(&mut self) -> Result<Self> {
        let done = self.copy_of_all();
        self.tells(done)
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        /// How long an end without failure may take before it is given up: peers may be behind.
        const PATIENCE: Duration = Duration::from_secs(10);
        if std::thread::panicking() {
            drop(self.control.guard());
        }
        tell(&self.link);
        self.control.leave();
        match (self.control.failure(), &mut self.headers) {
            (None, _) => {
                let _ = self.end(PATIENCE.min(self.options.base.timeout));
                return;
            }
            (Some(failure), Some(headers)) => headers.part(&mut self.link, &failure),
            (Some(_), None) => {}
        }
        self.link.give_up();
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nccl")
            .field("rank", &self.control.rank())
            .field("members", &self.control.members())
            .field("device", self.link.stream.device())
            .finish_non_exhaustive()
    }
}
