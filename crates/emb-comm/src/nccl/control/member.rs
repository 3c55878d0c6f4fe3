//! What a set of ranks asks of the other processes: [`Member`].

use super::message::{Late, Left, Message, Place};
use super::{Control, NcclControl, Shared, lock};
use crate::arguments::hash;
use crate::failure::FailureKind;
use crate::local::Turn;
use crate::local::world::World;
use crate::sync::Ordering;
use crate::{Error, Host, Local, Operation, Options, Result};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a rank whose library has failed waits for the reason of another. A rank that failed has
/// told it before, and it comes within milliseconds; more threads than cores take longer.
const REASON: Duration = Duration::from_secs(1);

/// How long a rank that waits for one that has left waits for the reason why.
const GONE: Duration = Duration::from_millis(50);

/// How long a rank that is late waits for rank 0's word: twice what others have to answer.
const WORD: Duration = Duration::from_secs(2);

/// A set of ranks, as this process is known in it.
pub(super) struct Seat {
    /// The same on all members, and no other set's.
    pub(super) name: u64,
    /// The name of the copy of the world that it is of.
    copy: u64,
    /// Its number in this process.
    group: u64,
    size: usize,
    /// Operations that have begun here.
    begun: AtomicU64,
    /// Has the step and the operation that this rank is in.
    world: Arc<World<Host>>,
    /// Members that have left: rank, what it said, when that was heard.
    pub(super) gone: Mutex<Vec<(usize, Left, Instant)>>,
    /// Whether this rank has.
    left: AtomicBool,
}

/// One rank's part in a set, beside its communicator.
pub(in crate::nccl) struct Member {
    control: Arc<Control>,
    seat: Arc<Seat>,
}

impl NcclControl {
    /// Makes this rank's end of the world, once.
    pub(in crate::nccl) fn join(&self, options: &Options) -> Result<(Local, Member)> {
        let shared = &self.control.shared;
        let mut joined = lock(&shared.joined);
        if joined.is_some() {
            let problem = "from_id_with: a world was made with this control already".to_owned();
            return Err(Error::Space(problem));
        }
        let world = Arc::new(shared.root.again(*options));
        *joined = Some(Arc::clone(&world));
        drop(joined);
        let local = Local::remote_in(world, shared.me);
        let member = Member::new(&self.control, &local, 0, 0);
        Ok((local, member))
    }
}

impl Member {
    fn new(control: &Arc<Control>, local: &Local, name: u64, copy: u64) -> Self {
        let (shared, size) = (&control.shared, local.members().len());
        let seat = Arc::new(Seat {
            name,
            copy,
            group: local.number(),
            size,
            begun: AtomicU64::new(0),
            world: local.shared(),
            gone: Mutex::default(),
            left: AtomicBool::new(false),
        });
        let mut seats = lock(&shared.seats);
        let mut early = lock(&shared.early);
        let mut gone = lock(&seat.gone);
        gone.extend(early.iter().filter(|(_, left, _)| left.set == name));
        early.retain(|(_, left, _)| left.set != name);
        shared.departures.fetch_add(gone.len() as u64, Ordering::AcqRel);
        drop(gone);
        seats.push(Arc::clone(&seat));
        Self { control: Arc::clone(control), seat }
    }

    /// The part in a set that is made of this one by `operation`. `lowest` of its members, by its
    /// number here, tells the sets of one division apart; members come to the same name.
    pub(in crate::nccl) fn part(&self, local: &Local, operation: Operation, lowest: usize) -> Self {
        let seat = &self.seat;
        let begun = seat.begun.load(Ordering::Relaxed);
        let name = hash(&[seat.name as usize, operation as usize, begun as usize, lowest]);
        let copy = if operation == Operation::Duplicate { name } else { seat.copy };
        Self::new(&self.control, local, name, copy)
    }

    /// An operation begins.
    pub(in crate::nccl) fn begins(&self) {
        self.seat.begun.fetch_add(1, Ordering::AcqRel);
    }

    /// Tells all of the failure of the world, if there is one.
    pub(in crate::nccl) fn tell(&self) {
        self.control.shared.tell();
    }

    /// Called now and then while this rank waits: fails where the world has, where a rank has left
    /// that is waited for, or too late.
    pub(in crate::nccl) fn watch(&self, turn: &Turn<'_, Host>) -> Result<()> {
        turn.still_well()?;
        if self.control.shared.departures.load(Ordering::Acquire) > 0 {
            self.look_for_gone(turn)?;
        }
        if turn.is_late() { Err(self.find_out(turn)) } else { Ok(()) }
    }

    /// Where it is the library that has failed, waits a moment for the reason of another rank.
    pub(in crate::nccl) fn wait_for_reason(&self, turn: &Turn<'_, Host>, error: &Error) {
        if !matches!(error, Error::Nccl { .. }) {
            return;
        }
        let shared = &self.control.shared;
        let deadline = Instant::now() + REASON;
        let someone = || shared.lines.iter().any(super::Line::is_open);
        while turn.still_well().is_ok() && someone() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Tells peers that this rank takes no further part in the set.
    pub(in crate::nccl) fn leave(&self) {
        let (shared, seat) = (&self.control.shared, &self.seat);
        if seat.left.swap(true, Ordering::AcqRel) || shared.root.has_failed() {
            return;
        }
        let begun = seat.begun.load(Ordering::Acquire);
        let (set, size) = (seat.name, seat.size as u64);
        shared.leaves(Left { set, begun, step: seat.world.step(shared.me), size });
    }

    /// Fails where this rank waits for one that has left before the operation, and has long enough.
    fn look_for_gone(&self, turn: &Turn<'_, Host>) -> Result<()> {
        let (seat, shared) = (&self.seat, &self.control.shared);
        let begun = seat.begun.load(Ordering::Relaxed);
        let gone = lock(&seat.gone);
        let left = gone.iter().find(|(_, left, _)| left.begun < begun);
        let left = left.map(|&(rank, left, at)| (rank, left.step, at));
        let has_said = |rank: usize| gone.iter().any(|&(other, ..)| other == rank);
        let ended = || {
            let ended = lock(&shared.ended);
            let of_set = |rank: usize| turn.members().contains(&rank) && !has_said(rank);
            ended.iter().copied().find(|&(rank, ..)| of_set(rank))
        };
        let Some((rank, last, at)) = left.or_else(ended) else { return Ok(()) };
        if at.elapsed() < GONE {
            return Ok(());
        }
        let (operation, step) = (turn.operation(), turn.step());
        let message = format!(
            "rank {rank} ended in step {last}, without taking part in {operation} of step {step}"
        );
        Err(turn.without(FailureKind::Left, vec![rank], message))
    }

    /// The time is over: what rank 0 finds, which asks all where they are.
    fn find_out(&self, turn: &Turn<'_, Host>) -> Error {
        let (shared, seat) = (&self.control.shared, &self.seat);
        let late = Late {
            operation: turn.operation(),
            step: turn.step(),
            copy: seat.copy,
            set: seat.name,
            begun: seat.begun.load(Ordering::Relaxed),
            timeout: seat.world.options.timeout,
            members: turn.members().to_vec(),
        };
        if shared.me == 0 {
            shared.inquire(late);
        } else {
            shared.send(shared.me, &Message::Late(late), shared.me);
        }
        let asked = Instant::now();
        while asked.elapsed() < WORD {
            if shared.me == 0 {
                shared.conclude();
            }
            if let Err(error) = turn.still_well() {
                return error;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        self.without_word(turn)
    }

    /// Rank 0 has said nothing.
    fn without_word(&self, turn: &Turn<'_, Host>) -> Error {
        let (operation, step) = (turn.operation(), turn.step());
        let is_there = self.control.shared.lines.iter().any(super::Line::is_open);
        let (ranks, why) = if is_there {
            (vec![0], "rank 0 does not answer: it is stopped, or its host out of reach")
        } else {
            (Vec::new(), "rank 0 has ended, so that nobody knows where the others are")
        };
        let timeout = self.seat.world.options.timeout;
        let message = format!("{operation} in step {step} did not end within {timeout:?}: {why}");
        turn.without(FailureKind::Missing, ranks, message)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
        let shared = &self.control.shared;
        lock(&shared.seats).retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        let gone = lock(&self.seat.gone).len() as u64;
        shared.departures.fetch_sub(gone, Ordering::AcqRel);
    }
}

impl Shared {
    /// Where this rank is with a copy of the world.
    pub(super) fn place(&self, copy: u64) -> Place {
        let seats = lock(&self.seats);
        let of_copy: Vec<&Arc<Seat>> = seats.iter().filter(|seat| seat.copy == copy).collect();
        let sets = of_copy.iter().map(|seat| (seat.name, seat.begun.load(Ordering::Acquire)));
        let sets = sets.collect();
        let Some(first) = of_copy.first() else {
            return Place { inside: None, step: self.step(), sets };
        };
        let state = &first.world.ranks[self.me];
        let inside = state.operation.load(Ordering::Relaxed).checked_sub(1);
        let operation = inside.and_then(|at| Operation::ALL.get(at as usize)).copied();
        let group = state.group.load(Ordering::Relaxed);
        let set = of_copy.iter().find(|seat| seat.group == group).map(|seat| seat.name);
        Place { inside: operation.zip(set), step: first.world.step(self.me), sets }
    }
}
