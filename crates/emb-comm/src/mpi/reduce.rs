//! Reductions of [`Mpi`]: each rank reduces one part of every rank's values, in rank order.

use super::{Mpi, Op, Terms};
use crate::arguments::{hash, reduced};
use crate::local::chunk;
use crate::{Host, Operation, Reduction, Result, Space, Sum};
use std::ops::Range;

impl Mpi {
    pub(super) fn reduce_all<T: Sum>(&mut self, how: Reduction, values: &mut [T]) -> Result<()> {
        let operation = match how {
            Reduction::Sum => Operation::AllReduce,
            Reduction::Max => Operation::AllReduceMax,
        };
        let len = values.len();
        let mut op = self.begin(Terms::of::<T>(operation).length(len))?;
        op.agree(Ok(()))?;
        let (me, world) = (op.turn.me, op.turn.world());
        let parts = |rank: usize| chunk(rank, world, len);
        if len > 0 && world > 1 {
            op.exchange_parts(values, parts)?;
            op.reduce_own(how, &mut values[parts(me)], None)?;
            op.gather_parts(values, parts)?;
        }
        for peer in op.turn.peers().skip(1) {
            // Its values of this rank's part, then the result of its part.
            let elements = parts(me).len() + parts(peer).len();
            op.turn.took::<T>(peer, elements);
        }
        op.end();
        Ok(())
    }

    /// `counts` are the lengths of the ranks' parts; without, all are as long as `recv`.
    pub(super) fn reduce_parts<T: Sum>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        counts: Option<&[usize]>,
    ) -> Result<()> {
        let operation = Operation::ReduceScatterV;
        let tag = counts.map_or(0, hash);
        let mut op = self.begin(Terms::of::<T>(operation).length(send.len()).tag(tag))?;
        let (me, world, name) = (op.turn.me, op.turn.world(), operation.name());
        let len = recv.len();
        op.agree(reduced(name, (me, world), send.len(), (len, counts)))?;
        let start = |rank: usize| match counts {
            Some(counts) => counts[..rank].iter().sum(),
            None => rank * len,
        };
        let parts = |rank: usize| start(rank)..start(rank + 1);
        op.exchange_parts(send, parts)?;
        op.reduce_own(Reduction::Sum, recv, Some(&send[parts(me)]))?;
        for peer in op.turn.peers() {
            op.turn.took::<T>(peer, len);
        }
        op.end();
        Ok(())
    }
}

impl Op<'_> {
    /// Sends each rank its part of `values`, and receives this rank's part from all, one after the
    /// other by rank, this rank's place left free.
    fn exchange_parts<T: Sum>(
        &mut self,
        values: &[T],
        parts: impl Fn(usize) -> Range<usize>,
    ) -> Result<()> {
        let Self { turn, wire, parts: room, .. } = self;
        let (me, world) = (turn.me, turn.world());
        let own = parts(me).len();
        let words = (world * own * size_of::<T>()).div_ceil(size_of::<u64>());
        if room.len() < words {
            room.resize(words, 0);
        }
        let room: &mut [T] = &mut bytemuck::cast_slice_mut(&mut room[..words])[..world * own];
        wire.run(turn, |transfer| {
            if own > 0 {
                for (peer, part) in room.chunks_exact_mut(own).enumerate() {
                    if peer != me {
                        transfer.recv(part, peer)?;
                    }
                }
            }
            turn.peers().skip(1).try_for_each(|peer| transfer.send(&values[parts(peer)], peer))
        })
    }

    /// Reduces what [`exchange_parts`](Self::exchange_parts) received into `to`; `own` are this
    /// rank's values, where they are not in `to` already.
    fn reduce_own<T: Sum>(&self, how: Reduction, to: &mut [T], own: Option<&[T]>) -> Result<()> {
        let (me, world, len) = (self.turn.me, self.turn.world(), to.len());
        let words = (world * len * size_of::<T>()).div_ceil(size_of::<u64>());
        let received: &[T] = &bytemuck::cast_slice(&self.parts[..words])[..world * len];
        let part = |rank: usize| {
            if rank == me { own } else { Some(&received[rank * len..(rank + 1) * len]) }
        };
        Host.reduce(how, to, world, part)
    }

    /// Sends this rank's part of the result to all, and receives the others' parts of it.
    fn gather_parts<T: Sum>(
        &mut self,
        values: &mut [T],
        parts: impl Fn(usize) -> Range<usize>,
    ) -> Result<()> {
        let Self { turn, wire, .. } = self;
        let (me, world) = (turn.me, turn.world());
        wire.run(turn, |transfer| {
            let mut rest = values;
            let mut own: &[T] = &[];
            for peer in 0..world {
                let (part, after) = rest.split_at_mut(parts(peer).len());
                rest = after;
                if peer == me {
                    own = part;
                } else {
                    transfer.recv(part, peer)?;
                }
            }
            turn.peers().skip(1).try_for_each(|peer| transfer.send(own, peer))
        })
    }
}
