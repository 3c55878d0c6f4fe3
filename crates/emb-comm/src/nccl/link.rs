//! A communicator with its stream, watched: nothing on it waits longer than allowed.

use super::comm::{Comm, Group};
use super::control::Member;
use crate::cuda::DeviceSpace;
use crate::local::Turn;
use crate::sync::Backoff;
use crate::{Error, Host, Result};
use emb_cuda::{Kept, Stream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a rank waits for the library to end what was given up. Aborting needs no peers, but
/// has been seen to hang where they do not abort too.
const ABORT: Duration = Duration::from_secs(5);

/// One rank's end: what is queued, on which stream, and what it needs for it.
pub(super) struct Link {
    /// None after it was given up.
    comm: Option<Comm>,
    pub(super) stream: Stream,
    pub(super) space: DeviceSpace,
    /// What peers send of values to be reduced; grows to what is needed.
    pub(super) parts: Kept<u8>,
    /// How other processes are told of failures, where they are.
    pub(super) member: Option<Member>,
    timeout: Duration,
}

impl Link {
    pub(super) fn new(
        comm: Comm,
        stream: Stream,
        timeout: Duration,
        member: Option<Member>,
    ) -> Self {
        let space = DeviceSpace::new(&stream);
        Self { comm: Some(comm), stream, space, parts: Kept::default(), member, timeout }
    }

    /// Called once the communicator is ready for the first time.
    pub(super) fn settle(&mut self) {
        if let Some(comm) = &mut self.comm {
            comm.settle();
        }
    }

    /// The communicator. It is there as long as the world has not failed.
    pub(super) fn comm(&self) -> Result<&Comm> {
        self.comm.as_ref().ok_or_else(|| Error::Space("the communicator was given up".to_owned()))
    }

    /// Queues calls as one, and returns once they are on the stream.
    pub(super) fn group(
        &self,
        turn: &Turn<'_, Host>,
        calls: impl FnOnce(&Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let comm = self.comm()?;
        comm.group(calls)?;
        until(|| comm.is_ready(), || self.watch(turn))
    }

    /// Queues a call, and returns once it is on the stream.
    pub(super) fn call(
        &self,
        turn: &Turn<'_, Host>,
        call: impl FnOnce(&Comm) -> Result<()>,
    ) -> Result<()> {
        let comm = self.comm()?;
        call(comm)?;
        until(|| comm.is_ready(), || self.watch(turn))
    }

    /// Asked while this rank waits: fails where a peer has failed or gone, or too late.
    pub(super) fn watch(&self, turn: &Turn<'_, Host>) -> Result<()> {
        match &self.member {
            Some(member) => member.watch(turn),
            None => turn.go_on(),
        }
    }

    /// An error while data moved, as the failure of the world: all are told, then the communicator
    /// is ended. Where the library only says that something has happened to a peer, that one may
    /// say what.
    pub(super) fn fail(&mut self, turn: &Turn<'_, Host>, error: Error) -> Error {
        let error = match (error, &self.member) {
            (error @ Error::Failed { .. }, _) => error,
            (error, None) => turn.broken(&error),
            (error, Some(member)) => {
                member.wait_for_reason(turn, &error);
                turn.broken(&error)
            }
        };
        self.give_up();
        error
    }

    /// Queues work behind that of `homes` and before what they do next, and returns once it is
    /// done. Where it fails, it is ended, and the world with it.
    pub(super) fn run(
        &mut self,
        turn: &Turn<'_, Host>,
        homes: &[&Stream],
        queue: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let began = Instant::now();
        let outcome = self.attempt(turn, homes, queue);
        turn.waited_for(began.elapsed());
        outcome.map_err(|error| self.fail(turn, error))
    }

    fn attempt(
        &mut self,
        turn: &Turn<'_, Host>,
        homes: &[&Stream],
        queue: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        // The library works on the device of the calling thread.
        self.stream.device().bind()?;
        for home in homes {
            self.stream.after(home)?;
        }
        let queued = queue(self);
        // Also where that failed: memory is freed, by its home, behind what was queued.
        for home in homes {
            home.after(&self.stream)?;
        }
        queued?;
        let comm = self.comm()?;
        let done = || Ok(self.stream.is_done()?);
        // What the library notices by itself comes up while this rank waits.
        let watch = || comm.is_ready().map(drop).and_then(|()| self.watch(turn));
        until(done, watch)
    }

    /// Ends the communicator and what is in progress on it, in bounded time. All know why before.
    pub(super) fn give_up(&mut self) {
        if let Some(member) = &self.member {
            member.tell();
        }
        let Some(comm) = self.comm.take() else { return };
        let (ended, wait) = mpsc::channel();
        let abort = std::thread::Builder::new().name("nccl abort".to_owned()).spawn(move || {
            comm.abort();
            let _ = ended.send(());
        });
        if abort.is_ok() {
            let _ = wait.recv_timeout(ABORT.min(self.timeout));
        }
        // Nothing of it writes to the caller's memory any more once the stream is done.
        let deadline = Instant::now() + ABORT.min(self.timeout);
        let late = || {
            let late = Instant::now() > deadline;
            if late { Err(Error::Space("the stream does not end".to_owned())) } else { Ok(()) }
        };
        let _ = until(|| Ok(self.stream.is_done()?), late);
    }

    /// Ends the communicator in order, as all ranks do, unless the world `has_failed` meanwhile.
    pub(super) fn close(&mut self, timeout: Duration, has_failed: impl Fn() -> bool) -> Result<()> {
        let Some(comm) = &self.comm else { return Ok(()) };
        let deadline = Instant::now() + timeout;
        let late = || {
            if has_failed() {
                return Err(Error::Space("a rank failed while others ended".to_owned()));
            }
            if Instant::now() <= deadline {
                return Ok(());
            }
            Err(Error::Space(format!("a communicator did not end within {timeout:?}")))
        };
        let finalized = comm.finalize().and_then(|()| until(|| comm.is_ready(), late));
        match (finalized, self.comm.take()) {
            (Ok(()), Some(comm)) => comm.destroy(),
            (finalized, comm) => {
                self.comm = comm;
                self.give_up();
                finalized
            }
        }
    }
}

/// Waits until `done`, asking now and then whether to `go_on`.
pub(super) fn until(
    mut done: impl FnMut() -> Result<bool>,
    mut go_on: impl FnMut() -> Result<()>,
) -> Result<()> {
    let mut backoff = Backoff::default();
    while !done()? {
        if backoff.is_slow() {
            go_on()?;
        }
        backoff.pause();
    }
    Ok(())
}
