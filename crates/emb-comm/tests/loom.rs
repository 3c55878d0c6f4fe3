//! The rendezvous in every order of its steps: `RUSTFLAGS="--cfg loom" cargo test -p emb-comm
//! --test loom --release`.
#![cfg(loom)]

use emb_comm::model;

/// Explores a scenario; `preemptions` bounds how often a thread is interrupted where it need not
/// be, and `None` explores all orders.
fn explore(preemptions: Option<usize>, scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    builder.check(scenario);
}

#[test]
fn two_ranks_exchange_over_two_rounds() {
    explore(Some(2), || model::all_arrive(2, 2));
}

#[test]
fn three_ranks_exchange() {
    explore(Some(1), || model::all_arrive(3, 1));
}

#[test]
fn a_rank_of_two_gives_up() {
    explore(Some(3), || model::rank_0_gives_up(2, 1));
    explore(Some(2), || model::rank_0_gives_up(2, 2));
}

#[test]
fn a_rank_of_three_gives_up() {
    explore(Some(1), || model::rank_0_gives_up(3, 1));
}

#[test]
fn barriers_use_entries_in_turn() {
    explore(Some(2), || model::barriers(2, 3));
    explore(Some(1), || model::barriers(3, 2));
}

#[test]
fn a_rank_that_ended_is_found_gone_after_its_last_round() {
    explore(None, model::rank_1_ends);
}
