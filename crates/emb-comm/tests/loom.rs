//! The rendezvous in every order of its steps: `RUSTFLAGS="--cfg loom" cargo test -p emb-comm
//! --test loom --release`.
#![cfg(loom)]

use emb_comm::model;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Explores a scenario; `preemptions` bounds how often a thread is interrupted where it need not
/// be, and `None` explores all orders.
fn explore(preemptions: Option<usize>, scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    // All of the bound takes seconds; a busy machine gets this far and no further.
    builder.max_duration = Some(Duration::from_secs(30));
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        scenario();
    });
    eprintln!("{} orders explored", runs.load(Ordering::Relaxed));
}

#[test]
fn two_ranks_exchange() {
    explore(None, || model::all_arrive(2, 1));
    explore(Some(3), || model::all_arrive(2, 3));
}

#[test]
fn three_ranks_exchange() {
    explore(Some(1), || model::all_arrive(3, 1));
}

#[test]
fn a_rank_of_two_gives_up() {
    explore(None, || model::rank_0_gives_up(2, 1));
    explore(Some(4), || model::rank_0_gives_up(2, 2));
}

#[test]
fn a_rank_of_three_gives_up() {
    explore(Some(2), || model::rank_0_gives_up(3, 1));
}

#[test]
fn barriers_use_entries_in_turn() {
    explore(Some(3), || model::barriers(2, 4));
    explore(Some(1), || model::barriers(3, 2));
}

#[test]
fn a_rank_that_ended_is_found_gone_after_its_last_round() {
    explore(None, model::rank_1_ends);
}
