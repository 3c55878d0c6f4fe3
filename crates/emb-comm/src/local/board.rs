//! The rendezvous of a group of threads: who has arrived, what they offer, who is looking at it.
//!
//! Collectives are rounds, numbered from 1. In a round a rank *publishes* a call (what it does) and
//! an offer (memory that others may read); once all have published, each *pins* its peers, reads
//! what they offer, unpins them and declares itself *done*; once all are done, everyone leaves.
//!
//! A slot has two entries, used in turn: a rank may publish round `n + 1` while others still read
//! its entry of round `n`. It publishes `n + 2` only after all have published `n + 1`, so after
//! all have finished with `n`.
//!
//! A rank that gives up *revokes* its slot, so that no new reader pins it, and then waits until
//! the present readers are gone. Only then may the memory it offered be freed. Readers copy and
//! never wait for a peer while they pin, so this ends.

use crate::element::sealed::Sealed;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Backoff, Ordering};
use crate::{Element, Space};
use std::marker::PhantomData;
use std::ptr;

/// What a rank says about a round, for its peers to compare.
pub(crate) type Call = [u64; 4];

/// What a rank lets its peers read in a round.
pub(crate) struct Offer<'a, S: Space, T: Element> {
    /// Views of its memory; their meaning depends on the operation.
    pub(crate) parts: [Option<S::Ref<'a, T>>; 2],
    /// Counts; their meaning depends on the operation.
    pub(crate) counts: &'a [usize],
}

/// One slot a rank. All ranks offer views of the same space.
pub(crate) struct Board<S> {
    slots: Box<[Slot]>,
    space: PhantomData<fn() -> S>,
}

/// A rank's slot, on cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Slot {
    /// The last round published.
    published: AtomicU64,
    /// The last round done.
    done: AtomicU64,
    /// Readers, and [`REVOKED`].
    pins: AtomicUsize,
    /// Whether the rank has gone and publishes nothing more.
    gone: AtomicBool,
    entries: [Entry; 2],
}

/// What a rank publishes in a round.
#[derive(Default)]
struct Entry {
    call: [AtomicU64; 4],
    /// [`Sealed::CODE`] of the offer's elements; 0 without offer.
    element: AtomicUsize,
    /// Points to the `Offer<'_, S, T>` of the type of `element`, on the publisher's stack.
    offer: AtomicPtr<()>,
}

const REVOKED: usize = 1 << (usize::BITS - 1);

/// What a round waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Published,
    Done,
}

/// Why waiting ended too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop<E> {
    /// The rank at this position has gone.
    Gone(usize),
    /// The caller gave up.
    GaveUp(E),
}

impl<S: Space> Board<S> {
    pub(crate) fn new(ranks: usize) -> Self {
        Self { slots: (0..ranks).map(|_| Slot::default()).collect(), space: PhantomData }
    }

    /// Publishes a call without offer.
    pub(crate) fn announce(&self, me: usize, round: u64, call: Call) {
        self.write(me, round, call, 0, ptr::null_mut());
    }

    /// Publishes a call and an offer, which stays borrowed until the publication ends.
    pub(crate) fn publish<'a, T: Element>(
        &'a self,
        me: usize,
        round: u64,
        call: Call,
        offer: &'a Offer<'_, S, T>,
    ) -> Publication<'a, S> {
        let publication = Publication { board: self, me, ended: false };
        let offer = ptr::from_ref(offer).cast::<()>().cast_mut();
        self.write(me, round, call, <T as Sealed>::CODE, offer);
        publication
    }

    fn write(&self, me: usize, round: u64, call: Call, element: u8, offer: *mut ()) {
        let slot = &self.slots[me];
        let entry = slot.entry(round);
        for (cell, word) in entry.call.iter().zip(call) {
            cell.store(word, Ordering::Relaxed);
        }
        entry.element.store(element.into(), Ordering::Relaxed);
        entry.offer.store(offer, Ordering::Relaxed);
        slot.published.store(round, Ordering::Release);
    }

    /// Declares that this rank reads nothing more in a round.
    pub(crate) fn done(&self, me: usize, round: u64) {
        self.slots[me].done.store(round, Ordering::Release);
    }

    /// Declares that this rank takes part in no further round.
    pub(crate) fn leave(&self, me: usize) {
        self.slots[me].gone.store(true, Ordering::Release);
    }

    /// Waits until every rank has reached a stage of a round, or `give_up`, told the position of
    /// the rank waited for, says otherwise.
    pub(crate) fn wait<E>(
        &self,
        round: u64,
        stage: Stage,
        mut give_up: impl FnMut(usize) -> Option<E>,
    ) -> Result<(), Stop<E>> {
        let mut backoff = Backoff::default();
        for position in 0..self.slots.len() {
            while !self.has_reached(position, round, stage) {
                if backoff.is_slow() {
                    if let Some(error) = give_up(position) {
                        return Err(Stop::GaveUp(error));
                    }
                    // It may have arrived in the last round of its life: look in this order.
                    let gone = self.slots[position].gone.load(Ordering::Acquire);
                    if gone && !self.has_reached(position, round, stage) {
                        return Err(Stop::Gone(position));
                    }
                }
                backoff.pause();
            }
        }
        Ok(())
    }

    /// Whether a rank has reached a stage of a round.
    pub(crate) fn has_reached(&self, position: usize, round: u64, stage: Stage) -> bool {
        let slot = &self.slots[position];
        let reached = match stage {
            Stage::Published => &slot.published,
            Stage::Done => &slot.done,
        };
        reached.load(Ordering::Acquire) >= round
    }

    /// The call of a rank that has published a round.
    pub(crate) fn call(&self, position: usize, round: u64) -> Call {
        let entry = self.slots[position].entry(round);
        [0, 1, 2, 3].map(|word| entry.call[word].load(Ordering::Relaxed))
    }

    /// Pins every rank's offer of this round. `None` if one of them has given up.
    ///
    /// # Panics
    /// If a rank has not published this round yet, or this rank is done with it already.
    pub(crate) fn pin(&self, me: usize, round: u64) -> Option<Pins<'_, S>> {
        assert!(!self.has_reached(me, round, Stage::Done), "pinned after being done");
        let mut pins = Pins { board: self, round, pinned: 0 };
        for (position, slot) in self.slots.iter().enumerate() {
            let published = self.has_reached(position, round, Stage::Published);
            assert!(published, "pinned before all ranks had published");
            // Acquire: what a rank wrote before it published is visible through `published`; this
            // orders the reads that follow after the pin. AcqRel: and the pin before them.
            let before = slot.pins.fetch_add(1, Ordering::AcqRel);
            pins.pinned += 1;
            if before & REVOKED != 0 {
                return None;
            }
        }
        Some(pins)
    }
}

impl Slot {
    fn entry(&self, round: u64) -> &Entry {
        &self.entries[usize::from(round % 2 == 1)]
    }
}

/// A rank's offer in a round. Ends by [`end`](Self::end) once all are done, or else by giving up:
/// dropped earlier, also by a panic, it revokes the slot and waits for the readers.
#[must_use = "dropped at once, it revokes what was published"]
pub(crate) struct Publication<'a, S> {
    board: &'a Board<S>,
    me: usize,
    ended: bool,
}

impl<S: Space> Publication<'_, S> {
    /// Ends the publication of `round` after everyone has reached its end: all are done with it,
    /// or have published the round after it.
    pub(crate) fn end(mut self, round: u64) {
        let reached = |position| {
            self.board.has_reached(position, round, Stage::Done)
                || self.board.has_reached(position, round + 1, Stage::Published)
        };
        self.ended = (0..self.board.slots.len()).all(reached);
        debug_assert!(self.ended, "round {round} ended before all ranks were done with it");
    }
}

impl<S> Drop for Publication<'_, S> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let pins = &self.board.slots[self.me].pins;
        pins.fetch_or(REVOKED, Ordering::AcqRel);
        let mut backoff = Backoff::default();
        // Acquire pairs with the release of each unpin: their reads happened before this returns.
        while pins.load(Ordering::Acquire) & !REVOKED != 0 {
            backoff.pause();
        }
    }
}

/// Every rank's offer of a round, held in place.
pub(crate) struct Pins<'a, S> {
    board: &'a Board<S>,
    round: u64,
    pinned: usize,
}

impl<S: Space> Pins<'_, S> {
    /// What the rank at a position offers.
    ///
    /// # Panics
    /// If it offers nothing, or elements of another type: ranks compare their calls before.
    pub(crate) fn offer<T: Element>(&self, position: usize) -> &Offer<'_, S, T> {
        let entry = self.board.slots[position].entry(self.round);
        let element = entry.element.load(Ordering::Relaxed);
        assert_eq!(element, usize::from(<T as Sealed>::CODE), "element types were compared");
        let offer = entry.offer.load(Ordering::Relaxed).cast::<Offer<'_, S, T>>().cast_const();
        // SAFETY: `publish` is the only place that stores an element code, and it stores with it a
        // pointer to an `Offer<'_, S, T>` of the same space (the board's) and the same element
        // type (codes are unique, the trait is sealed); only the lifetime differs, which `Offer`
        // may shorten, as `Space::shorten` made its views. The offer is alive and unchanged: its
        // borrow ends when `Publication` is dropped, which happens after every rank, this one
        // included, is done with the round, or after the slot is revoked and unpinned; this pin
        // was made before a revocation and ends after the reference returned here.
        unsafe { &*offer }
    }
}

impl<S> Drop for Pins<'_, S> {
    fn drop(&mut self) {
        for slot in &self.board.slots[..self.pinned] {
            slot.pins.fetch_sub(1, Ordering::Release);
        }
    }
}
