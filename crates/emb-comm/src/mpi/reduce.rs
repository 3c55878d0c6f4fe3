//! Reductions of [`Mpi`]: each rank reduces one part of every rank's values, in rank order.
//!
//! Long values go in rounds, so that what peers send is added up while it is in the cache, and
//! takes little memory: the first rounds' results travel with the next rounds' values.
//!
//! ```text
//!   values   |0 1|0 1|0 1|    rounds, and who reduces which part of each
//!   round 0  exchange          reduce
//!   round 1  exchange, gather  reduce
//!   round 2  exchange, gather  reduce
//!   last               gather
//! ```

use super::wire::Transfer;
use super::{Mpi, Op, Terms};
use crate::arguments::{hash, reduced};
use crate::local::{Turn, chunk};
use crate::{Host, Operation, Reduction, Result, Space, Sum};
use std::ops::Range;

/// Bytes that a rank sends to another in a round: enough for the speed of any network, and few
/// enough for a round of all ranks of a host to stay in its last cache.
const PART: usize = 512 << 10;

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
        if world > 1 {
            op.reduce_in_rounds(how, values)?;
        }
        // All rounds but the last divide evenly: parts are as long as in one round.
        let part = |rank: usize| chunk(rank, world, len).len();
        for peer in op.turn.peers().skip(1) {
            // Its values of this rank's part, then the result of its part.
            op.turn.took::<T>(peer, part(me) + part(peer));
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
        let longest = counts.map_or(len, |counts| counts.iter().copied().max().unwrap_or(0));
        for round in 0..longest.div_ceil(each::<T>()) {
            let slice = |rank: usize| {
                let (start, end) = (start(rank), start(rank + 1));
                let at = |round: usize| end.min(start + round * each::<T>());
                at(round)..at(round + 1)
            };
            let own = slice(me);
            let to = own.start - start(me)..own.end - start(me);
            let Op { turn, wire, parts, .. } = &mut op;
            let room = room(parts, world * own.len());
            wire.run(turn, |transfer| exchange(transfer, turn, send, &mut *room, slice))?;
            reduce(turn, Reduction::Sum, &mut recv[to], room, Some(&send[own]))?;
        }
        for peer in op.turn.peers() {
            op.turn.took::<T>(peer, len);
        }
        op.end();
        Ok(())
    }
}

impl Op<'_> {
    fn reduce_in_rounds<T: Sum>(&mut self, how: Reduction, values: &mut [T]) -> Result<()> {
        let Self { turn, wire, parts, .. } = self;
        let (me, world) = (turn.me, turn.world());
        let mut rest = values;
        // Reduced in the round before, each part by its rank.
        let mut before: &mut [T] = &mut [];
        while !rest.is_empty() || !before.is_empty() {
            let len = rest.len().min(world * each::<T>());
            let (now, after) = rest.split_at_mut(len);
            let part = |rank: usize| chunk(rank, world, len);
            let room = room(parts, world * part(me).len());
            wire.run(turn, |transfer| {
                exchange(transfer, turn, &*now, &mut *room, part)?;
                gather(transfer, turn, before)
            })?;
            reduce(turn, how, &mut now[part(me)], room, None)?;
            (before, rest) = (now, after);
        }
        Ok(())
    }
}

/// Elements of the longest part of a round.
const fn each<T>() -> usize {
    PART / size_of::<T>()
}

/// Room for so many elements of peers.
fn room<T: Sum>(words: &mut Vec<u64>, len: usize) -> &mut [T] {
    let needed = (len * size_of::<T>()).div_ceil(size_of::<u64>());
    if words.len() < needed {
        words.resize(needed, 0);
    }
    &mut bytemuck::cast_slice_mut(&mut words[..needed])[..len]
}

/// Sends each rank its part of `values`, and receives this rank's part from all, one after the
/// other by rank, this rank's place left free.
fn exchange<'b, T: Sum>(
    transfer: &mut Transfer<'_, 'b>,
    turn: &Turn<'_, Host>,
    values: &'b [T],
    room: &'b mut [T],
    part: impl Fn(usize) -> Range<usize>,
) -> Result<()> {
    let own = room.len() / turn.world();
    if own > 0 {
        for (peer, from) in room.chunks_exact_mut(own).enumerate() {
            if peer != turn.me {
                transfer.recv(from, peer)?;
            }
        }
    }
    turn.peers().skip(1).try_for_each(|peer| transfer.send(&values[part(peer)], peer))
}

/// Reduces what [`exchange`] received into `to`; `own` are this rank's values, where they are not
/// in `to` already.
fn reduce<T: Sum>(
    turn: &Turn<'_, Host>,
    how: Reduction,
    to: &mut [T],
    received: &[T],
    own: Option<&[T]>,
) -> Result<()> {
    let (me, len) = (turn.me, to.len());
    let part = |rank: usize| {
        if rank == me { own } else { Some(&received[rank * len..(rank + 1) * len]) }
    };
    Host.reduce(how, to, turn.world(), part)
}

/// Sends this rank's part of the result to all, and receives the others' parts of it.
fn gather<'b, T: Sum>(
    transfer: &mut Transfer<'_, 'b>,
    turn: &Turn<'_, Host>,
    values: &'b mut [T],
) -> Result<()> {
    let (me, world, len) = (turn.me, turn.world(), values.len());
    let mut rest = values;
    let mut own: &'b [T] = &[];
    for peer in 0..world {
        let (part, after) = rest.split_at_mut(chunk(peer, world, len).len());
        rest = after;
        if peer == me {
            own = part;
        } else {
            transfer.recv(part, peer)?;
        }
    }
    turn.peers().skip(1).try_for_each(|peer| transfer.send(own, peer))
}
