//! What all groups of ranks of one world share: its failure, and where each rank is.

use super::board::Board;
use super::options::Options;
use crate::failure::{Failure, FailureKind};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::{Error, Operation};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The ranks of one run, each in one operation at a time.
///
/// A duplicate has the same ranks once more, which may be in another operation at the same time.
pub(crate) struct World<S> {
    pub(crate) options: Options,
    pub(crate) ranks: Box<[RankState]>,
    fate: Arc<Fate>,
    /// Groups that some of their members have still to pick up.
    pending: Mutex<Vec<Pending<S>>>,
}

/// What a world shares with its duplicates: they fail together.
#[derive(Default)]
struct Fate {
    failed: AtomicBool,
    failure: Mutex<Option<Failure>>,
    groups: AtomicU64,
}

/// What others may know of a rank.
#[derive(Default)]
pub(crate) struct RankState {
    pub(crate) step: AtomicU64,
    /// Whether it is inside an operation: it is in at most one at a time.
    pub(crate) busy: AtomicBool,
    /// `operation + 1` of the operation it is in, 0 outside. For messages alone.
    pub(crate) operation: AtomicU64,
    /// The group of that operation. For messages alone.
    pub(crate) group: AtomicU64,
    /// `rank + 1` of the rank it waits for, 0 if it does not. For messages alone.
    pub(crate) waits_for: AtomicU64,
}

/// Ranks that call collectives together.
pub(crate) struct Group<S> {
    pub(crate) id: u64,
    /// Members as numbered in the world.
    pub(crate) members: Box<[usize]>,
    pub(crate) board: Board<S>,
}

/// Names a group before it exists: parent group, round of its creation, number of the part.
pub(crate) type Birth = (u64, u64, usize);

struct Pending<S> {
    birth: Birth,
    /// The world that the group is of, where it is a duplicate.
    world: Option<Arc<World<S>>>,
    group: Arc<Group<S>>,
    missing: usize,
}

impl<S: crate::Space> World<S> {
    pub(crate) fn new(ranks: usize, options: Options) -> Self {
        Self::with_fate(ranks, options, Arc::default())
    }

    fn with_fate(ranks: usize, options: Options, fate: Arc<Fate>) -> Self {
        let ranks = (0..ranks).map(|_| RankState::default()).collect();
        Self { options, ranks, fate, pending: Mutex::new(Vec::new()) }
    }

    /// The same ranks once more, under other options: they fail together.
    #[cfg(feature = "nccl")]
    pub(crate) fn again(&self, options: Options) -> Self {
        Self::with_fate(self.ranks.len(), options, Arc::clone(&self.fate))
    }

    /// A group with a number of its own.
    pub(crate) fn group(&self, members: Vec<usize>) -> Group<S> {
        let id = self.fate.groups.fetch_add(1, Ordering::Relaxed);
        Group { id, board: Board::new(members.len()), members: members.into() }
    }

    /// The group born as `birth`: made by the member that comes first, picked up by each once.
    pub(crate) fn join(&self, birth: Birth, members: Vec<usize>) -> Arc<Group<S>> {
        self.pick_up(birth, members.len(), || (None, Arc::new(self.group(members)))).1
    }

    /// The duplicate born as `birth`, with a group of `members`.
    pub(crate) fn duplicate(
        &self,
        birth: Birth,
        members: Vec<usize>,
    ) -> (Arc<World<S>>, Arc<Group<S>>) {
        let (world, group) = self.pick_up(birth, members.len(), || {
            let world = Self::with_fate(self.ranks.len(), self.options, Arc::clone(&self.fate));
            for (new, old) in world.ranks.iter().zip(&self.ranks) {
                new.step.store(old.step.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            let group = Arc::new(world.group(members));
            (Some(Arc::new(world)), group)
        });
        (world.expect("invariant: a duplicate is born with its world"), group)
    }

    fn pick_up(
        &self,
        birth: Birth,
        members: usize,
        make: impl FnOnce() -> (Option<Arc<World<S>>>, Arc<Group<S>>),
    ) -> (Option<Arc<World<S>>>, Arc<Group<S>>) {
        let mut pending = lock(&self.pending);
        let found = pending.iter().position(|pending| pending.birth == birth);
        let index = found.unwrap_or_else(|| {
            let (world, group) = make();
            pending.push(Pending { birth, world, group, missing: members });
            pending.len() - 1
        });
        pending[index].missing -= 1;
        if pending[index].missing == 0 {
            let Pending { world, group, .. } = pending.swap_remove(index);
            (world, group)
        } else {
            (pending[index].world.clone(), Arc::clone(&pending[index].group))
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.fate.failed.load(Ordering::Acquire)
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        if self.has_failed() { lock(&self.fate.failure).clone() } else { None }
    }

    /// Records a failure and returns the first one of this world.
    ///
    pub(crate) fn fail(&self, failure: Failure) -> Failure {
        let mut first = lock(&self.fate.failure);
        let first = first.get_or_insert(failure);
        self.fate.failed.store(true, Ordering::Release);
        first.clone()
    }

    /// Records why a rank ended, known only after it is out of its work, and returns the first
    /// failure. It drops communicators on its way out, so that it may have been seen as gone or as
    /// panicking before: the reason replaces that.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        let mut first = lock(&self.fate.failure);
        let is_vague = |first: &Failure| {
            let vague = matches!(first.kind(), FailureKind::Left | FailureKind::Panic);
            vague && first.ranks() == failure.ranks()
        };
        if first.as_ref().is_none_or(is_vague) {
            *first = Some(failure.clone());
        }
        self.fate.failed.store(true, Ordering::Release);
        first.clone().unwrap_or(failure)
    }

    pub(crate) fn step(&self, rank: usize) -> u64 {
        self.ranks[rank].step.load(Ordering::Relaxed)
    }

    /// The rank at the end of the chain of waiting that begins with `rank`: the one to look at. In
    /// a cycle, which takes two ranks that call collectives of two groups in different order, it
    /// is `rank` itself.
    pub(crate) fn culprit(&self, rank: usize) -> usize {
        let mut last = rank;
        for _ in 0..self.ranks.len() {
            match self.waits_for(last) {
                None => return last,
                Some(next) if next == rank => return rank,
                Some(next) => last = next,
            }
        }
        rank
    }

    /// The rank that a rank waits for at this moment.
    fn waits_for(&self, rank: usize) -> Option<usize> {
        let state = &self.ranks[rank];
        let inside = state.operation.load(Ordering::Relaxed) != 0;
        let other = state.waits_for.load(Ordering::Relaxed).checked_sub(1);
        other.filter(|_| inside).map(|other| other as usize)
    }

    /// Where a rank is, in words.
    pub(crate) fn whereabouts(&self, rank: usize) -> String {
        let state = &self.ranks[rank];
        let step = state.step.load(Ordering::Relaxed);
        let inside = state.operation.load(Ordering::Relaxed).checked_sub(1);
        let operation = inside.and_then(|operation| Operation::ALL.get(operation as usize));
        let Some(operation) = operation else {
            return format!("rank {rank} is outside any collective in step {step}");
        };
        let group = state.group.load(Ordering::Relaxed);
        let place = format!("rank {rank} is in {operation} of group {group} in step {step}");
        match self.waits_for(rank) {
            Some(other) => format!("{place} and waits for rank {other}"),
            None => place,
        }
    }

    /// The failure of a rank that gives up or whose work has failed.
    pub(crate) fn own_failure(&self, kind: FailureKind, rank: usize, reason: &str) -> Failure {
        let step = self.step(rank);
        let verb = match kind {
            FailureKind::Panic => "panicked",
            FailureKind::Aborted => "gave up",
            _ => "failed",
        };
        let colon = if reason.is_empty() { "" } else { ": " };
        let message = format!("rank {rank} {verb} in step {step}{colon}{reason}");
        Failure::new(kind, vec![rank], None, step, message)
    }

    /// What an operation returns after a failure.
    pub(crate) fn error(&self, operation: Operation, rank: usize, failure: Failure) -> Error {
        Error::Failed { operation, rank, step: self.step(rank), failure: Box::new(failure) }
    }
}

/// A lock that a panic elsewhere does not take away: what it guards is changed in one go.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
