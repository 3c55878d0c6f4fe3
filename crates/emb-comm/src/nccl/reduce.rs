//! Reductions of [`Nccl`]: parts are exchanged, and each rank reduces one of them in rank order.

use super::link::Link;
use super::{Nccl, Op, Sums, Terms};
use crate::arguments::{hash, reduced};
use crate::local::{Turn, chunk};
use crate::{Host, Operation, Reduction, Result, Space, Sum};
use emb_cuda::{View, ViewMut};
use std::ops::Range;

impl Nccl {
    pub(super) fn reduce_all<T: Sum>(
        &mut self,
        how: Reduction,
        mut values: ViewMut<'_, T>,
    ) -> Result<()> {
        let operation = match how {
            Reduction::Sum => Operation::AllReduce,
            Reduction::Max => Operation::AllReduceMax,
        };
        let len = values.len();
        let mut op = self.begin(Terms::of::<T>(operation).length(len))?;
        op.agree(Ok(()))?;
        let native = op.options.sums == Sums::Native && how == Reduction::Sum;
        let Op { turn, link, .. } = &mut op;
        let (me, world) = (turn.me, turn.world());
        if len > 0 && world > 1 {
            let homes = [values.home()];
            link.run(turn, &homes, |link| {
                if native {
                    return link.call(turn, |comm| comm.all_reduce(values, &link.stream));
                }
                let parts = |rank: usize| chunk(rank, world, len);
                let sent = values.as_view();
                exchange_parts(turn, link, sent, parts)?;
                reduce_own(link, how, values.slice(parts(me)), None, me, world)?;
                gather_parts(turn, link, &mut values, parts)
            })?;
        }
        for peer in op.turn.peers().skip(1) {
            // Its values of this rank's part, then the result of its part.
            let elements = chunk(me, world, len).len() + chunk(peer, world, len).len();
            op.turn.took::<T>(peer, elements);
        }
        op.turn.end();
        Ok(())
    }

    /// `counts` are the lengths of the ranks' parts; without, all are as long as `recv`.
    pub(super) fn reduce_parts<T: Sum>(
        &mut self,
        send: View<'_, T>,
        recv: ViewMut<'_, T>,
        counts: Option<&[usize]>,
    ) -> Result<()> {
        let operation = Operation::ReduceScatterV;
        let tag = counts.map_or(0, hash);
        let mut op = self.begin(Terms::of::<T>(operation).length(send.len()).tag(tag))?;
        let (me, world, name) = (op.turn.me, op.turn.world(), operation.name());
        let len = recv.len();
        op.agree(reduced(name, (me, world), send.len(), (len, counts)))?;
        let native = op.options.sums == Sums::Native && counts.is_none() && world > 1;
        let Op { turn, link, .. } = &mut op;
        if !send.is_empty() {
            let homes = [send.home(), recv.home()];
            link.run(turn, &homes, |link| {
                if native {
                    return link.call(turn, |comm| comm.reduce_scatter(send, recv, &link.stream));
                }
                let start = |rank: usize| match counts {
                    Some(counts) => counts[..rank].iter().sum(),
                    None => rank * len,
                };
                let parts = |rank: usize| start(rank)..start(rank + 1);
                exchange_parts(turn, link, send, parts)?;
                let own = send.slice(parts(me));
                reduce_own(link, Reduction::Sum, recv, Some(own), me, world)
            })?;
        }
        for peer in op.turn.peers() {
            op.turn.took::<T>(peer, len);
        }
        op.turn.end();
        Ok(())
    }
}

/// Sends each rank its part of `values`, and receives this rank's part from all, one after the
/// other by rank, this rank's place left free.
fn exchange_parts<T: Sum>(
    turn: &Turn<'_, Host>,
    link: &mut Link,
    values: View<'_, T>,
    parts: impl Fn(usize) -> Range<usize>,
) -> Result<()> {
    let (world, own) = (turn.world(), parts(turn.me).len());
    let mut kept = std::mem::take(&mut link.parts);
    let mut room = kept.room_of::<T>(&link.stream, world * own)?;
    let exchanged = link.group(turn, |group| {
        for peer in turn.peers().skip(1) {
            group.send(values.slice(parts(peer)), peer, &link.stream)?;
            group.recv(room.slice(peer * own..(peer + 1) * own), peer, &link.stream)?;
        }
        Ok(())
    });
    link.parts = kept;
    exchanged
}

/// Reduces what [`exchange_parts`] received into `to`; `own` are this rank's values, where they
/// are not in `to` already.
fn reduce_own<T: Sum>(
    link: &mut Link,
    how: Reduction,
    to: ViewMut<'_, T>,
    own: Option<View<'_, T>>,
    me: usize,
    world: usize,
) -> Result<()> {
    let len = to.len();
    if len == 0 {
        return Ok(());
    }
    let Link { parts, space, stream, .. } = link;
    let received = parts.room_of::<T>(stream, world * len)?;
    let received = received.as_view();
    let part = |rank: usize| {
        if rank == me { own } else { Some(received.slice(rank * len..(rank + 1) * len)) }
    };
    space.reduce(how, to, world, part)
}

/// Sends this rank's part of the result to all, and receives the others' parts of it.
fn gather_parts<T: Sum>(
    turn: &Turn<'_, Host>,
    link: &Link,
    values: &mut ViewMut<'_, T>,
    parts: impl Fn(usize) -> Range<usize>,
) -> Result<()> {
    let (me, stream) = (turn.me, &link.stream);
    if values.len().is_multiple_of(turn.world()) {
        let values = values.reborrow();
        return link.call(turn, |comm| comm.all_gather_in_place(values, stream));
    }
    let own = parts(me);
    let (mut low, rest) = values.reborrow().split_at(own.start);
    let (mine, mut high) = rest.split_at(own.len());
    link.group(turn, |group| {
        for peer in turn.peers().skip(1) {
            let part = parts(peer);
            let into = if peer < me {
                low.slice(part)
            } else {
                high.slice(part.start - own.end..part.end - own.end)
            };
            group.send(mine.as_view(), peer, stream)?;
            group.recv(into, peer, stream)?;
        }
        Ok(())
    })
}
