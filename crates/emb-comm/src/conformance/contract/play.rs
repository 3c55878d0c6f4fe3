//! What every rank of a case does: [`play`].

use super::case::{CULPRIT, Case, Fault, STEP, Sets};
use super::told::{Told, now};
use crate::{Collective, Error, Failure, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps after which a rank that nobody told anything gives up hoping.
const LAST: u64 = 10_000;

/// One rank's ends of its sets.
struct Ends<C> {
    sets: Sets,
    world: C,
    /// Two dimensions: this rank's group and replica set.
    parts: Option<[C; 2]>,
    step: u64,
}

/// Plays a rank's part in a case, from the beginning to the end of `comm`, and returns what the
/// rank was told; `None` for the rank at fault where it is not there to be told anything.
///
/// `falls` is called by the rank at fault when it happens. For faults of a process it does what is
/// meant and does not return; for [`Fault::Stalls`] and [`Fault::NeverCalls`] it waits.
///
/// # Panics
/// On the rank at fault, where that is the fault.
pub fn play<C: Collective>(comm: C, case: Case, falls: &(dyn Fn() + Sync)) -> Option<Told> {
    let (me, mut comm) = (comm.rank(), comm);
    let culprit = me == CULPRIT;
    if culprit && case.fault == Fault::NeverCalls {
        falls();
    }
    let made = make(&mut comm, case.sets);
    let (parts, copy) = match made {
        Ok(Some((parts, copy))) => (Some(parts), Some(copy)),
        Ok(None) => (None, None),
        Err(error) => return Some(told(&mut comm, 0, &error)),
    };
    let mut ends = Ends { sets: case.sets, world: comm, parts, step: 0 };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = copy.map(|copy| {
            let over = &over;
            scope.spawn(move || work_beside(copy, culprit, over))
        });
        let _over = Over(&over);
        let outcome = ends.work(case, culprit, falls);
        let mut told = outcome.map(|error| told(&mut ends.world, ends.step, &error));
        // The rank at fault goes with all that it has; the others end what is beside later, to see
        // that it fails by itself.
        drop(ends);
        over.store(true, Ordering::Release);
        if let (Some(beside), Some(told)) = (beside, &mut told) {
            compare(told, beside.join().ok().flatten(), culprit);
        }
        told
    })
}

/// Tells the thread beside that it is over, also in a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The sets of two dimensions and a duplicate of the world; nothing for one.
fn make<C: Collective>(world: &mut C, sets: Sets) -> Result<Option<([C; 2], C)>> {
    if sets == Sets::World {
        world.barrier()?;
        return Ok(None);
    }
    let me = world.rank();
    let everyone = "invariant: every rank has a color";
    let group = world.split(Some(me / 2), me)?.expect(everyone);
    let replicas = world.split(Some(me % 2), me)?.expect(everyone);
    Ok(Some(([group, replicas], world.duplicate()?)))
}

/// Sums on a duplicate until the world has failed; on the rank at fault also until it is over.
fn work_beside<C: Collective>(mut copy: C, culprit: bool, over: &AtomicBool) -> Option<Failure> {
    // Whatever is noticed here first is of the step in which it happens.
    copy.set_step(STEP);
    for _ in 0..LAST {
        match copy.all_reduce(&mut [1.0f32; 100]) {
            Ok(()) if culprit && over.load(Ordering::Acquire) => return None,
            Ok(()) => std::thread::sleep(std::time::Duration::from_micros(200)),
            Err(Error::Failed { failure, .. }) => return Some(*failure),
            Err(_) => return None,
        }
    }
    None
}

/// What happened on the duplicate is what happened here.
fn compare(told: &mut Told, beside: Option<Failure>, culprit: bool) {
    let same = |failure: &Failure| failure.kind() == told.kind && failure.ranks() == told.ranks;
    let problem = match beside {
        Some(failure) if !same(&failure) => format!("the duplicate says otherwise: {failure}"),
        None if !culprit => "the duplicate did not fail".to_owned(),
        _ => return,
    };
    told.add(problem);
}

/// A rank got an error: the time, and what a later call says.
fn told<C: Collective>(world: &mut C, step: u64, error: &Error) -> Told {
    let (me, at) = (world.rank(), now());
    let Err(later) = world.barrier() else {
        let problem = "a later call does not fail".to_owned();
        return Told::without_failure(me, at, step, problem, error.to_string());
    };
    let mut told = Told::new(me, at, step, error, &later);
    let differs = match (error, &later) {
        (Error::Failed { rank, .. }, _) if *rank != me => "it names this rank wrong",
        (Error::Failed { step: own, .. }, _) if *own != step => "it names this rank's step wrong",
        (Error::Failed { failure: a, .. }, Error::Failed { failure: b, .. }) if a != b => {
            "a later call fails otherwise"
        }
        _ => return told,
    };
    told.add(format!("{differs}: {later}"));
    told
}

impl<C: Collective> Ends<C> {
    /// Works until an error; `None` where the rank goes without one.
    fn work(&mut self, case: Case, culprit: bool, falls: &dyn Fn()) -> Option<Error> {
        loop {
            self.world.set_step(self.step);
            let outcome = match self.step {
                STEP if culprit => match self.fall(case.fault, falls) {
                    Fell::Gone => return None,
                    Fell::Called(outcome) => outcome,
                },
                STEP => self.as_planned(case.fault),
                LAST => return None,
                _ => Ok(()),
            };
            if let Err(error) = outcome.and_then(|()| self.ordinary()) {
                return Some(error);
            }
            self.step += 1;
        }
    }

    /// What every step does: ids and rows within groups, sums over replicas, a barrier of all.
    fn ordinary(&mut self) -> Result<()> {
        let (group, replicas) = match &mut self.parts {
            Some([group, replicas]) => (group, Some(replicas)),
            None => (&mut self.world, None),
        };
        let world = group.world();
        group.exchange_counts(&vec![2; world], &mut vec![0; world])?;
        let (sent, counts) = (vec![1u64; 2 * world], vec![2; world]);
        group.all_to_all_v(&sent, &counts, &mut vec![0; 2 * world], &counts)?;
        replicas.unwrap_or(group).all_reduce(&mut [1.0f32; 50])?;
        self.world.barrier()
    }

    /// The set in which it happens.
    fn near(&mut self) -> &mut C {
        match (&mut self.parts, self.sets) {
            (Some([group, _]), Sets::Group) => group,
            (Some([_, replicas]), Sets::Replicas) => replicas,
            _ => &mut self.world,
        }
    }

    /// What all but the rank at fault call.
    fn as_planned(&mut self, fault: Fault) -> Result<()> {
        let set = self.near();
        let world = set.world();
        match fault {
            Fault::ExpectsLess | Fault::SendsMore => {
                let (sent, counts) = (vec![1u64; 2 * world], vec![2; world]);
                set.all_to_all_v(&sent, &counts, &mut vec![0; 2 * world], &counts)
            }
            Fault::OtherOrder => {
                set.all_reduce(&mut [1.0f32; 8])?;
                set.barrier()
            }
            Fault::OtherSetFirst => {
                set.barrier()?;
                self.world.barrier()
            }
            Fault::OtherRoot => set.broadcast(&mut [1u32; 3], 0),
            Fault::OtherLists => set.subgroup(&[0, 1]).map(drop),
            Fault::OtherDivision => set.split(Some(0), 0).map(drop),
            Fault::WrongArguments => set.all_gather_v(&[1u8], &mut vec![0; world], &vec![1; world]),
            _ => set.all_reduce(&mut [1.0f32; 8]),
        }
    }

    /// What the rank at fault does instead.
    fn fall(&mut self, fault: Fault, falls: &dyn Fn()) -> Fell {
        falls();
        match fault {
            Fault::Leaves => return Fell::Gone,
            Fault::Panics => panic!("a planned panic"),
            Fault::OtherStep => {
                self.step += 1;
                self.world.set_step(self.step);
            }
            _ => {}
        }
        let set = self.near();
        let world = set.world();
        Fell::Called(match fault {
            Fault::OtherOperation => set.broadcast(&mut [1.0f32; 8], 0),
            Fault::OtherType => set.all_reduce(&mut [1.0f64; 8]),
            Fault::OtherLength => set.all_reduce(&mut [1.0f32; 9]),
            Fault::ExpectsLess => {
                let (mut expected, sent) = (vec![2; world], vec![1u64; 2 * world]);
                expected[0] -= 1;
                let mut received = vec![0; 2 * world - 1];
                set.all_to_all_v(&sent, &vec![2; world], &mut received, &expected)
            }
            Fault::SendsMore => {
                let (mut counts, sent) = (vec![2; world], vec![1u64; 2 * world + 1]);
                counts[0] += 1;
                set.all_to_all_v(&sent, &counts, &mut vec![0; 2 * world], &vec![2; world])
            }
            Fault::OtherOrder => {
                set.barrier().and_then(|()| self.near().all_reduce(&mut [1.0f32; 8]))
            }
            Fault::OtherSetFirst => self.world.barrier().and_then(|()| self.near().barrier()),
            Fault::OtherRoot => set.broadcast(&mut [1u32; 3], 1),
            Fault::OtherLists => set.subgroup(&[1, 0]).map(drop),
            Fault::OtherDivision => set.subgroup(&[0, 1]).map(drop),
            Fault::WrongArguments => {
                set.all_gather_v(&[1u8], &mut vec![0; world], &vec![1; world - 1])
            }
            Fault::GivesUp => {
                set.abort("the loss is not a number");
                set.abort("again, which changes nothing");
                set.all_reduce(&mut [1.0f32; 8])
            }
            _ => set.all_reduce(&mut [1.0f32; 8]),
        })
    }
}

/// What became of the rank at fault.
enum Fell {
    /// It goes without a word.
    Gone,
    Called(Result<()>),
}
