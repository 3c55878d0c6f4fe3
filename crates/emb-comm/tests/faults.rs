//! Seeded faults: a rank fails, panics, stalls or ends early somewhere, and every other rank is
//! told, by name and soon. `EMB_FAULTS` sets the number of schedules (400 by default).
#![cfg(not(loom))]

use emb_comm::{Collective, Error, Failure, FailureKind, Local, Options, Result, run};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const STEPS: u64 = 3;
const OPERATIONS: usize = 6;

/// For schedules whose fault is noticed without waiting: never reached.
const LONG: Duration = Duration::from_secs(25);
/// For schedules in which a rank stalls, as often as it takes: where processors are so busy that
/// another rank is late, it is missed first.
const SHORT: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(2), Duration::from_secs(10)];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Error,
    Panic,
    Stall,
    EndsEarly,
}

/// A run of `STEPS` steps of `OPERATIONS` operations each, one of which a rank does not get to.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    seed: u64,
    world: usize,
    /// Columns of the two-dimensional arrangement; 0 for one dimension.
    columns: usize,
    fault: Fault,
    rank: usize,
    step: u64,
    operation: usize,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        random.below(2);
        let (world, columns) = [(2, 0), (3, 0), (4, 0), (4, 2), (6, 3)][random.below(5) as usize];
        // Stalls cost their timeout: fewer of them.
        let fault = match random.below(8) {
            0..3 => Fault::Error,
            3..5 => Fault::Panic,
            5 => Fault::Stall,
            _ => Fault::EndsEarly,
        };
        Self {
            seed,
            world,
            columns,
            fault,
            rank: random.below(world as u64) as usize,
            step: random.below(STEPS),
            operation: random.below(OPERATIONS as u64) as usize,
        }
    }

    fn work(&self, comm: &mut Local) -> Result<(), Stop> {
        let me = comm.rank();
        let mut sets = Vec::new();
        if let Some(row) = me.checked_div(self.columns) {
            sets.extend(comm.split(Some(row), me)?);
            sets.extend(comm.split(Some(me % self.columns), me)?);
        }
        let mut random = Random(self.seed);
        for step in 0..STEPS {
            comm.set_step(step);
            for operation in 0..OPERATIONS {
                if (me, step, operation) == (self.rank, self.step, self.operation) {
                    match self.fault {
                        Fault::Error => return Err(Stop::Injected),
                        Fault::Panic => std::panic::resume_unwind(Box::new("injected panic")),
                        Fault::EndsEarly => return Ok(()),
                        Fault::Stall => stall(comm),
                    }
                }
                let (set, what) = (random.below(3) as usize, random.below(6));
                let len = random.below(3) * random.below(700);
                operate(sets.get_mut(set).unwrap_or(comm), what, len as usize)?;
            }
        }
        // No rank ends before all have come this far.
        Ok(comm.barrier()?)
    }
}

enum Stop {
    Injected,
    Collective(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Collective(error)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Injected => f.write_str("injected error"),
            Self::Collective(error) => error.fmt(f),
        }
    }
}

/// Sleeps past the timeout: until the others have given up.
fn stall(comm: &Local) {
    let began = Instant::now();
    while comm.failure().is_none() && began.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn operate(comm: &mut Local, what: u64, len: usize) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    match what {
        0 => comm.barrier(),
        1 => comm.all_reduce(&mut vec![1.0f32; len]),
        2 => {
            let mut recv = vec![9; len * world];
            comm.all_to_all_v(
                &vec![me as u8; len * world],
                &vec![len; world],
                &mut recv,
                &vec![len; world],
            )
        }
        3 => comm.all_gather_v(&vec![1u64; len], &mut vec![0; len * world], &vec![len; world]),
        4 => comm.broadcast(&mut vec![1i64; len], len % world),
        _ => comm.exchange_counts(&vec![me; world], &mut vec![0; world]),
    }
}

/// Runs a schedule; the failure of the whole, and the error of every rank that has one.
fn attempt(schedule: Schedule, timeout: Duration) -> (Failure, Vec<(usize, Error)>) {
    let options = Options::default().with_timeout(timeout);
    let errors: Mutex<Vec<(usize, Error)>> = Mutex::new(Vec::new());
    let began = Instant::now();
    let outcome = run(schedule.world, &options, |comm| {
        let outcome = schedule.work(comm);
        if let Err(Stop::Collective(error)) = &outcome {
            errors.lock().expect("no panic").push((comm.rank(), error.clone()));
        }
        outcome
    });
    assert!(began.elapsed() < LONG, "{schedule:?} took {:?}", began.elapsed());
    (outcome.expect_err("a rank failed"), errors.into_inner().expect("no panic"))
}

/// Runs a schedule and checks what every rank says.
fn check(schedule: Schedule) {
    let timeouts = if schedule.fault == Fault::Stall { &SHORT[..] } else { &[LONG] };
    let stalls = format!("rank {} is outside any collective", schedule.rank);
    let (last, first) = timeouts.split_last().expect("invariant: there are timeouts");
    let right = |(failure, _): &(Failure, _)| failure.to_string().contains(&stalls);
    let early = first.iter().map(|&timeout| attempt(schedule, timeout)).find(right);
    let (failure, errors) = early.unwrap_or_else(|| attempt(schedule, *last));
    check_failure(&schedule, &failure, true);
    // The rank that stalled comes back and is told as well.
    let told = schedule.world - usize::from(schedule.fault != Fault::Stall);
    assert_eq!(errors.len(), told, "{schedule:?}");
    for (own, error) in errors {
        let Error::Failed { rank, operation, step, failure } = &error else {
            panic!("{schedule:?}: {error}");
        };
        assert_eq!(*rank, own, "{schedule:?}: {error}");
        assert!(*step < STEPS, "{schedule:?}: {error}");
        let text = format!("{operation} on rank {own} in step {step}: ");
        assert!(error.to_string().starts_with(&text), "{schedule:?}: {error}");
        check_failure(&schedule, failure, false);
    }
}

/// The failure names the rank at fault and its step. A peer may have seen it end before the reason
/// was known; the run as a whole knows the reason.
fn check_failure(schedule: &Schedule, failure: &Failure, whole: bool) {
    let kind = match schedule.fault {
        Fault::Error => FailureKind::Error,
        Fault::Panic => FailureKind::Panic,
        Fault::Stall => FailureKind::Missing,
        Fault::EndsEarly => FailureKind::Left,
    };
    let early = !whole && failure.kind() == FailureKind::Left;
    assert!(failure.kind() == kind || early, "{schedule:?}: {failure}");
    assert!(failure.ranks().contains(&schedule.rank), "{schedule:?}: {failure}");
    let step = format!("step {}", schedule.step);
    assert!(failure.to_string().contains(&step), "{schedule:?}: {failure}");
    let reason = match schedule.fault {
        Fault::Error => "injected error",
        Fault::Panic => "injected panic",
        Fault::Stall => "is outside any collective",
        Fault::EndsEarly => "ended in step",
    };
    assert!(!whole || failure.to_string().contains(reason), "{schedule:?}: {failure}");
}

#[test]
fn u28_u26_whatever_a_rank_does_the_others_are_told() {
    let schedules = match std::env::var("EMB_FAULTS") {
        Ok(schedules) => schedules.parse().expect("EMB_FAULTS is a number"),
        Err(_) => 400,
    };
    let next = Arc::new(AtomicU64::new(0));
    let (sender, results) = mpsc::channel();
    for _ in 0..3 {
        let (next, sender) = (Arc::clone(&next), sender.clone());
        std::thread::spawn(move || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= schedules {
                    return;
                }
                let checked = std::panic::catch_unwind(|| check(Schedule::new(seed)));
                if sender.send((seed, checked)).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    for done in 0..schedules {
        // The watchdog: a schedule that hangs fails the test instead of stopping it.
        let result = results.recv_timeout(2 * LONG);
        let (_, checked) = result.unwrap_or_else(|error| panic!("after {done} schedules: {error}"));
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    }
}
