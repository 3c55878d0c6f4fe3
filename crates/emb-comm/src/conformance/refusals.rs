//! What must fail, on every rank, by name.

use crate::{Collective, Error, FailureKind, Operation, Result};

/// The rank that does otherwise than the rest: the last. Of two ranks, neither is more common, and
/// the last one is named too.
fn odd_one_out<C: Collective>(comm: &C) -> bool {
    comm.rank() == comm.world() - 1
}

/// Every rank's call fails because the last rank's call differs; so does every later call.
fn named<C: Collective>(comm: &mut C, result: Result<()>, operation: Operation, texts: &[&str]) {
    let (me, last) = (comm.rank(), comm.world() - 1);
    let error = result.expect_err("ranks differ");
    let Error::Failed { rank, failure, .. } = &error else {
        unreachable!("rank {me}: {error}");
    };
    assert_eq!(*rank, me);
    assert_eq!(failure.kind(), FailureKind::Mismatch, "{error}");
    assert_eq!(failure.ranks(), [last], "{error}");
    let named = format!("rank {last}: ");
    let text = error.to_string();
    let texts = texts.iter().copied().chain([operation.name(), &named, "in step 7"]);
    for wanted in texts {
        assert!(text.contains(wanted), "rank {me}: {text:?} does not say {wanted:?}");
    }
    poisoned(comm, &error);
}

/// Later calls fail at once, with the same cause.
fn poisoned<C: Collective>(comm: &mut C, first: &Error) {
    let failure = |error: &Error| match error {
        Error::Failed { failure, .. } => Some(failure.clone()),
        _ => None,
    };
    let later = comm.barrier().expect_err("the world has failed");
    assert_eq!(failure(&later), failure(first));
}

pub(super) fn another_operation<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    let mut values = [0f32; 8];
    let result = if odd_one_out(comm) {
        comm.broadcast(&mut values, 0)
    } else {
        comm.all_reduce(&mut values)
    };
    named(comm, result, Operation::AllReduce, &["broadcast of 8 f32 from root 0"]);
}

pub(super) fn another_element_type<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    let result = if odd_one_out(comm) {
        comm.all_reduce(&mut [0f64; 8])
    } else {
        comm.all_reduce(&mut [0f32; 8])
    };
    named(comm, result, Operation::AllReduce, &["of 8 f32", "of 8 f64"]);
}

pub(super) fn another_length<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    let mut values = vec![0f32; if odd_one_out(comm) { 9 } else { 8 }];
    let result = comm.all_reduce(&mut values);
    assert!(values.iter().all(|&value| value == 0.0), "nothing is written");
    named(comm, result, Operation::AllReduce, &["of 8 f32", "of 9 f32"]);
}

pub(super) fn another_root<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    let root = usize::from(odd_one_out(comm));
    let result = comm.broadcast(&mut [0u32; 3], root);
    named(comm, result, Operation::Broadcast, &["from root 0", "from root 1"]);
}

pub(super) fn another_step<C: Collective>(comm: &mut C) {
    comm.set_step(if odd_one_out(comm) { 6 } else { 7 });
    let result = comm.barrier();
    named(comm, result, Operation::Barrier, &["barrier in step 6"]);
}

pub(super) fn other_counts<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    let (me, world) = (comm.rank(), comm.world());
    // The last rank expects one element more from rank 0 than that sends.
    let mut expected = vec![2; world];
    expected[0] += usize::from(odd_one_out(comm));
    let mut recv = vec![0u64; expected.iter().sum()];
    let result = comm.all_to_all_v(&vec![1; 2 * world], &vec![2; world], &mut recv, &expected);
    let error = result.expect_err("counts differ").to_string();
    let last = world - 1;
    let text = format!("rank 0 sends 2 elements to rank {last}, which expects 3");
    assert!(error.contains(&text), "rank {me}: {error}");
    assert!(error.contains("all_to_all_v"), "rank {me}: {error}");
    let later = comm.barrier().expect_err("the world has failed").to_string();
    assert!(later.contains(&text) && later.contains("step 7"), "rank {me}: {later}");
}

pub(super) fn other_lists_of_groups<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    let ranks: &[usize] = if odd_one_out(comm) { &[0] } else { &[0, 1] };
    let result = comm.subgroup(ranks).map(|_| ());
    named(comm, result, Operation::Subgroups, &[]);
}

pub(super) fn wrong_arguments_of_one_rank<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    let last = comm.world() - 1;
    let mut recv = vec![5u8; comm.world()];
    let sent = [1u8; 1];
    let counts = vec![1; comm.world()];
    let error = if odd_one_out(comm) {
        comm.all_gather_v(&sent, &mut recv, &counts[1..])
    } else {
        comm.all_gather_v(&sent, &mut recv, &counts)
    };
    assert_eq!(recv, vec![5; comm.world()], "nothing is written");
    let error = error.expect_err("one count too few").to_string();
    let text = format!("all_gather_v: recv_counts: expected length {}, got {last}", last + 1);
    assert!(error.contains(&text), "{error}");
    let later = comm.barrier().expect_err("the world has failed").to_string();
    let text = format!("rank {last} failed in step 7: {text}");
    assert!(later.contains(&text), "{later}");
}

pub(super) fn one_rank_gives_up<C: Collective>(comm: &mut C) {
    comm.set_step(7);
    if odd_one_out(comm) {
        comm.abort("the loss is not a number");
        comm.abort("again, which changes nothing");
    }
    let error = comm.all_reduce(&mut [1.0f32]).expect_err("the world has failed");
    let last = comm.world() - 1;
    let text = format!("rank {last} gave up in step 7: the loss is not a number");
    assert!(error.to_string().contains(&text), "{error}");
    poisoned(comm, &error);
}
