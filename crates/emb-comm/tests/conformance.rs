//! The public suite, over the transports of this crate.
#![cfg(not(loom))]

use emb_comm::conformance::Placed;
use emb_comm::{
    Collective, Error, Host, Lane, Local, Options, Solo, Span, Trace, Traced, conformance, run,
};
use std::time::Duration;

fn options() -> Options {
    Options::default().with_timeout(Duration::from_secs(30))
}

#[test]
fn local_conforms_in_worlds_of_1_to_8() {
    for world in 1..=8 {
        let done = run(world, &options(), |rank| {
            for check in conformance::checks::<Local>() {
                check.run(rank).map_err(|error| format!("{}: {error}", check.name()))?;
            }
            Ok::<_, String>(())
        });
        done.unwrap_or_else(|failure| panic!("world of {world}: {failure}"));
    }
}

#[test]
fn local_refuses_in_worlds_of_2_to_8() {
    for world in 2..=8 {
        for check in conformance::refusals::<Local>() {
            let mut ranks = Local::world(world, &options());
            std::thread::scope(|scope| {
                for rank in &mut ranks {
                    let check = &check;
                    scope.spawn(move || {
                        let outcome = check.run(rank);
                        outcome.unwrap_or_else(|error| panic!("{}: {error}", check.name()));
                    });
                }
            });
        }
    }
}

#[test]
fn solo_conforms() {
    for check in conformance::checks::<Solo>() {
        let outcome: Result<(), Error> = check.run(&mut Solo);
        outcome.unwrap_or_else(|error| panic!("{}: {error}", check.name()));
    }
}

#[test]
fn local_conforms_on_views_amid_buffers() {
    for world in [1, 3] {
        let done = run(world, &options(), |rank| {
            let all = rank.split(Some(0), rank.rank()).map_err(|error| error.to_string())?;
            let mut placed = Placed::new(Host, all.ok_or("every rank has a color")?);
            for check in conformance::checks::<Placed<Host, Local>>() {
                check.run(&mut placed).map_err(|error| format!("{}: {error}", check.name()))?;
            }
            Ok::<_, String>(())
        });
        done.unwrap_or_else(|failure| panic!("world of {world}: {failure}"));
    }
}

#[test]
fn a_traced_local_conforms_and_records() {
    let begin = std::time::Instant::now();
    let spans = run(3, &options(), |rank| {
        let trace = Trace::from(begin);
        let own = rank.split(Some(0), rank.rank()).map_err(|error| error.to_string())?;
        let mut traced = Traced::new(own.ok_or("every rank has a color")?, trace.clone());
        for check in conformance::checks::<Traced<Local>>() {
            check.run(&mut traced).map_err(|error| format!("{}: {error}", check.name()))?;
        }
        Ok::<_, String>(trace.take())
    });
    for (rank, spans) in spans.expect("all checks pass").into_iter().enumerate() {
        for name in ["all_to_all_v", "exchange_counts", "all_gather_v", "broadcast", "barrier"] {
            assert!(spans.iter().any(|span| span.name == name), "rank {rank}: no {name}");
        }
        let moved = |span: &&Span| span.name == "all_gather_v" && span.lane == Lane::Collectives;
        assert!(spans.iter().filter(moved).any(|span| span.bytes > 0), "rank {rank}");
        let beside = spans.iter().filter(|span| matches!(span.lane, Lane::Beside(_)));
        assert!(beside.clone().count() >= 50, "rank {rank}: {}", beside.count());
        assert!(spans.iter().all(|span| span.start >= 0.0 && span.duration >= 0.0));
        let steps =
            spans.iter().filter(|span| matches!(span.lane, Lane::Beside(_))).map(|span| span.step);
        assert!(steps.max() < Some(1000), "a copy labels its own steps");
    }
}

#[test]
fn a_set_and_its_duplicate_fail_together() {
    for fails_in_copy in [false, true] {
        let failure = run(3, &options(), |rank| {
            let mut copy = rank.duplicate()?;
            if rank.rank() == 1 {
                if fails_in_copy {
                    copy.abort("no more");
                } else {
                    rank.abort("no more");
                }
                return Ok(());
            }
            let beside = std::thread::scope(|scope| {
                let beside = scope.spawn(|| copy.barrier());
                let own = rank.barrier().expect_err("rank 1 gave up");
                assert!(own.to_string().contains("no more"), "{own}");
                beside.join().expect("no panic")
            });
            let beside = beside.expect_err("rank 1 gave up");
            assert!(beside.to_string().contains("no more"), "{beside}");
            Ok::<_, Error>(())
        });
        let failure = failure.expect_err("rank 1 gave up");
        assert!(failure.to_string().starts_with("rank 1 gave up"), "{failure}");
    }
}
