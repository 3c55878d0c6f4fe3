//! Ranks with a fault: [`Faulty`].

use crate::hooked::{Hook, Hooked};
use emb_comm::{Error, Local, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What happens instead of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    /// Nothing.
    Never,
    /// The operation fails.
    Error,
    Panic,
    /// The rank comes back when the others have given up.
    Stall,
    /// The rank's work ends as if it were done.
    EndsEarly,
}

/// What a rank says that failed or ended early.
pub(super) const INJECTED: Error = Error::NoColumns { operation: "injected" };

/// The operations of one rank, counted; one of them has a fault.
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) fault: Fault,
    /// The operation, since the switch was turned on.
    at: u64,
    on: AtomicBool,
    calls: AtomicU64,
}

impl Switch {
    pub(super) fn new(fault: Fault, at: u64) -> Self {
        Self { fault, at, on: AtomicBool::new(false), calls: AtomicU64::new(0) }
    }

    pub(super) fn turn(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Operations while it was on.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn call(&self, local: &Local) -> Result<()> {
        if !self.on.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.calls.fetch_add(1, Ordering::Relaxed) != self.at {
            return Ok(());
        }
        match self.fault {
            Fault::Never => Ok(()),
            Fault::Panic => std::panic::resume_unwind(Box::new("injected")),
            Fault::Error | Fault::EndsEarly => Err(INJECTED),
            Fault::Stall => {
                let begun = Instant::now();
                while local.failure().is_none() && begun.elapsed() < Duration::from_secs(20) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(INJECTED)
            }
        }
    }
}

/// Threads as ranks, one of which has a fault. Sets made from it have it too.
pub(super) type Faulty = Hooked<Local, Injected>;

/// The switch of the rank that has the fault.
#[derive(Clone, Debug)]
pub(super) struct Injected(pub(super) Option<Arc<Switch>>);

impl Hook<Local> for Injected {
    fn before(&self, inner: &Local) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |switch| switch.call(inner))
    }
}
