//! Operations of [`Nccl`] that move elements unchanged.

use super::{Nccl, Op, Terms};
use crate::arguments::{counted, exchanged, gathered, hash};
use crate::{Element, Error, Operation, Result};
use emb_cuda::{View, ViewMut};

impl Nccl {
    pub(super) fn all_to_all<T: Element>(
        &mut self,
        send: View<'_, T>,
        send_counts: &[usize],
        mut recv: ViewMut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = Operation::AllToAllV;
        let mut op = self.begin(Terms::of::<T>(operation))?;
        let (me, world, name) = (op.turn.me, op.turn.world(), operation.name());
        let fits = exchanged(name, world, (send.len(), send_counts), (recv.len(), recv_counts));
        op.agree_on(fits, send_counts, recv_counts)?;
        op.exchange(send, send_counts, &mut recv, recv_counts, me)?;
        op.took::<T>(recv_counts);
        op.turn.end();
        Ok(())
    }

    /// `operation` is what it is a part of.
    pub(super) fn counts(
        &mut self,
        operation: Operation,
        send: &[usize],
        recv: &mut [usize],
    ) -> Result<()> {
        if self.headers.is_none() {
            return self.control.counts(operation, send, recv);
        }
        let mut op = self.begin(Terms::of::<u64>(operation).length(send.len()))?;
        let world = op.turn.world();
        let each = send.len() / world;
        op.agree(counted(operation.name(), world, send.len(), recv.len()))?;
        let Op { turn, link, headers, .. } = &mut op;
        let headers = headers.as_mut().expect("invariant: looked at above");
        headers.exchange(turn, link, send, recv)?;
        for peer in op.turn.peers() {
            op.turn.took::<u64>(peer, each);
        }
        op.turn.end();
        Ok(())
    }

    pub(super) fn all_gather<T: Element>(
        &mut self,
        send: View<'_, T>,
        mut recv: ViewMut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = Operation::AllGatherV;
        let terms = Terms::of::<T>(operation).length(recv.len()).tag(hash(recv_counts));
        let mut op = self.begin(terms)?;
        let (me, world, name) = (op.turn.me, op.turn.world(), operation.name());
        op.agree(gathered(name, (me, world), send.len(), (recv.len(), recv_counts)))?;
        let Op { turn, link, .. } = &mut op;
        let equal = recv_counts.iter().all(|&count| count == send.len());
        if recv.is_empty() {
        } else if equal && world > 1 {
            let homes = [send.home(), recv.home()];
            link.run(turn, &homes, |link| {
                let recv = recv.reborrow();
                link.call(turn, |comm| comm.all_gather(send, recv, &link.stream))
            })?;
        } else {
            op.gather_uneven(send, &mut recv, recv_counts)?;
        }
        op.took::<T>(recv_counts);
        op.turn.end();
        Ok(())
    }

    pub(super) fn copy_from_root<T: Element>(
        &mut self,
        mut values: ViewMut<'_, T>,
        root: usize,
    ) -> Result<()> {
        let operation = Operation::Broadcast;
        let terms = Terms::of::<T>(operation).length(values.len()).tag(root as u64);
        let mut op = self.begin(terms)?;
        let (me, world) = (op.turn.me, op.turn.world());
        let error = Error::NoSuchRank { operation: operation.name(), rank: root, world };
        op.agree(if root < world { Ok(()) } else { Err(error) })?;
        let Op { turn, link, .. } = &mut op;
        if !values.is_empty() && world > 1 {
            let homes = [values.home()];
            link.run(turn, &homes, |link| {
                let values = values.reborrow();
                link.call(turn, |comm| comm.broadcast(values, root, &link.stream))
            })?;
        }
        if me != root {
            op.turn.took::<T>(root, values.len());
        }
        op.turn.end();
        Ok(())
    }

    /// Waits for all and compares `terms`.
    pub(super) fn meet(&mut self, terms: Terms) -> Result<()> {
        let mut op = self.begin(terms)?;
        op.meet(Ok(()), &[], &[])?;
        op.turn.end();
        Ok(())
    }
}

impl Op<'_> {
    /// Sends a part of `send` to each rank, and receives a part from each; its own it copies.
    fn exchange<T: Element>(
        &mut self,
        send: View<'_, T>,
        send_counts: &[usize],
        recv: &mut ViewMut<'_, T>,
        recv_counts: &[usize],
        me: usize,
    ) -> Result<()> {
        let Self { turn, link, .. } = self;
        if send.is_empty() && recv.is_empty() {
            return Ok(());
        }
        let homes = [send.home(), recv.home()];
        link.run(turn, &homes, |link| {
            let stream = &link.stream;
            let mut own = (send.slice(0..0), 0);
            link.group(turn, |group| {
                let (mut from, mut into) = (0, 0);
                for (peer, (&sent, &expected)) in send_counts.iter().zip(recv_counts).enumerate() {
                    let part = send.slice(from..from + sent);
                    if peer == me {
                        own = (part, into);
                    } else {
                        group.send(part, peer, stream)?;
                        group.recv(recv.slice(into..into + expected), peer, stream)?;
                    }
                    from += sent;
                    into += expected;
                }
                Ok(())
            })?;
            let (part, into) = own;
            Ok(stream.copy(part, recv.slice(into..into + part.len()))?)
        })
    }

    /// Gathers parts of different lengths: each rank sends its own to all others.
    fn gather_uneven<T: Element>(
        &mut self,
        send: View<'_, T>,
        recv: &mut ViewMut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        let Self { turn, link, .. } = self;
        let me = turn.me;
        let homes = [send.home(), recv.home()];
        link.run(turn, &homes, |link| {
            let stream = &link.stream;
            let own: usize = recv_counts[..me].iter().sum();
            link.group(turn, |group| {
                let mut into = 0;
                for (peer, &count) in recv_counts.iter().enumerate() {
                    if peer != me {
                        group.send(send, peer, stream)?;
                        group.recv(recv.slice(into..into + count), peer, stream)?;
                    }
                    into += count;
                }
                Ok(())
            })?;
            Ok(stream.copy(send, recv.slice(own..own + send.len()))?)
        })
    }

    /// Counts what came from each rank.
    pub(super) fn took<T: Element>(&mut self, counts: &[usize]) {
        for (peer, &count) in counts.iter().enumerate() {
            self.turn.took::<T>(peer, count);
        }
    }
}
