//! What a rank did when: [`Trace`] records, [`Traced`] records collectives.

mod traced;

pub use traced::Traced;

use crate::Meter;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A stretch of time on one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// What was done.
    pub name: &'static str,
    /// Which of the things that a rank does at the same time.
    pub lane: Lane,
    /// Step, from 0.
    pub step: u64,
    /// Microseconds from the beginning of the trace to that of the span.
    pub start: f64,
    /// Microseconds that it took.
    pub duration: f64,
    /// Microseconds of it in which the rank waited for others.
    pub waited: f64,
    /// Bytes taken from other ranks.
    pub bytes: u64,
}

/// Lanes of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Phases of a step.
    Phases,
    /// Collectives of the rank's own thread.
    Collectives,
    /// Collectives of a [`duplicate`](crate::Collective::duplicate), from 0 by when they were made.
    Beside(u8),
}

/// Records spans of one rank, or nothing. Clones record to the same place.
///
/// ```
/// use emb_comm::{Collective, Error, Options, Trace, Traced, run};
/// use std::time::Instant;
///
/// let begin = Instant::now();
/// let spans = run(2, &Options::default(), |rank| {
///     let trace = Trace::from(begin);
///     let world = rank.split(Some(0), rank.rank())?.expect("every rank has a color");
///     Traced::new(world, trace.clone()).barrier()?;
///     Ok::<_, Error>(trace.take())
/// })?;
/// assert_eq!(spans[1][0].name, "barrier");
/// # Ok::<(), emb_comm::Failure>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace(Option<Arc<Record>>);

#[derive(Debug)]
struct Record {
    begin: Instant,
    step: AtomicU64,
    /// Duplicates so far.
    beside: AtomicU8,
    spans: Mutex<Vec<Span>>,
}

impl From<Instant> for Trace {
    /// A trace whose times count from `begin`: the same on every rank.
    fn from(begin: Instant) -> Self {
        let spans = Mutex::new(Vec::new());
        let (step, beside) = (AtomicU64::new(0), AtomicU8::new(0));
        Self(Some(Arc::new(Record { begin, step, beside, spans })))
    }
}

impl Trace {
    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Labels what follows.
    pub fn set_step(&self, step: u64) {
        if let Some(record) = &self.0 {
            record.step.store(step, Ordering::Relaxed);
        }
    }

    /// The time, for [`add`](Self::add); `None` where nothing is recorded.
    pub fn now(&self) -> Option<Instant> {
        self.0.as_ref().map(|_| Instant::now())
    }

    /// Records what was done since `start`, and the bytes and waiting that it cost.
    pub fn add(&self, lane: Lane, name: &'static str, start: Option<Instant>, cost: Meter) {
        let (Some(record), Some(start)) = (&self.0, start) else { return };
        let step = record.step.load(Ordering::Relaxed);
        let micros = |duration: std::time::Duration| duration.as_secs_f64() * 1e6;
        let duration = micros(start.elapsed());
        let start = micros(start.saturating_duration_since(record.begin));
        let mut spans = record.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let (waited, bytes) = (cost.wait_seconds * 1e6, cost.bytes());
        spans.push(Span { name, lane, step, start, duration, waited, bytes });
    }

    /// The lane of a duplicate that is being made.
    fn next_beside(&self) -> Lane {
        let count = |record: &Arc<Record>| record.beside.fetch_add(1, Ordering::Relaxed);
        Lane::Beside(self.0.as_ref().map_or(0, count))
    }

    /// Records the work of `f` as a phase.
    pub fn phase<T>(&self, name: &'static str, f: impl FnOnce() -> T) -> T {
        let start = self.now();
        let result = f();
        self.add(Lane::Phases, name, start, Meter::default());
        result
    }

    /// What was recorded so far, in the order of ends.
    pub fn take(&self) -> Vec<Span> {
        let Some(record) = &self.0 else { return Vec::new() };
        std::mem::take(&mut *record.spans.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
