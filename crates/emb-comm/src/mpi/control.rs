//! What processes tell each other beside the collectives: failures, where they are, that they end.
//!
//! A message goes to one process at a time, on a communicator of its own, short enough to be on
//! its way at once whatever the receiver does. Whoever waits for anything looks for messages now
//! and then; nobody else does, so that a rank that computes says nothing.

use super::calls::{self, Comm, Request};
use crate::header::{BEFORE_TEXT, put, told};
use crate::local::world::World;
use crate::{Failure, Host, Operation, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Words of the longest message: 2 KiB, which no library keeps back until the receiver is ready.
const WORDS: usize = 256;

/// Words before the failure in a message that has one.
const HEAD: usize = 4;

/// Kinds of message: word 0. Word 1 is the sender.
mod kind {
    /// A failure.
    pub(super) const FAILED: u64 = 1;
    /// The place of a rank that asks for those of the others.
    pub(super) const ASKS: u64 = 2;
    /// The place of a rank that was asked.
    pub(super) const ANSWERS: u64 = 3;
    /// The rank has ended its part in a set: tag, step.
    pub(super) const LEFT: u64 = 4;
    /// The process ends: step.
    pub(super) const ENDS: u64 = 5;
}

/// Where a rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) operation: Operation,
    pub(super) step: u64,
    /// The rank it waits for.
    pub(super) waits_for: Option<usize>,
    /// The duplicate that the operation is of, by its tag.
    copy: u64,
    /// When it said so.
    at: Instant,
}

impl Place {
    /// A rank that is here, now.
    pub(super) fn here(operation: Operation, step: u64, waits_for: Option<usize>) -> Vec<Self> {
        vec![Self { operation, step, waits_for, copy: 0, at: Instant::now() }]
    }
}

/// One process of a world, as seen by the others.
pub(super) struct Control {
    pub(super) me: usize,
    pub(super) size: usize,
    /// For these messages.
    comm: Comm,
    /// For data.
    pub(super) data: Comm,
    /// Has the failure of the world.
    world: Arc<World<Host>>,
    /// Whether all processes know of it.
    told: AtomicBool,
    /// Counts questions where this process is.
    asked: AtomicU64,
    /// How many departures are known that concern a set that lives here.
    departures: AtomicU64,
    /// Tags that sets have; see `groups.rs`.
    pub(super) tags: Mutex<super::groups::Tags>,
    inbox: Mutex<Box<[u64; WORDS]>>,
    outbox: Mutex<Vec<(Request, Box<[u64]>)>>,
    heard: Mutex<Heard>,
}

/// What others have said, by rank.
struct Heard {
    places: Vec<Vec<Place>>,
    /// Tag and step of the sets it has left.
    left: Vec<Vec<(u64, u64)>>,
    /// The step in which its process has ended.
    ended: Vec<Option<u64>>,
}

impl Control {
    pub(super) fn new(
        [me, size]: [usize; 2],
        [comm, data]: [Comm; 2],
        world: Arc<World<Host>>,
    ) -> Result<Self> {
        let heard = Heard {
            places: vec![Vec::new(); size],
            left: vec![Vec::new(); size],
            ended: vec![None; size],
        };
        Ok(Self {
            me,
            size,
            comm,
            data,
            world,
            told: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            departures: AtomicU64::new(0),
            tags: Mutex::new(super::groups::Tags::up_to(Comm::all().largest_tag()?)),
            inbox: Mutex::new(Box::new([0; WORDS])),
            outbox: Mutex::default(),
            heard: Mutex::new(heard),
        })
    }

    /// Tells all processes of the failure, if there is one that they are not told of yet.
    pub(super) fn tell(&self) {
        let Some(failure) = self.world.failure() else { return };
        if !self.told.swap(true, Ordering::AcqRel) {
            self.pass_on(&failure);
        }
    }

    fn pass_on(&self, failure: &Failure) {
        let mut words = [0; WORDS];
        words[0] = kind::FAILED;
        let long = put(failure, &mut words[HEAD..]);
        self.to_others(&mut words[..HEAD + long]);
    }

    /// Tells those of `members` that this rank takes no further part in a set.
    pub(super) fn leave(&self, tag: u64, step: u64, members: &[usize]) {
        let mut words = [kind::LEFT, 0, tag, step];
        self.send(&mut words, members.iter().copied().filter(|&rank| rank != self.me));
    }

    /// Tells all where this rank is.
    pub(super) fn say_where(
        &self,
        operation: Operation,
        step: u64,
        [rank, copy]: [u64; 2],
        asks: bool,
    ) {
        let kind = if asks { kind::ASKS } else { kind::ANSWERS };
        self.to_others(&mut [kind, 0, operation as u64, step, rank + 1, copy]);
    }

    fn to_others(&self, words: &mut [u64]) {
        self.send(words, (0..self.size).filter(|&rank| rank != self.me));
    }

    fn send(&self, words: &mut [u64], ranks: impl Iterator<Item = usize>) {
        words[1] = self.me as u64;
        let mut outbox = lock(&self.outbox);
        outbox.retain_mut(|(request, _)| !matches!(request.has_ended(), Ok(true)));
        for rank in ranks {
            let words: Box<[u64]> = words.into();
            let bytes = bytemuck::cast_slice::<u64, u8>(&words);
            // SAFETY: kept below until the request has ended, and nobody writes there.
            let request = unsafe { self.comm.send(bytes, rank, 0) };
            // Whoever cannot be told finds out by waiting.
            if let Ok(request) = request {
                outbox.push((request, words));
            }
        }
    }

    /// Takes in what has arrived. Another thread may be at it: then it is.
    pub(super) fn look(&self) -> Result<()> {
        let Ok(mut words) = self.inbox.try_lock() else { return Ok(()) };
        while let Some(rank) = self.comm.waiting()? {
            words.fill(0);
            self.comm.take(&mut words[..], rank)?;
            self.take_in(&words[..]);
        }
        Ok(())
    }

    fn take_in(&self, words: &[u64]) {
        let Some(rank) = Some(words[1] as usize).filter(|&rank| rank < self.size) else { return };
        match words[0] {
            kind::FAILED => {
                if let Some(failure) = told(&words[HEAD..]) {
                    self.told.store(true, Ordering::Release);
                    self.world.explain(failure);
                }
            }
            kind::ASKS | kind::ANSWERS => {
                let operation = Operation::ALL.get(words[2] as usize).copied();
                if let Some(operation) = operation {
                    let waits_for = (words[4] as usize).checked_sub(1);
                    let [step, copy] = [words[3], words[5]];
                    let place = Place { operation, step, waits_for, copy, at: Instant::now() };
                    lock(&self.heard).places[rank].push(place);
                }
                if words[0] == kind::ASKS {
                    self.asked.fetch_add(1, Ordering::AcqRel);
                }
            }
            kind::LEFT if lock(&self.tags).has(words[2]) => {
                lock(&self.heard).left[rank].push((words[2], words[3]));
                self.departures.fetch_add(1, Ordering::AcqRel);
            }
            kind::ENDS => {
                lock(&self.heard).ended[rank] = Some(words[2]);
                self.departures.fetch_add(1, Ordering::AcqRel);
            }
            // Of a set that this rank has left itself.
            _ => {}
        }
    }

    /// How often this process was asked where it is.
    pub(super) fn questions(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Whether ranks have left sets that this one is in.
    pub(super) fn has_departures(&self) -> bool {
        self.departures.load(Ordering::Acquire) > 0
    }

    /// The step in which a rank has left a set, if it has.
    pub(super) fn left_in(&self, rank: usize, tag: u64) -> Option<u64> {
        let heard = lock(&self.heard);
        let left = heard.left[rank].iter().find(|&&(left, _)| left == tag);
        left.map(|&(_, step)| step).or(heard.ended[rank])
    }

    /// Forgets a set that this rank leaves too.
    pub(super) fn forget(&self, tag: u64) {
        lock(&self.tags).release(tag);
        let mut heard = lock(&self.heard);
        for left in &mut heard.left {
            let before = left.len();
            left.retain(|&(set, _)| set != tag);
            self.departures.fetch_sub((before - left.len()) as u64, Ordering::AcqRel);
        }
    }

    /// Where ranks have said, not longer ago than `since`, that they are with a duplicate: what
    /// their other threads do says nothing of it.
    pub(super) fn places(&self, since: Instant, copy: u64) -> Vec<Vec<Place>> {
        let mut places = lock(&self.heard).places.clone();
        let counts = |place: &Place| place.at >= since && place.copy == copy;
        for said in &mut places {
            said.retain(counts);
        }
        places
    }

    /// Called when the process exits: the processes end together. After a failure each waits a
    /// little until all others have said what they had to say, because the launcher ends the job
    /// as soon as one of them has gone; and the rank that failed goes first, because the launcher
    /// ends with its code.
    pub(super) fn end(&self) {
        /// How long a process that failed waits for others to have seen the failure and ended.
        const GRACE: Duration = Duration::from_millis(1500);
        /// How far ahead of the others the rank that failed goes. Launchers look for ended
        /// processes as they end: a few milliseconds are enough, more ranks than cores take longer.
        const AHEAD: Duration = Duration::from_millis(100);
        // Also of what others are said to know: messages of two processes may overtake each other,
        // and then those that hear of this end first would take it for the cause.
        if let Some(failure) = self.world.failure() {
            self.pass_on(&failure);
        }
        self.to_others(&mut [kind::ENDS, 0, self.world.step(self.me)]);
        let mut failed_since = None;
        let mut pause = Duration::from_micros(20);
        loop {
            if self.look().is_err() {
                return;
            }
            let heard = lock(&self.heard);
            let all = (0..self.size).all(|rank| rank == self.me || heard.ended[rank].is_some());
            drop(heard);
            if let Some(failure) = self.world.failure() {
                let since = failed_since.get_or_insert_with(Instant::now);
                if all || since.elapsed() > GRACE {
                    if !failure.ranks().contains(&self.me) {
                        std::thread::sleep(AHEAD);
                    }
                    // The library is left as it is: its own end would wait for all.
                    return;
                }
            } else if all {
                return calls::finalize();
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }
}

/// A lock that a panic elsewhere does not take away: what it guards is changed in one go.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const _: () = assert!(HEAD + BEFORE_TEXT < WORDS, "a message has room for text");
