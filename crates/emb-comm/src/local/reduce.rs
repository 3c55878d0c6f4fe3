//! Reductions of [`Local`]: each rank reduces one part of every rank's values, in rank order.

use super::Local;
use super::board::Offer;
use super::exchange::{copy, part, settle};
use super::terms::Terms;
use super::turn::Turn;
use crate::arguments::{hash, reduced};
use crate::{Operation, Reduction, Result, Space, Sum};
use std::cmp::Ordering;
use std::ops::Range;

impl<S: Space> Local<S> {
    /// Two rounds: in the first, this rank reduces its part, reading it from every peer; in the
    /// second it copies the other parts from those that reduced them. What peers read and what
    /// this rank writes never overlap.
    pub(super) fn reduce_all<T: Sum>(
        &mut self,
        how: Reduction,
        values: S::Mut<'_, T>,
    ) -> Result<()> {
        let operation = match how {
            Reduction::Sum => Operation::AllReduce,
            Reduction::Max => Operation::AllReduceMax,
        };
        let len = S::len_mut(&values);
        let mut turn = Turn::begin(self, Terms::of::<T>(operation).length(len))?;
        let (me, world) = (turn.me, turn.world());
        settle(&turn)?;
        let own = chunk(me, world, len);
        let (mut low, rest) = S::split(values, own.start);
        let (mut mine, mut high) = S::split(rest, own.len());

        let views = [&low, &high].map(|view| Some(S::shorten(S::freeze(view))));
        let others = Offer { parts: views, counts: &[] };
        let first = turn.publish(&others);
        turn.gather()?;
        let pins = turn.pins()?;
        let source = |peer: usize| {
            // A peer offers its values without its own part: those before it, those after it.
            let [low, high] = pins.offer::<T>(peer).parts;
            let (view, start) = match peer.cmp(&me) {
                Ordering::Equal => return None,
                Ordering::Greater => (low, own.start),
                Ordering::Less => (high, own.start - chunk(peer, world, len).end),
            };
            Some(S::slice(view.expect("invariant: published with the call"), start, own.len()))
        };
        let reduced = turn.space.reduce(how, S::reborrow(&mut mine), world, source);
        reduced.map_err(|error| turn.refuse(error))?;
        for peer in turn.peers() {
            turn.took::<T>(peer, own.len());
        }
        settle(&turn)?;
        drop(pins);

        let view = S::shorten(S::freeze(&mine));
        let result = Offer { parts: [Some(view), None], counts: &[] };
        let second = turn.publish(&result);
        turn.wait_published()?;
        first.end(turn.round() - 1);
        let pins = turn.pins()?;
        for peer in turn.peers().skip(1) {
            let theirs = chunk(peer, world, len);
            let view = pins.offer::<T>(peer).parts[0];
            let view = view.expect("invariant: published with the call");
            let to = if peer < me {
                part::<S, T>(&mut low, theirs.start, theirs.len())
            } else {
                part::<S, T>(&mut high, theirs.start - own.end, theirs.len())
            };
            copy(&turn, to, view)?;
            turn.took::<T>(peer, theirs.len());
        }
        settle(&turn)?;
        drop(pins);
        turn.done();
        turn.wait_done()?;
        second.end(turn.round());
        turn.end();
        Ok(())
    }

    /// `counts` are the lengths of the ranks' parts; without, all are as long as `recv`.
    pub(super) fn reduce_parts<T: Sum>(
        &mut self,
        send: S::Ref<'_, T>,
        recv: S::Mut<'_, T>,
        counts: Option<&[usize]>,
    ) -> Result<()> {
        let operation = Operation::ReduceScatterV;
        let tag = counts.map_or(0, hash);
        let terms = Terms::of::<T>(operation).length(S::len(send)).tag(tag);
        let mut turn = Turn::begin(self, terms)?;
        let (me, world, name) = (turn.me, turn.world(), operation.name());
        let len = S::len_mut(&recv);
        let fits = reduced(name, (me, world), S::len(send), (len, counts));
        fits.map_err(|error| turn.refuse(error))?;
        let start = counts.map_or(me * len, |counts| counts[..me].iter().sum());
        settle(&turn)?;
        let offer = Offer { parts: [Some(S::shorten(send)), None], counts: &[] };
        let publication = turn.publish(&offer);
        turn.gather()?;
        let pins = turn.pins()?;
        let source = |peer| {
            let view = pins.offer::<T>(peer).parts[0];
            Some(S::slice(view.expect("invariant: published with the call"), start, len))
        };
        let reduced = turn.space.reduce(Reduction::Sum, recv, world, source);
        reduced.map_err(|error| turn.refuse(error))?;
        for peer in turn.peers() {
            turn.took::<T>(peer, len);
        }
        settle(&turn)?;
        drop(pins);
        turn.done();
        turn.wait_done()?;
        publication.end(turn.round());
        turn.end();
        Ok(())
    }
}

/// The part of `len` elements that a rank reduces: parts differ by at most one element.
pub(crate) fn chunk(rank: usize, world: usize, len: usize) -> Range<usize> {
    let start = |rank: usize| len / world * rank + (len % world).min(rank);
    start(rank)..start(rank + 1)
}
