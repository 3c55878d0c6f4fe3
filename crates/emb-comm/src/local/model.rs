//! Scenarios of the rendezvous for a model checker, which runs them in every order of steps.
//!
//! The memory that a rank offers is a cell: 1 while it is borrowed, 0 before and after. A reader
//! that finds 0 has read memory that was not offered yet or had been freed.

use super::board::{Board, Offer, Stage, Stop};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::{Element, Reduction, Result, Space, Sum};
use loom::sync::Arc;
use loom::thread;

/// Rounds of an exchange in which every rank arrives.
pub fn all_arrive(ranks: usize, rounds: u64) {
    scenario(ranks, rounds, None);
}

/// The same, but rank 0 gives up as soon as it would have to wait; peers that notice follow.
pub fn rank_0_gives_up(ranks: usize, rounds: u64) {
    scenario(ranks, rounds, Some(0));
}

/// A barrier: rounds without offers, in which no rank waits for the end.
pub fn barriers(ranks: usize, rounds: u64) {
    run(ranks, None, move |world, me| {
        for round in 1..=rounds {
            world.board.announce(me, round, [round; 4]);
            world.board.wait::<()>(round, Stage::Published, |_| None).expect("all arrive");
            for peer in 0..ranks {
                assert_eq!(world.board.call(peer, round), [round; 4]);
            }
        }
    });
}

/// A rank that ends: its peer finds it gone, but not before its last round.
pub fn rank_1_ends() {
    run(2, None, |world, me| {
        world.board.announce(me, 1, [1; 4]);
        if me == 1 {
            world.board.leave(me);
            return;
        }
        world.board.wait::<()>(1, Stage::Published, |_| None).expect("it arrived before it ended");
        world.board.announce(me, 2, [2; 4]);
        let stopped = world.board.wait::<()>(2, Stage::Published, |_| None);
        assert_eq!(stopped, Err(Stop::Gone(1)));
    });
}

struct World {
    board: Board<Probe>,
    failed: AtomicBool,
    gives_up: Option<usize>,
}

fn scenario(ranks: usize, rounds: u64, gives_up: Option<usize>) {
    run(ranks, gives_up, move |world, me| {
        let cell = AtomicU64::new(0);
        for round in 1..=rounds {
            cell.store(1, Ordering::Relaxed);
            let ended = world.exchange(me, ranks, round, &cell);
            // From here on, the memory is no longer borrowed.
            cell.store(0, Ordering::Relaxed);
            if ended.is_none() {
                assert!(gives_up.is_some(), "nobody gave up");
                return;
            }
        }
    });
}

/// Runs `rank` on a thread for each of `ranks`.
fn run(
    ranks: usize,
    gives_up: Option<usize>,
    rank: impl Fn(&World, usize) + Copy + Send + 'static,
) {
    let world = World { board: Board::new(ranks), failed: AtomicBool::new(false), gives_up };
    let world = Arc::new(world);
    let threads: Vec<_> = (1..ranks)
        .map(|me| {
            let world = Arc::clone(&world);
            thread::spawn(move || rank(&world, me))
        })
        .collect();
    rank(&world, 0);
    for thread in threads {
        thread.join().expect("no panic");
    }
}

impl World {
    /// One round: `None` if this rank gave up.
    fn exchange(&self, me: usize, ranks: usize, round: u64, cell: &AtomicU64) -> Option<()> {
        let offer = Offer::<Probe, u64> { parts: [Some(cell), None], counts: &[] };
        let publication = self.board.publish(me, round, [round; 4], &offer);
        self.wait(me, round, Stage::Published)?;
        let pins = self.board.pin(me, round)?;
        for peer in 0..ranks {
            assert_eq!(self.board.call(peer, round), [round; 4]);
            let view = pins.offer::<u64>(peer).parts[0].expect("offered");
            assert_eq!(view.load(Ordering::Relaxed), 1, "read memory that is not offered");
        }
        drop(pins);
        self.board.done(me, round);
        self.wait(me, round, Stage::Done)?;
        publication.end(round);
        Some(())
    }

    fn wait(&self, me: usize, round: u64, stage: Stage) -> Option<()> {
        let give_up = |_| {
            if self.gives_up == Some(me) {
                self.failed.store(true, Ordering::Release);
            }
            self.failed.load(Ordering::Acquire).then_some(())
        };
        self.board.wait(round, stage, give_up).ok()
    }
}

/// A space whose views are cells that the model checker watches.
struct Probe;

impl Space for Probe {
    type Ref<'a, T: Element> = &'a AtomicU64;
    type Mut<'a, T: Element> = ();

    fn len<T: Element>(_view: &AtomicU64) -> usize {
        1
    }

    fn len_mut<T: Element>((): &()) -> usize {
        1
    }

    fn shorten<'short, 'long: 'short, T: Element>(view: &'long AtomicU64) -> &'short AtomicU64 {
        view
    }

    fn slice<T: Element>(view: Self::Ref<'_, T>, _start: usize, _len: usize) -> Self::Ref<'_, T> {
        view
    }

    fn split<T: Element>(
        _view: Self::Mut<'_, T>,
        _at: usize,
    ) -> (Self::Mut<'_, T>, Self::Mut<'_, T>) {
        ((), ())
    }

    fn reborrow<'a, T: Element>((): &'a mut ()) -> Self::Mut<'a, T> {}

    fn freeze<'a, T: Element>((): &'a ()) -> Self::Ref<'a, T> {
        unreachable!("nothing in these scenarios is frozen")
    }

    fn copy<T: Element>(&self, (): (), _from: &AtomicU64) -> Result<()> {
        Ok(())
    }

    fn reduce<'a, T: Sum>(
        &self,
        _how: Reduction,
        (): (),
        _ranks: usize,
        _source: impl Fn(usize) -> Option<&'a AtomicU64>,
    ) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }
}
