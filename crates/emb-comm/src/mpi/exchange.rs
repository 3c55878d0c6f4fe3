//! Operations of [`Mpi`] that move elements unchanged.

use super::{Mpi, Op, Terms};
use crate::arguments::{counted, exchanged, gathered, hash, same_count};
use crate::{Element, Error, Operation, Result};

impl Mpi {
    pub(super) fn all_to_all<T: Element>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = Operation::AllToAllV;
        let mut op = self.begin(Terms::of::<T>(operation))?;
        let (world, name) = (op.turn.world(), operation.name());
        let fits = exchanged(name, world, (send.len(), send_counts), (recv.len(), recv_counts));
        op.agree_on(fits, send_counts, recv_counts)?;
        op.exchange(send, |rank| send_counts[rank], recv, |rank| recv_counts[rank])?;
        op.took::<T>(recv_counts);
        op.end();
        Ok(())
    }

    pub(super) fn counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        let operation = Operation::ExchangeCounts;
        let mut op = self.begin(Terms::of::<u64>(operation).length(send.len()))?;
        let world = op.turn.world();
        let each = send.len() / world;
        op.agree(counted(operation.name(), world, send.len(), recv.len()))?;
        let mut room = std::mem::take(op.parts);
        room.clear();
        room.extend(send.iter().map(|&count| count as u64));
        room.resize(2 * send.len(), 0);
        let (from, into) = room.split_at_mut(send.len());
        let moved = op.exchange(from, |_| each, into, |_| each);
        recv.iter_mut().zip(into).for_each(|(to, count)| *to = *count as usize);
        *op.parts = room;
        moved?;
        for peer in op.turn.peers() {
            op.turn.took::<u64>(peer, each);
        }
        op.end();
        Ok(())
    }

    pub(super) fn all_gather<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = Operation::AllGatherV;
        let terms = Terms::of::<T>(operation).length(recv.len()).tag(hash(recv_counts));
        let mut op = self.begin(terms)?;
        let (me, world, name) = (op.turn.me, op.turn.world(), operation.name());
        op.agree(gathered(name, (me, world), send.len(), (recv.len(), recv_counts)))?;
        let Op { turn, wire, .. } = &mut op;
        wire.run(turn, |transfer| {
            let mut rest = recv;
            let mut own = Default::default();
            for (peer, &count) in recv_counts.iter().enumerate() {
                let (part, after) = rest.split_at_mut(count);
                rest = after;
                if peer == me {
                    own = part;
                } else {
                    transfer.recv(part, peer)?;
                }
            }
            for peer in turn.peers().skip(1) {
                transfer.send(send, peer)?;
            }
            own.copy_from_slice(send);
            Ok(())
        })?;
        op.took::<T>(recv_counts);
        op.end();
        Ok(())
    }

    pub(super) fn copy_from_root<T: Element>(
        &mut self,
        values: &mut [T],
        root: usize,
    ) -> Result<()> {
        let operation = Operation::Broadcast;
        let len = values.len();
        let terms = Terms::of::<T>(operation).length(len).tag(root as u64);
        let mut op = self.begin(terms)?;
        let (me, world) = (op.turn.me, op.turn.world());
        let error = Error::NoSuchRank { operation: operation.name(), rank: root, world };
        op.agree(if root < world { Ok(()) } else { Err(error) })?;
        let Op { turn, wire, .. } = &mut op;
        wire.run(turn, |transfer| {
            if me != root {
                return transfer.recv(values, root);
            }
            let values: &[T] = values;
            turn.peers().skip(1).try_for_each(|peer| transfer.send(values, peer))
        })?;
        if me != root {
            op.turn.took::<T>(root, len);
        }
        op.end();
        Ok(())
    }

    /// Waits for all and compares `terms`.
    pub(super) fn meet(&mut self, terms: Terms) -> Result<()> {
        let mut op = self.begin(terms)?;
        op.meet(&[], &[], [0; 4])?;
        op.end();
        Ok(())
    }
}

impl Op<'_> {
    /// Sends a part of `send` to each rank, and receives a part from each; its own it copies.
    pub(super) fn exchange<T: Element>(
        &mut self,
        send: &[T],
        sends: impl Fn(usize) -> usize,
        recv: &mut [T],
        expects: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let Self { turn, wire, .. } = self;
        let (me, world) = (turn.me, turn.world());
        let (rank, name) = (turn.world_rank(), turn.operation().name());
        wire.run(turn, |transfer| {
            let mut rest = recv;
            let mut own: &mut [T] = &mut [];
            for peer in 0..world {
                let (part, after) = rest.split_at_mut(expects(peer));
                rest = after;
                if peer == me {
                    own = part;
                } else {
                    transfer.recv(part, peer)?;
                }
            }
            let mut from: usize = (0..me).map(&sends).sum();
            let mine = &send[from..from + sends(me)];
            for peer in turn.peers().skip(1) {
                // After the last rank the first, whose part begins the list.
                from = if peer == 0 { 0 } else { from + sends(peer - 1) };
                transfer.send(&send[from..from + sends(peer)], peer)?;
            }
            // Compared already, where calls are.
            same_count(name, rank, rank, mine.len(), own.len())?;
            own.copy_from_slice(mine);
            Ok(())
        })
    }
}
