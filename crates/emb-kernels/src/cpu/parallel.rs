//! The threads of one backend: a rayon pool that is entered without allocating.

use crate::{Error, Result};
use parking::{Slot, Task};
use std::sync::Arc;

mod parking;

/// A fixed number of threads. With one, work runs on the caller.
///
/// With more, one worker of a rayon pool waits for work from the caller and runs it inside the
/// pool, where [`split`] and rayon's own calls spread it. (`ThreadPool::install` would do the
/// same, but it allocates every few dozen calls from outside the pool.)
#[derive(Debug)]
pub(crate) struct Team {
    threads: usize,
    entry: Option<Entry>,
    inside: bool,
}

#[derive(Debug)]
struct Entry {
    slot: Arc<Slot>,
    /// Dropped after the waiting worker was told to stop.
    _pool: rayon::ThreadPool,
}

impl Team {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system has no threads left.
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let threads = threads.max(1);
        if threads == 1 {
            return Ok(Self { threads, entry: None, inside: false });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("emb-{index}"))
            .build()
            .map_err(|cause| Error::NotAvailable("a thread pool", cause.to_string()))?;
        let slot = Arc::new(Slot::default());
        let waiting = Arc::clone(&slot);
        pool.spawn(move || waiting.serve());
        Ok(Self { threads, entry: Some(Entry { slot, _pool: pool }), inside: false })
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` inside the pool and returns what it returns; a panic of it goes on here.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self.gate() {
            Some(gate) => gate.run(work),
            None => work(),
        }
    }

    /// The way into the pool; `None` where there is none to take, with one thread or inside.
    pub(crate) fn gate(&self) -> Option<Gate> {
        let entry = self.entry.as_ref().filter(|_| !self.inside)?;
        Some(Gate { slot: Arc::clone(&entry.slot) })
    }

    /// Marks that all further work comes from inside the pool, or no longer does.
    pub(crate) fn set_inside(&mut self, inside: bool) {
        self.inside = inside;
    }
}

/// The way into a pool; cheap to have, and borrows nothing.
#[derive(Debug)]
pub(crate) struct Gate {
    slot: Arc<Slot>,
}

impl Gate {
    /// As [`Team::run`].
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let mut task = Task::new(work);
        self.slot.submit(&mut task);
        task.finish()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.slot.stop();
    }
}

/// Calls `part(i)` for `i` in `0..parts`, on the threads of the current pool when there are several.
pub(crate) fn split<F: Fn(usize) + Sync>(threads: usize, parts: usize, part: &F) {
    if threads <= 1 {
        (0..parts).for_each(part);
    } else {
        halve(0, parts, part);
    }
}

fn halve<F: Fn(usize) + Sync>(first: usize, end: usize, part: &F) {
    match end - first {
        0 => {}
        1 => part(first),
        parts => {
            let middle = first + parts / 2;
            rayon::join(|| halve(first, middle, part), || halve(middle, end, part));
        }
    }
}
