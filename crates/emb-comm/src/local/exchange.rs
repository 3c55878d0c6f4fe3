//! Operations of [`Local`] that move elements unchanged.

use super::Local;
use super::board::Offer;
use super::terms::Terms;
use super::turn::Turn;
use crate::arguments::{counted, exchanged, gathered, hash, same_count};
use crate::{Element, Error, Operation, Result, Space};

impl<S: Space> Local<S> {
    pub(super) fn all_to_all<T: Element>(
        &mut self,
        send: S::Ref<'_, T>,
        send_counts: &[usize],
        mut recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = Operation::AllToAllV;
        let mut turn = Turn::begin(self, Terms::of::<T>(operation))?;
        let name = operation.name();
        let sends = (S::len(send), send_counts);
        let fits = exchanged(name, turn.world(), sends, (S::len_mut(&recv), recv_counts));
        fits.map_err(|error| turn.refuse(error))?;
        settle(&turn)?;
        let offer = Offer { parts: [Some(S::shorten(send)), None], counts: send_counts };
        let publication = turn.publish(&offer);
        turn.gather()?;
        let pins = turn.pins()?;
        let (me, members) = (turn.me, &turn.group.members);
        // All counts are compared before anything is written.
        for (peer, &expected) in recv_counts.iter().enumerate() {
            let sent = pins.offer::<T>(peer).counts[me];
            same_count(name, members[peer], members[me], sent, expected)
                .map_err(|error| turn.refuse(error))?;
        }
        for peer in turn.peers() {
            let offer = pins.offer::<T>(peer);
            let (from, into) = (&offer.counts[..me], &recv_counts[..peer]);
            let (from, into) = (from.iter().sum(), into.iter().sum());
            let count = recv_counts[peer];
            let view = offer.parts[0].expect("invariant: published with the call");
            let to = part::<S, T>(&mut recv, into, count);
            copy(&turn, to, S::slice(view, from, count))?;
            turn.took::<T>(peer, count);
        }
        settle(&turn)?;
        drop(pins);
        turn.done();
        turn.wait_done()?;
        publication.end(turn.round());
        turn.end();
        Ok(())
    }

    /// `operation` is what it is a part of.
    pub(crate) fn counts(
        &mut self,
        operation: Operation,
        send: &[usize],
        recv: &mut [usize],
    ) -> Result<()> {
        let terms = Terms::of::<u64>(operation).length(send.len());
        let mut turn = Turn::begin(self, terms)?;
        let (me, each) = (turn.me, send.len() / turn.world());
        let fits = counted(operation.name(), turn.world(), send.len(), recv.len());
        fits.map_err(|error| turn.refuse(error))?;
        let offer = Offer::<S, u64> { parts: [None, None], counts: send };
        let publication = turn.publish(&offer);
        turn.gather()?;
        let pins = turn.pins()?;
        for peer in turn.peers() {
            let from = &pins.offer::<u64>(peer).counts[me * each..][..each];
            recv[peer * each..][..each].copy_from_slice(from);
            turn.took::<u64>(peer, each);
        }
        drop(pins);
        turn.done();
        turn.wait_done()?;
        publication.end(turn.round());
        turn.end();
        Ok(())
    }

    pub(super) fn all_gather<T: Element>(
        &mut self,
        send: S::Ref<'_, T>,
        mut recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = Operation::AllGatherV;
        let terms = Terms::of::<T>(operation).length(S::len_mut(&recv)).tag(hash(recv_counts));
        let mut turn = Turn::begin(self, terms)?;
        let (me, name) = (turn.me, operation.name());
        let takes = (S::len_mut(&recv), recv_counts);
        let fits = gathered(name, (me, turn.world()), S::len(send), takes);
        fits.map_err(|error| turn.refuse(error))?;
        settle(&turn)?;
        let offer = Offer { parts: [Some(S::shorten(send)), None], counts: &[] };
        let publication = turn.publish(&offer);
        turn.gather()?;
        let pins = turn.pins()?;
        for peer in turn.peers() {
            let view = pins.offer::<T>(peer).parts[0];
            let view = view.expect("invariant: published with the call");
            let (into, count) = (recv_counts[..peer].iter().sum(), recv_counts[peer]);
            copy(&turn, part::<S, T>(&mut recv, into, count), view)?;
            turn.took::<T>(peer, count);
        }
        settle(&turn)?;
        drop(pins);
        turn.done();
        turn.wait_done()?;
        publication.end(turn.round());
        turn.end();
        Ok(())
    }

    pub(super) fn copy_from_root<T: Element>(
        &mut self,
        values: S::Mut<'_, T>,
        root: usize,
    ) -> Result<()> {
        let operation = Operation::Broadcast;
        let terms = Terms::of::<T>(operation).length(S::len_mut(&values)).tag(root as u64);
        let mut turn = Turn::begin(self, terms)?;
        let (rank, world) = (root, turn.world());
        if root >= world {
            let error = Error::NoSuchRank { operation: operation.name(), rank, world };
            return Err(turn.refuse(error));
        }
        settle(&turn)?;
        if turn.me == root {
            let view = S::shorten(S::freeze(&values));
            let offer = Offer { parts: [Some(view), None], counts: &[] };
            let publication = turn.publish(&offer);
            turn.gather()?;
            turn.done();
            turn.wait_done()?;
            publication.end(turn.round());
        } else {
            turn.announce();
            turn.gather()?;
            let pins = turn.pins()?;
            let view = pins.offer::<T>(root).parts[0];
            turn.took::<T>(root, S::len_mut(&values));
            copy(&turn, values, view.expect("invariant: published with the call"))?;
            settle(&turn)?;
            drop(pins);
            turn.done();
        }
        turn.end();
        Ok(())
    }

    /// Waits for all and compares `terms`.
    pub(super) fn meet(&mut self, terms: Terms) -> Result<()> {
        let mut turn = Turn::begin(self, terms)?;
        turn.announce();
        turn.gather()?;
        turn.done();
        turn.end();
        Ok(())
    }
}

/// Elements `start .. start + len` of a view.
pub(super) fn part<'a, S: Space, T: Element>(
    view: &'a mut S::Mut<'_, T>,
    start: usize,
    len: usize,
) -> S::Mut<'a, T> {
    let (_, rest) = S::split(S::reborrow(view), start);
    S::split(rest, len).0
}

pub(super) fn copy<S: Space, T: Element>(
    turn: &Turn<'_, S>,
    to: S::Mut<'_, T>,
    from: S::Ref<'_, T>,
) -> Result<()> {
    turn.space.copy(to, from).map_err(|error| turn.refuse(error))
}

pub(super) fn settle<S: Space>(turn: &Turn<'_, S>) -> Result<()> {
    turn.space.settle().map_err(|error| turn.refuse(error))
}
