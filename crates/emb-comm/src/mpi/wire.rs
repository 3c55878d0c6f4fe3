//! Messages of one set of ranks: begun together, waited for together, never longer than allowed.

use super::calls::{self, Ends, Request};
use super::chunks::chunks;
use super::control::Control;
use super::late::{PATIENCE, Since, Waiting};
use super::pace::Pace;
use crate::local::Turn;
use crate::{Element, Error, Host, Result};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a process that ends the job lets the others say the same of themselves: their time is
/// over in the same moment, and the launcher ends them at once.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How long messages may take to end after that, receives cancelled.
const GRACE: Duration = Duration::from_secs(1);

/// How long headers may take to end after a failure: they lie in memory that can be given up.
const SHORT: Duration = Duration::from_millis(5);

/// Looks at requests between two looks at everything else.
const LOOKS: u32 = 8;

/// The code that a job ends with where memory cannot be given back.
const STUCK: i32 = 70;

/// How one set of ranks sends and receives.
pub(super) struct Wire {
    pub(super) control: Arc<Control>,
    /// Tells messages of this set from those of others that share ranks.
    pub(super) tag: u64,
    /// The duplicate that this set is of, by its tag: ranks are in one operation of each at a time.
    pub(super) copy: u64,
    requests: Vec<Request>,
    statuses: Ends,
    /// What each request is for.
    pub(super) ends: Vec<End>,
    /// Bytes of all of them.
    bytes: u64,
    /// Questions answered.
    pub(super) answered: u64,
    /// How long to spin before others may run.
    pub(super) spins: Duration,
}

/// The far end of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The other rank, by its position in the set.
    pub(super) peer: usize,
    pub(super) receives: bool,
}

/// Words that ranks send each other before data move.
pub(super) struct Room {
    /// This rank's.
    pub(super) said: Vec<u64>,
    /// Those of all, by rank.
    pub(super) all: Vec<u64>,
}

impl Room {
    pub(super) fn new(words: usize, world: usize) -> Self {
        Self { said: vec![0; words], all: vec![0; words * world] }
    }
}

/// Messages that are begun, over memory that is borrowed for `'b`.
pub(super) struct Transfer<'a, 'b> {
    wire: &'a mut Wire,
    members: &'a [usize],
    borrows: PhantomData<Cell<&'b mut [u8]>>,
}

impl<'b> Transfer<'_, 'b> {
    /// Sends elements, if there are any: the receiver expects as many and leaves none out either.
    pub(super) fn send<T: Element>(&mut self, values: &'b [T], peer: usize) -> Result<()> {
        let bytes: &'b [u8] = bytemuck::cast_slice(values);
        for chunk in chunks(bytes.len()) {
            // SAFETY: borrowed for 'b, which outlives `Wire::run`; that returns, and a panic leaves
            // it, only after all requests have ended.
            unsafe { self.wire.send(&bytes[chunk], self.members, peer) }?;
        }
        Ok(())
    }

    /// Receives elements, if there are to be any.
    pub(super) fn recv<T: Element>(&mut self, values: &'b mut [T], peer: usize) -> Result<()> {
        let mut bytes: &'b mut [u8] = bytemuck::cast_slice_mut(values);
        for chunk in chunks(bytes.len()) {
            let (part, rest) = bytes.split_at_mut(chunk.len());
            bytes = rest;
            // SAFETY: as above.
            unsafe { self.wire.recv(part, self.members, peer) }?;
        }
        Ok(())
    }
}

impl Drop for Transfer<'_, '_> {
    fn drop(&mut self) {
        if !self.wire.requests.is_empty() {
            self.wire.end_or_abort("a panic while messages were on their way");
        }
    }
}

impl Wire {
    /// Of the set with this tag, which is of the duplicate `copy`; ranks spin so long before they
    /// let others run.
    pub(super) fn new(control: Arc<Control>, tag: u64, copy: u64, spins: Duration) -> Self {
        let (requests, statuses, ends) = (Vec::new(), Ends::default(), Vec::new());
        Self { control, tag, copy, requests, statuses, ends, bytes: 0, answered: 0, spins }
    }

    /// Begins messages, and returns once all have ended. Where that fails, the world fails, and
    /// receives are cancelled; if memory is in use even then, the job ends.
    pub(super) fn run<'b>(
        &mut self,
        turn: &Turn<'_, Host>,
        begin: impl FnOnce(&mut Transfer<'_, 'b>) -> Result<()>,
    ) -> Result<()> {
        let members = turn.members();
        let transfer = &mut Transfer { wire: self, members, borrows: PhantomData };
        let begun = begin(transfer);
        let wire = &mut *transfer.wire;
        let ended = begun.and_then(|()| wire.wait(turn, Waiting::Data));
        let ended = ended.map_err(|error| {
            let error = failed(turn, error);
            wire.control.tell();
            wire.end_or_abort(&error.to_string());
            error
        });
        wire.clear();
        ended
    }

    /// Sends this rank's words to all and receives theirs. Where that fails, the world fails.
    pub(super) fn share(&mut self, turn: &Turn<'_, Host>, mut room: Room) -> Result<Room> {
        let words = room.said.len();
        let (me, members) = (turn.me, turn.members());
        room.all[me * words..][..words].copy_from_slice(&room.said);
        let shared = self.begin_to_share(members, me, &mut room);
        let shared = shared.and_then(|()| self.wait(turn, Waiting::Headers));
        let shared = shared.map_err(|error| {
            let error = failed(turn, error);
            self.control.tell();
            self.cancel();
            error
        });
        if shared.is_err() && !self.ends_within(SHORT) {
            // The library may still use it.
            std::mem::forget(room);
            self.clear();
            return shared.map(|()| Room::new(0, 0));
        }
        self.clear();
        shared.map(|()| room)
    }

    fn begin_to_share(&mut self, members: &[usize], me: usize, room: &mut Room) -> Result<()> {
        let Room { said, all } = room;
        for (peer, to) in all.chunks_exact_mut(said.len()).enumerate() {
            if peer != me {
                // SAFETY: `share` keeps the memory until the request has ended, or for ever.
                unsafe { self.recv(bytemuck::cast_slice_mut(to), members, peer) }?;
            }
        }
        for turn in 1..members.len() {
            let peer = (me + turn) % members.len();
            // SAFETY: as above.
            unsafe { self.send(bytemuck::cast_slice(said), members, peer) }?;
        }
        Ok(())
    }

    /// # Safety
    /// The bytes stay as they are until all requests have ended.
    unsafe fn send(&mut self, bytes: &[u8], members: &[usize], peer: usize) -> Result<()> {
        let tag = self.tag as i32;
        // SAFETY: passed on.
        let request = unsafe { self.control.data.send(bytes, members[peer], tag) }?;
        self.begun(request, End { peer, receives: false }, bytes.len());
        Ok(())
    }

    /// # Safety
    /// Nobody reads or writes the bytes until all requests have ended.
    unsafe fn recv(&mut self, bytes: &mut [u8], members: &[usize], peer: usize) -> Result<()> {
        let tag = self.tag as i32;
        // SAFETY: passed on.
        let request = unsafe { self.control.data.recv(bytes, members[peer], tag) }?;
        self.begun(request, End { peer, receives: true }, bytes.len());
        Ok(())
    }

    fn begun(&mut self, request: Request, end: End, bytes: usize) {
        self.requests.push(request);
        self.ends.push(end);
        self.bytes += bytes as u64;
    }

    fn wait(&mut self, turn: &Turn<'_, Host>, what: Waiting) -> Result<()> {
        let began = Instant::now();
        let mut pace = Pace::new(self.spins, self.bytes);
        let (mut looks, mut since) = (0u32, Since::default());
        let waited = loop {
            match calls::all_ended(&mut self.requests, &mut self.statuses) {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
            if pace.is_slow() {
                if looks.is_multiple_of(LOOKS)
                    && let Err(error) = self.watch(turn, what, &mut since)
                {
                    break Err(error);
                }
                looks = looks.wrapping_add(1);
            }
            pace.pause();
        };
        turn.waited_for(began.elapsed());
        turn.waits_for(None);
        waited
    }

    /// Whether all messages have ended.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        calls::all_ended(&mut self.requests, &mut self.statuses)
    }

    /// Positions of the ranks whose messages have not ended: of those that send, if any.
    pub(super) fn missing(&mut self) -> Vec<usize> {
        let mut missing = [Vec::new(), Vec::new()];
        for (request, end) in self.requests.iter_mut().zip(&self.ends) {
            if !request.is_none() && !matches!(request.has_ended(), Ok(true)) {
                missing[usize::from(!end.receives)].push(end.peer);
            }
        }
        let [senders, receivers] = missing;
        let mut missing = if senders.is_empty() { receivers } else { senders };
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn cancel(&mut self) {
        for (request, end) in self.requests.iter_mut().zip(&self.ends) {
            if end.receives {
                request.cancel();
            }
        }
    }

    /// Whether all messages end within a time, well or not.
    fn ends_within(&mut self, time: Duration) -> bool {
        let began = Instant::now();
        let mut pause = Duration::from_micros(5);
        loop {
            let mut ended = true;
            for request in &mut self.requests {
                // One that ends in an error has ended, too.
                ended &= request.is_none() || !matches!(request.has_ended(), Ok(false));
            }
            if ended || began.elapsed() > time {
                return ended;
            }
            // Peers may have to be told before they take what is on its way.
            let _ = self.control.look();
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    /// Ends all messages, or else the job: the memory that they use cannot be given back.
    fn end_or_abort(&mut self, why: &str) {
        let ended = self.ends_within(PATIENCE) || {
            self.cancel();
            self.ends_within(GRACE)
        };
        if !ended {
            eprintln!("{why}; messages on their way do not end, so this job does");
            std::thread::sleep(LAST_WORDS);
            calls::abort(STUCK);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.requests.clear();
        self.ends.clear();
        self.bytes = 0;
    }
}

/// An error while messages were on their way, as the failure of the world.
fn failed(turn: &Turn<'_, Host>, error: Error) -> Error {
    match error {
        Error::Failed { .. } => error,
        own => turn.broken(&own),
    }
}
