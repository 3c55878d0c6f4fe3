//! Dense gradients summed over the ranks while the backward pass goes on: [`DenseReducer`].

use crate::model::Dense;
use crate::queue::{Giver, Taker, queue};
use crate::sharded::{Format, Narrow};
use crate::{Error, Result};
use emb_comm::{Collective, Meter};
use emb_kernels::Backend;
use std::ops::Range;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Parts of the gradients that can be under way at once.
const IN_FLIGHT: usize = 8;

/// Sums parts of the dense gradients over all ranks, in rank order, on a thread beside the rank's.
///
/// Every rank gives it the same parts in the same order. The thread has its own set of ranks
/// ([`Collective::duplicate`]), so that its sums and the exchanges of the embedding tables need no
/// common order.
#[derive(Debug)]
pub(super) struct DenseReducer {
    /// `None` once closed.
    jobs: Option<Giver<Job>>,
    sums: Taker<Result<Job, emb_comm::Error>>,
    thread: Option<JoinHandle<()>>,
    pending: usize,
    spare: Vec<Vec<f32>>,
    /// How gradients travel.
    format: Format,
    /// Seconds of [`finish`](Self::finish), on the rank's own thread.
    spent: Meter,
}

/// A part of the gradients.
#[derive(Debug)]
struct Job {
    step: u64,
    part: Range<usize>,
    values: Vec<f32>,
    format: Format,
}

impl DenseReducer {
    /// Starts the thread. Every rank calls it.
    ///
    /// # Errors
    /// A peer that does not arrive; the operating system refusing a thread.
    pub(super) fn new<C: Collective + 'static>(world: &mut C) -> Result<Self> {
        let rank = world.rank();
        let ranks = world.duplicate()?;
        let (jobs, orders) = queue(IN_FLIGHT);
        let (answers, sums) = queue(IN_FLIGHT);
        let thread = std::thread::Builder::new()
            .name(format!("dense {rank}"))
            .spawn(move || work(ranks, &orders, &answers))
            .map_err(Error::io("starting a thread", std::path::Path::new("dense gradients")))?;
        let spare = Vec::with_capacity(IN_FLIGHT);
        let (jobs, thread, spent) = (Some(jobs), Some(thread), Meter::default());
        Ok(Self { jobs, sums, thread, pending: 0, spare, format: Format::default(), spent })
    }

    /// How gradients travel from now on. Every rank calls it before the same part.
    pub(super) fn set(&mut self, format: Format) {
        self.format = format;
    }

    /// Begins to sum `part` of the gradients.
    ///
    /// # Errors
    /// The device failed; an earlier sum did.
    pub(super) fn start<B: Backend>(
        &mut self,
        backend: &mut B,
        dense: &Dense<B>,
        step: u64,
        part: Range<usize>,
    ) -> Result<()> {
        let mut values = self.spare.pop().unwrap_or_default();
        values.resize(part.len(), 0.0);
        backend.download(B::view(&dense.gradients, part.clone()), &mut values)?;
        let sent = self.jobs.as_ref().is_some_and(|jobs| {
            let job = Job { step, part, values, format: self.format };
            jobs.give(job).is_ok()
        });
        if sent {
            self.pending += 1;
            return Ok(());
        }
        Err(self.failure())
    }

    /// Waits for all sums and puts them in place.
    ///
    /// # Errors
    /// A peer that fails.
    pub(super) fn finish<B: Backend>(
        &mut self,
        backend: &mut B,
        dense: &mut Dense<B>,
    ) -> Result<()> {
        let (began, mut waited) = (Instant::now(), Duration::ZERO);
        while self.pending > 0 {
            let asked = Instant::now();
            let job = self.sums.take().ok_or_else(gone)??;
            waited += asked.elapsed();
            self.pending -= 1;
            backend.upload(&job.values, B::view_mut(&mut dense.gradients, job.part))?;
            self.spare.push(job.values);
        }
        self.spent.wait_seconds += waited.as_secs_f64();
        self.spent.copy_seconds += began.elapsed().saturating_sub(waited).as_secs_f64();
        Ok(())
    }

    /// What the rank's own thread has spent in [`finish`](Self::finish): what the backward pass did
    /// not hide.
    pub(super) fn spent(&self) -> Meter {
        self.spent
    }

    /// Why the thread ended: the last of its answers.
    fn failure(&mut self) -> Error {
        loop {
            match self.sums.take() {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.into(),
                None => return gone(),
            }
        }
    }
}

/// The thread of a reducer ended without an answer.
fn gone() -> Error {
    Error::Config("the thread that sums dense gradients has ended".into())
}

/// Sums until there are no more jobs, or one fails.
fn work<C: Collective>(
    mut ranks: C,
    jobs: &Taker<Job>,
    sums: &Giver<Result<Job, emb_comm::Error>>,
) {
    let mut narrow = Narrow::default();
    while let Some(mut job) = jobs.take() {
        ranks.set_step(job.step);
        narrow.set(job.format);
        let summed = narrow.all_reduce(&mut ranks, &mut job.values);
        let failed = summed.is_err();
        if sums.give(summed.map(|()| job)).is_err() || failed {
            return;
        }
    }
}

impl Drop for DenseReducer {
    fn drop(&mut self) {
        self.jobs = None;
        // With sums under way a peer may never come: the thread then ends with the failure of the
        // world, which this rank has still to declare.
        if let Some(thread) = self.thread.take().filter(|_| self.pending == 0) {
            drop(thread.join());
        }
    }
}
