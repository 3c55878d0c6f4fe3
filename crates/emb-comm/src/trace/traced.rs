//! A collective that records its operations: [`Traced`].

use super::{Lane, Trace};
use crate::{Collective, Element, Meter, Meters, Result, Space, Sum};
use std::time::Instant;

/// Any collective, with every operation recorded in a [`Trace`]. Sets made from it are traced too.
#[derive(Debug)]
pub struct Traced<C> {
    inner: C,
    trace: Trace,
    lane: Lane,
}

impl<C> Traced<C> {
    /// Records the operations of `inner`.
    pub fn new(inner: C, trace: Trace) -> Self {
        Self { inner, trace, lane: Lane::Collectives }
    }

    /// Where they are recorded.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// When an operation begins, and what those so far cost; nothing where nothing is recorded.
    fn begin<S: Space>(&self) -> Option<(Instant, Meter)>
    where
        C: Collective<S>,
    {
        self.trace.now().map(|now| (now, self.inner.meters().total()))
    }

    fn end<S: Space>(&self, name: &'static str, begun: Option<(Instant, Meter)>)
    where
        C: Collective<S>,
    {
        let Some((start, before)) = begun else { return };
        let cost = self.inner.meters().total() - before;
        self.trace.add(self.lane, name, Some(start), cost);
    }

    fn part(&self, part: Option<C>) -> Option<Self> {
        part.map(|inner| Self { inner, trace: self.trace.clone(), lane: self.lane })
    }
}

/// Forwards an operation to the collective inside and records it.
macro_rules! record {
    ($self:ident, $name:literal, $call:expr) => {{
        let begun = $self.begin::<S>();
        let result = $call;
        $self.end::<S>($name, begun);
        result
    }};
}

impl<S: Space, C: Collective<S>> Collective<S> for Traced<C> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn world(&self) -> usize {
        self.inner.world()
    }

    fn set_step(&mut self, step: u64) {
        if !matches!(self.lane, Lane::Beside(_)) {
            self.trace.set_step(step);
        }
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
        send: S::Ref<'_, T>,
        send_counts: &[usize],
        recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        record!(self, "all_to_all_v", self.inner.all_to_all_v(send, send_counts, recv, recv_counts))
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        record!(self, "exchange_counts", self.inner.exchange_counts(send, recv))
    }

    fn all_reduce<T: Sum>(&mut self, values: S::Mut<'_, T>) -> Result<()> {
        record!(self, "all_reduce", self.inner.all_reduce(values))
    }

    fn all_reduce_max<T: Sum>(&mut self, values: S::Mut<'_, T>) -> Result<()> {
        record!(self, "all_reduce_max", self.inner.all_reduce_max(values))
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: S::Ref<'_, T>,
        recv: S::Mut<'_, T>,
        counts: &[usize],
    ) -> Result<()> {
        record!(self, "reduce_scatter_v", self.inner.reduce_scatter_v(send, recv, counts))
    }

    fn reduce_scatter<T: Sum>(&mut self, send: S::Ref<'_, T>, recv: S::Mut<'_, T>) -> Result<()> {
        record!(self, "reduce_scatter", self.inner.reduce_scatter(send, recv))
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: S::Ref<'_, T>,
        recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        record!(self, "all_gather_v", self.inner.all_gather_v(send, recv, recv_counts))
    }

    fn broadcast<T: Element>(&mut self, values: S::Mut<'_, T>, root: usize) -> Result<()> {
        record!(self, "broadcast", self.inner.broadcast(values, root))
    }

    fn barrier(&mut self) -> Result<()> {
        record!(self, "barrier", self.inner.barrier())
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let part = record!(self, "split", self.inner.split(color, key))?;
        Ok(self.part(part))
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let part = record!(self, "subgroups", self.inner.subgroups(groups))?;
        Ok(self.part(part))
    }

    fn duplicate(&mut self) -> Result<Self> {
        let inner = record!(self, "duplicate", self.inner.duplicate())?;
        Ok(Self { inner, trace: self.trace.clone(), lane: self.trace.next_beside() })
    }
}
