//! A rank that computes slower than it could: [`Slowed`].

use emb_comm::{Collective, Element, Meters, Result, Sum};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A collective whose rank takes `factor` times as long between two operations: what it
/// computed, it sleeps `factor - 1` times as long again before the next operation begins.
pub(crate) struct Slowed<C> {
    inner: C,
    factor: f64,
    /// The end of the last operation of any set of this rank.
    since: Arc<Mutex<Instant>>,
}

impl<C> Slowed<C> {
    pub(crate) fn new(inner: C, factor: f64) -> Self {
        Self { inner, factor, since: Arc::new(Mutex::new(Instant::now())) }
    }

    fn sleep(&self) {
        let computed = self.since.lock().expect("whole").elapsed();
        if self.factor > 1.0 {
            std::thread::sleep(computed.mul_f64(self.factor - 1.0));
        }
    }

    fn part(&self, part: Option<C>) -> Option<Self> {
        part.map(|inner| Self { inner, factor: self.factor, since: Arc::clone(&self.since) })
    }
}

macro_rules! slowly {
    ($self:ident, $call:expr) => {{
        $self.sleep();
        let result = $call;
        *$self.since.lock().expect("whole") = Instant::now();
        result
    }};
}

impl<C: Collective> Collective for Slowed<C> {
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
        slowly!(self, self.inner.all_to_all_v(send, send_counts, recv, recv_counts))
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        slowly!(self, self.inner.exchange_counts(send, recv))
    }

    fn all_reduce<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        slowly!(self, self.inner.all_reduce(values))
    }

    fn all_reduce_max<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        slowly!(self, self.inner.all_reduce_max(values))
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        slowly!(self, self.inner.reduce_scatter_v(send, recv, counts))
    }

    fn reduce_scatter<T: Sum>(&mut self, send: &[T], recv: &mut [T]) -> Result<()> {
        slowly!(self, self.inner.reduce_scatter(send, recv))
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        slowly!(self, self.inner.all_gather_v(send, recv, recv_counts))
    }

    fn broadcast<T: Element>(&mut self, values: &mut [T], root: usize) -> Result<()> {
        slowly!(self, self.inner.broadcast(values, root))
    }

    fn barrier(&mut self) -> Result<()> {
        slowly!(self, self.inner.barrier())
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let part = self.inner.split(color, key)?;
        Ok(self.part(part))
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let part = self.inner.subgroups(groups)?;
        Ok(self.part(part))
    }

    /// For the thread beside, which computes nothing: as fast as it can.
    fn duplicate(&mut self) -> Result<Self> {
        Ok(Self::new(self.inner.duplicate()?, 1.0))
    }
}
