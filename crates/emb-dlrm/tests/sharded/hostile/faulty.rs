//! Ranks with a fault: [`Faulty`].

use emb_comm::{Collective, Element, Error, Local, Meters, Result, Sum};
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
#[derive(Debug)]
pub(super) struct Faulty {
    inner: Local,
    /// Of the rank that has it.
    switch: Option<Arc<Switch>>,
}

impl Faulty {
    /// This rank's end.
    pub(super) fn new(inner: Local, switch: Option<Arc<Switch>>) -> Self {
        Self { inner, switch }
    }

    fn before(&self) -> Result<()> {
        self.switch.as_ref().map_or(Ok(()), |switch| switch.call(&self.inner))
    }

    fn part(&self, inner: Local) -> Self {
        Self { inner, switch: self.switch.clone() }
    }
}

impl Collective for Faulty {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn world(&self) -> usize {
        self.inner.world()
    }

    fn set_step(&mut self, step: u64) {
        self.inner.set_step(step);
    }

    fn abort(&self, reason: &str) {
        self.inner.abort(reason);
    }

    fn meters(&self) -> Meters {
        self.inner.meters()
    }

    fn all_to_all_v<T: Element>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        self.before()?;
        self.inner.all_to_all_v(send, send_counts, recv, recv_counts)
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        self.before()?;
        self.inner.exchange_counts(send, recv)
    }

    fn all_reduce<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        self.before()?;
        self.inner.all_reduce(values)
    }

    fn all_reduce_max<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        self.before()?;
        self.inner.all_reduce_max(values)
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        self.before()?;
        self.inner.reduce_scatter_v(send, recv, counts)
    }

    fn reduce_scatter<T: Sum>(&mut self, send: &[T], recv: &mut [T]) -> Result<()> {
        self.before()?;
        self.inner.reduce_scatter(send, recv)
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        self.before()?;
        self.inner.all_gather_v(send, recv, recv_counts)
    }

    fn broadcast<T: Element>(&mut self, values: &mut [T], root: usize) -> Result<()> {
        self.before()?;
        self.inner.broadcast(values, root)
    }

    fn barrier(&mut self) -> Result<()> {
        self.before()?;
        self.inner.barrier()
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        self.before()?;
        let part = self.inner.split(color, key)?;
        Ok(part.map(|inner| self.part(inner)))
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        self.before()?;
        let part = self.inner.subgroups(groups)?;
        Ok(part.map(|inner| self.part(inner)))
    }

    fn duplicate(&mut self) -> Result<Self> {
        self.before()?;
        let inner = self.inner.duplicate()?;
        Ok(self.part(inner))
    }
}
