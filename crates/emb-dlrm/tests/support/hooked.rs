//! A collective with something before and after each of its operations: [`Hooked`].

use emb_comm::{Collective, Element, Meters, Result, Sum};

/// What happens around the operations of one rank on a collective `C`; clones are of the same rank.
pub(crate) trait Hook<C>: Clone + Send {
    /// Before an operation of any of the rank's sets; an error is its result.
    fn before(&self, inner: &C) -> Result<()>;

    /// After an operation.
    fn after(&self) {}
}

/// A collective and what happens around its operations. Sets made from it have it too.
#[derive(Debug)]
pub(crate) struct Hooked<C, H> {
    inner: C,
    hook: H,
}

impl<C, H: Hook<C>> Hooked<C, H> {
    pub(crate) fn new(inner: C, hook: H) -> Self {
        Self { inner, hook }
    }

    fn part(&self, inner: C) -> Self {
        Self { inner, hook: self.hook.clone() }
    }
}

macro_rules! hooked {
    ($self:ident, $call:expr) => {{
        $self.hook.before(&$self.inner)?;
        let result = $call;
        $self.hook.after();
        result
    }};
}

impl<C: Collective, H: Hook<C>> Collective for Hooked<C, H> {
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
        hooked!(self, self.inner.all_to_all_v(send, send_counts, recv, recv_counts))
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        hooked!(self, self.inner.exchange_counts(send, recv))
    }

    fn all_reduce<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        hooked!(self, self.inner.all_reduce(values))
    }

    fn all_reduce_max<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        hooked!(self, self.inner.all_reduce_max(values))
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        hooked!(self, self.inner.reduce_scatter_v(send, recv, counts))
    }

    fn reduce_scatter<T: Sum>(&mut self, send: &[T], recv: &mut [T]) -> Result<()> {
        hooked!(self, self.inner.reduce_scatter(send, recv))
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        hooked!(self, self.inner.all_gather_v(send, recv, recv_counts))
    }

    fn broadcast<T: Element>(&mut self, values: &mut [T], root: usize) -> Result<()> {
        hooked!(self, self.inner.broadcast(values, root))
    }

    fn barrier(&mut self) -> Result<()> {
        hooked!(self, self.inner.barrier())
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let part = hooked!(self, self.inner.split(color, key))?;
        Ok(part.map(|inner| self.part(inner)))
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let part = hooked!(self, self.inner.subgroups(groups))?;
        Ok(part.map(|inner| self.part(inner)))
    }

    fn duplicate(&mut self) -> Result<Self> {
        let inner = hooked!(self, self.inner.duplicate())?;
        Ok(self.part(inner))
    }
}
