//! Syncs of replicas on a thread beside the rank's: [`Beside`].
//!
//! After an update the shards whose sync is due go to the thread, which makes them equal to their
//! replicas while the rank goes on with what needs no rows: the rest of the backward pass, the dense
//! sums and update, the next batch and the exchange of its ids. They are back before the next
//! look-up. The thread has its own sets of ranks ([`Collective::duplicate`]), so that its collectives
//! and those of the rank need no common order; results are the same bits.

use super::error::{Error, Result};
use super::layout::Members;
use super::no_set;
use super::stored::StoredShards;
use crate::queue::{Giver, Taker, queue};
use emb_comm::{Collective, Meter};
use emb_kernels::Backend;
use std::ops::{Deref, DerefMut};
use std::thread::JoinHandle;
use std::time::Instant;

/// The thread, as the rank sees it.
#[derive(Debug)]
pub(super) struct Beside<B: Backend, C> {
    /// `None` once closed.
    jobs: Option<Giver<Job<B, C>>>,
    done: Taker<Job<B, C>>,
    thread: Option<JoinHandle<()>>,
    /// Jobs that are not back.
    pending: usize,
    /// What the rank waited for.
    waited: Meter,
}

/// Shards that are made equal to their replicas.
#[derive(Debug)]
struct Job<B: Backend, C> {
    /// Position of their exchange.
    class: usize,
    step: u64,
    stored: Box<StoredShards<B, C>>,
    result: Result<()>,
}

/// A value that may be with another thread.
#[derive(Debug)]
pub(super) struct Away<T>(Option<Box<T>>);

impl<B: Backend, C: Collective + 'static> Beside<B, C> {
    /// Starts the thread with room for the shards of `classes` exchanges; `backend` is its stream.
    pub(super) fn new(classes: usize, rank: usize, backend: B) -> Result<Self> {
        let (jobs, orders) = queue(classes.max(1));
        let (answers, done) = queue(classes.max(1));
        let thread = std::thread::Builder::new()
            .name(format!("sync {rank}"))
            .spawn(move || work(backend, &orders, &answers))
            .map_err(|error| Error::Mismatch(format!("no thread for syncs: {error}")))?;
        let (jobs, thread) = (Some(jobs), Some(thread));
        Ok(Self { jobs, done, thread, pending: 0, waited: Meter::default() })
    }
}

impl<B: Backend, C> Beside<B, C> {
    /// Hands the shards of exchange `class` over.
    pub(super) fn start(
        &mut self,
        class: usize,
        step: u64,
        stored: &mut Away<StoredShards<B, C>>,
    ) -> Result<()> {
        let stored = stored.0.take().ok_or_else(gone)?;
        let job = Job { class, step, stored, result: Ok(()) };
        self.pending += 1;
        self.jobs.as_ref().and_then(|jobs| jobs.give(job).ok()).ok_or_else(gone)
    }

    /// Waits for all shards and tells `back` of each.
    ///
    /// # Errors
    /// The first sync that failed; later ones did not happen then, and their shards don't come back.
    pub(super) fn finish(
        &mut self,
        mut back: impl FnMut(usize, Away<StoredShards<B, C>>),
    ) -> Result<()> {
        let mut result = Ok(());
        let began = Instant::now();
        while self.pending > 0 {
            let Some(job) = self.done.take() else { return result.and_then(|()| Err(gone())) };
            self.pending -= 1;
            back(job.class, Away(Some(job.stored)));
            result = result.and(job.result);
        }
        self.waited.wait_seconds += began.elapsed().as_secs_f64();
        result
    }

    /// Whether any shards are away.
    pub(super) fn is_busy(&self) -> bool {
        self.pending > 0
    }

    /// What the rank's own thread waited for syncs.
    pub(super) fn waited(&self) -> Meter {
        self.waited
    }
}

/// The thread ended without an answer.
fn gone() -> Error {
    Error::Mismatch("the thread that syncs replicas has ended".to_owned())
}

/// Makes replicas equal until there are no more jobs, or one fails.
fn work<B: Backend, C: Collective>(
    mut backend: B,
    jobs: &Taker<Job<B, C>>,
    done: &Giver<Job<B, C>>,
) {
    while let Some(mut job) = jobs.take() {
        job.result = job.stored.sync_step(&mut backend, job.step);
        let failed = job.result.is_err();
        if done.give(job).is_err() || failed {
            return;
        }
    }
}

impl<B: Backend, C> Drop for Beside<B, C> {
    fn drop(&mut self) {
        self.jobs = None;
        // With syncs under way a peer may never come: the thread then ends with the failure of the
        // world, which this rank has still to declare.
        if let Some(thread) = self.thread.take().filter(|_| self.pending == 0) {
            drop(thread.join());
        }
    }
}

/// The replicas of an exchange among `world`.
pub(super) fn replicas<C: Collective>(world: &mut C, members: &Members) -> Result<Option<C>> {
    let mesh = members.mesh;
    if mesh.replicas() == 1 {
        return Ok(None);
    }
    let rank = emb_shard::Rank::new(world.rank() as u32);
    let (group, set) = (mesh.group_of(rank)?, mesh.replica_set_of(rank)?);
    let replicas = world.split(Some(set.get() as usize), group.get() as usize)?;
    Ok(Some(replicas.ok_or_else(no_set)?))
}

impl<T> Away<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(Box::new(value)))
    }

    /// The value, where it is not away.
    pub(super) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }
}

impl<T> Deref for Away<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect("invariant: shards are brought back before they are used")
    }
}

impl<T> DerefMut for Away<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("invariant: shards are brought back before they are used")
    }
}
