//! Ranks as threads: failures of each kind, groups, meters.
#![cfg(not(loom))]

use emb_comm::{
    Collective, Error, Failure, FailureKind, Local, Meter, Operation, Options, Result, run,
};
use std::time::{Duration, Instant};

fn options() -> Options {
    Options::default().with_timeout(Duration::from_secs(20))
}

/// Two ranks, to be driven by hand.
fn pair(options: &Options) -> (Local, Local) {
    let mut ranks = Local::world(2, options).into_iter();
    (ranks.next().expect("rank 0"), ranks.next().expect("rank 1"))
}

#[test]
fn u28_a_rank_that_panics_unblocks_the_rest() {
    let began = Instant::now();
    let failure = run(4, &options(), |comm| {
        for step in 0..10 {
            comm.set_step(step);
            assert!(comm.rank() != 2 || step != 5, "out of cheese");
            comm.all_reduce(&mut [1.0f32; 100])?;
        }
        Ok::<_, Error>(())
    });
    let failure = failure.expect_err("rank 2 panics");
    assert_eq!(failure.to_string(), "rank 2 panicked in step 5: out of cheese");
    assert_eq!((failure.kind(), failure.ranks()), (FailureKind::Panic, &[2][..]));
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// What is said where rank 2 of four sleeps past a timeout, outside of any collective.
fn sleeps(timeout: Duration) -> Failure {
    let options = Options::default().with_timeout(timeout);
    let failure = run(4, &options, |comm| {
        comm.set_step(5);
        let all = comm.split(Some(usize::from(comm.rank() == 3)), 0)?;
        if comm.rank() == 2 {
            // Asleep until the others have given up.
            while comm.failure().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // Rank 3 is alone in its group and comes to the barrier of the world.
        let mut group = all.ok_or(Error::Space("every rank has a color".to_owned()))?;
        if comm.rank() == 3 { comm.barrier() } else { group.barrier() }
    });
    failure.expect_err("rank 2 sleeps")
}

#[test]
fn u28_missing_ranks_are_listed_with_where_they_are() {
    let late = "rank 2 is outside any collective in step 5";
    // Where processors are so busy that another rank is late, it is missed first.
    let timeouts = [150, 2000, 10_000].map(Duration::from_millis).into_iter();
    let mut failures = timeouts.map(|timeout| (timeout, sleeps(timeout)));
    let found = failures.find(|(_, failure)| failure.to_string().contains(late));
    let (timeout, failure) = found.expect("one of the timeouts is long enough");
    assert_eq!(failure.kind(), FailureKind::Missing);
    assert!(failure.ranks().contains(&2), "{failure}");
    let text = failure.to_string();
    assert!(text.contains("did not arrive at barrier of group"), "{text}");
    assert!(text.contains(&format!("in step 5 within {timeout:?}")), "{text}");
}

#[test]
fn u26_a_rank_that_ends_early_is_named() {
    let failure = run(3, &options(), |comm| {
        for step in 0..if comm.rank() == 1 { 4 } else { 5 } {
            comm.set_step(step);
            comm.barrier()?;
        }
        Ok::<_, Error>(())
    });
    let failure = failure.expect_err("rank 1 has a step less");
    let text = "rank 1 ended in step 3, without taking part in barrier of step 4";
    assert_eq!((failure.kind(), failure.to_string().as_str()), (FailureKind::Left, text));
}

#[test]
fn ranks_may_end_at_different_times_if_nobody_needs_them() {
    let done = run(4, &options(), |comm| {
        let mut half = comm.split(Some(comm.rank() / 2), 0)?;
        for _ in 0..comm.rank() / 2 * 200 {
            half.as_mut().map_or(Ok(()), Collective::barrier)?;
        }
        Ok::<_, Error>(comm.rank())
    });
    assert_eq!(done.expect("nothing fails"), [0, 1, 2, 3]);
}

#[test]
fn u28_dropping_after_abort_is_silent_and_twice_is_once() {
    let (mut first, second) = pair(&options());
    second.abort("enough");
    second.abort("more than enough");
    drop(second);
    let error = first.barrier().expect_err("the world has failed");
    assert_eq!(error.to_string(), "barrier on rank 0 in step 0: rank 1 gave up in step 0: enough");
    assert_eq!(
        first.all_reduce(&mut [1.0f64]).err().map(|error| error.to_string()),
        Some("all_reduce on rank 0 in step 0: rank 1 gave up in step 0: enough".to_owned())
    );
    let failure = first.failure();
    drop(first);
    assert_eq!(failure.map(|failure| failure.kind()), Some(FailureKind::Aborted));
}

#[test]
fn a_guard_that_is_done_does_nothing_and_one_that_is_not_fails_the_world() {
    let (mut first, mut second) = pair(&options());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = first.guard();
            first.barrier().expect("both come");
            guard.done();
        });
        let guard = second.guard();
        second.barrier().expect("both come");
        assert_eq!(second.failure(), None);
        drop(guard);
    });
    let failure = first.failure().expect("rank 1 did not say that it was done");
    assert_eq!(failure.to_string(), "rank 1 failed in step 0");
}

#[test]
fn a_rank_in_two_collectives_at_once_is_refused() {
    let mut pairs = run(2, &options(), |comm| comm.split(Some(0), 0)).expect("both come");
    // `run` has dropped the world's communicators, the set of both remains.
    let mut ranks = pairs.drain(..).flatten();
    let (mut first, mut second) = (ranks.next().expect("rank 0"), ranks.next().expect("rank 1"));
    let (mut other, mut more) = std::thread::scope(|scope| {
        let one = scope.spawn(|| first.split(Some(0), 0).ok().flatten());
        let two = second.split(Some(0), 0).ok().flatten();
        (one.join().expect("no panic").expect("in the set"), two.expect("in the set"))
    });
    // Rank 0 calls on two threads, and nobody answers either: whichever comes second is refused,
    // and that ends the wait of the first.
    let errors = std::thread::scope(|scope| {
        let calls = [scope.spawn(|| first.barrier()), scope.spawn(|| other.barrier())];
        calls.map(|call| call.join().expect("no panic").expect_err("nobody answers"))
    });
    let refused = Error::Busy { operation: "barrier", rank: 0 };
    assert_eq!(errors.iter().filter(|error| **error == refused).count(), 1, "{errors:?}");
    let failed =
        |error: &&Error| matches!(error, Error::Failed { operation: Operation::Barrier, .. });
    assert_eq!(errors.iter().filter(failed).count(), 1, "{errors:?}");
    assert!(more.barrier().is_err());
}

#[test]
fn u29_members_and_roots_are_translated_between_set_and_world() {
    let sums = run(4, &options(), |comm| {
        let me = comm.rank();
        let pair = comm.subgroups(&[&[3, 1], &[0, 2]])?;
        let mut pair = pair.ok_or(Error::Space("every rank is listed".to_owned()))?;
        let members: &[usize] = if me % 2 == 1 { &[3, 1] } else { &[0, 2] };
        assert_eq!(pair.members(), members);
        assert_eq!(pair.rank_of(me), Some(pair.rank()));
        assert_eq!(pair.rank_of(4), None);
        let mut value = [me as f32];
        let root = pair.rank_of(if me % 2 == 1 { 3 } else { 2 });
        pair.broadcast(&mut value, root.expect("a member"))?;
        Ok::<_, Error>(value[0])
    });
    assert_eq!(sums.expect("nothing fails"), [2.0, 3.0, 2.0, 3.0]);
}

#[test]
fn failures_in_a_set_name_ranks_of_the_world() {
    let failure = run(4, &options(), |comm| {
        let mut pair = comm.subgroups(&[&[3, 1], &[0, 2]])?;
        if comm.rank() == 3 {
            return Err(Error::Space("the disk is full".to_owned()));
        }
        let error = pair.as_mut().map(|pair| pair.barrier().map_err(|error| error.to_string()));
        if comm.rank() == 1 {
            assert!(matches!(&error, Some(Err(text)) if text.starts_with("barrier on rank 1")));
        }
        Ok(())
    });
    let text = failure.expect_err("rank 3 fails").to_string();
    assert_eq!(text, "rank 3 failed in step 0: the disk is full");
}

#[test]
fn u43_meters_count_calls_and_bytes_inside_and_between_nodes() -> Result<(), emb_comm::Failure> {
    let options = options().with_ranks_per_node(2);
    let meters = run(4, &options, |comm| {
        for _ in 0..3 {
            // Rank r sends r + 1 elements of 4 bytes to everyone.
            let counts: Vec<usize> = (1..=4).collect();
            let me = comm.rank();
            let send = vec![1.0f32; 4 * (me + 1)];
            comm.all_to_all_v(&send, &[me + 1; 4], &mut [0.0; 10], &counts)?;
            comm.barrier()?;
        }
        comm.all_reduce(&mut [1u64; 8])?;
        let meters = comm.meters();
        comm.reset_meters();
        assert_eq!(comm.meters().total(), Meter::default());
        Ok::<_, Error>(meters)
    })?;
    let of = |rank: usize, operation| {
        let meter: Meter = meters[rank][operation];
        (meter.calls, meter.intra_node_bytes, meter.inter_node_bytes)
    };
    assert_eq!(of(0, Operation::AllToAllV), (3, 3 * 4 * 2, 3 * 4 * (3 + 4)));
    assert_eq!(of(3, Operation::AllToAllV), (3, 3 * 4 * 3, 3 * 4 * (1 + 2)));
    assert_eq!(of(2, Operation::Barrier), (3, 0, 0));
    // Two of eight elements from each peer, twice: to sum, and to gather.
    assert_eq!(of(1, Operation::AllReduce), (1, 2 * 2 * 8, 2 * 4 * 8));
    assert_eq!(of(1, Operation::Broadcast), (0, 0, 0));
    let total = meters[0].total();
    assert_eq!(total.calls, 7);
    assert!(total.wait_seconds > 0.0 && total.copy_seconds > 0.0 && total.seconds() < 20.0);
    assert_eq!(total.bytes(), meters[0].iter().map(|(_, meter)| meter.bytes()).sum());
    Ok(())
}

#[test]
fn counts_that_overflow_are_refused() {
    let (mut first, _second) = pair(&options());
    let error = first.all_to_all_v::<u8>(&[], &[usize::MAX, 2], &mut [], &[0, 0]);
    let text = error.expect_err("no buffer is that long").to_string();
    assert_eq!(text, "all_to_all_v: send_counts sum to more than 2^64 elements");
}

#[test]
fn no_ranks_do_nothing() {
    assert_eq!(run(0, &options(), |_| Ok::<_, Error>(())), Ok(vec![]));
    assert!(Local::world(0, &options()).is_empty());
}
