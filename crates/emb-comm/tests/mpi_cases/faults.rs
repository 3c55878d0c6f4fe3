//! How runs over MPI fail: by name, in bounded time, on every rank that is left.

use super::{Case, each_says, options, start};
use emb_comm::{Check, Collective, Error, Mpi, MpiOptions};
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// For ranks that are told.
const LONG: Duration = Duration::from_mins(1);
/// For ranks that find out by waiting.
const SHORT: Duration = Duration::from_secs(1);
/// What a job may take that fails at once or after a second: launcher, start, grace, and slack for a
/// machine that is busy.
const SOON: Duration = Duration::from_secs(15);

pub(super) fn cases() -> Vec<Case> {
    let case = |name, rank, says| Case {
        name,
        worlds: &[4],
        rank,
        succeeds: false,
        within: SOON,
        code: None,
        says,
    };
    let exit_code = |code, case| Case { code: Some(code), ..case };
    vec![
        exit_code(
            101,
            case("u28_a_panic_is_told_to_all", panics, |_, text| {
                each_says(&[0, 1, 3], text, &["all_reduce", "rank 2 panicked in step 5"])
            }),
        ),
        case("u28_a_rank_that_gives_up_is_told_to_all", gives_up, |_, text| {
            each_says(&[0, 1, 3], text, &["rank 2 gave up in step 5: the disk is full"])
        }),
        case("u28_a_rank_that_ended_well_before_waits_for_the_others", ends_in_time, |_, text| {
            each_says(&[0, 1, 3], text, &["rank 3 gave up in step 5: too late"])
        }),
        case("u28_a_rank_that_ends_early_is_named", ends_early, |_, text| {
            let said = ["rank 2 ended in step 5, without taking part in all_reduce of step 5"];
            each_says(&[0, 1, 3], text, &said)
        }),
        exit_code(
            3,
            case("u28_a_rank_that_exits_is_named", exits, |_, text| {
                let said = ["rank 2 ended in step 5, without taking part in all_reduce of step 5"];
                each_says(&[0, 1, 3], text, &said)
            }),
        ),
        case("u28_a_rank_that_stalls_is_named", stalls, |_, text| {
            let said = "rank 2 did not arrive at all_reduce in step 5 within 1s, ranks 0, 1 and 3 \
                        did: rank 2 does not answer";
            each_says(&[0, 1, 3], text, &[said])
        }),
        case("u28_a_rank_that_stalls_elsewhere_is_named", stalls_elsewhere, |_, text| {
            each_says(&[0, 1, 2], text, &["ranks [3]", "rank 3 does not answer"])
        }),
        case("u28_a_killed_rank_is_named_by_the_launcher", killed, |_, text| {
            let named = text.contains("process rank 2") && text.contains("signal 9");
            (!named).then(|| "the launcher does not name rank 2".to_owned())
        }),
        case("u28_sets_and_duplicates_fail_together", fail_together, |_, text| {
            let said = ["rank 2 gave up in step 5: not here"];
            each_says(&[0, 1, 3], text, &said)
        }),
        exit_code(
            1,
            case("u28_a_failure_amid_large_transfers_ends_them", amid, |_, text| {
                each_says(&[0, 1, 2, 3], text, &["rank 2 gave up in step 0: enough"])
            }),
        ),
        case("a_rank_that_never_starts_is_missed", never_starts, |_, text| {
            let missed = text.contains("within 1s") && text.contains("says: ");
            (!missed).then(|| "nobody misses it".to_owned())
        }),
        case("ranks_with_other_options_do_not_join", other_options, |_, text| {
            let said = ["ranks differ: ranks 0, 1 and 3: ", "rank 2: emb-comm", "timeout 2s"];
            each_says(&[0, 1, 2, 3], text, &said)
        }),
        case("calls_that_were_not_compared_end_in_an_error", unchecked, |_, text| {
            each_says(
                &[0, 1, 2, 3],
                text,
                &["all_to_all_v", "rank 1 failed in step 5: MPI_", "truncate"],
            )
        }),
        case("a_rank_that_is_stopped_in_a_transfer_ends_the_job", stopped, |_, text| {
            let said = text.contains("did not finish") || text.contains("did not arrive");
            (!said).then(|| "nobody says that a transfer has not ended".to_owned())
        }),
    ]
}

fn sum(rank: &mut Mpi) -> Result<(), Error> {
    rank.all_reduce(&mut vec![1.0f32; 1000])
}

/// Prints a line in one piece: several processes write to the same place.
fn print(rank: impl Display, text: &impl Display) {
    let line = format!("rank {rank} says: {text}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("it can be written");
}

/// Says how it ended, as a program does, after everything is dropped.
fn said(rank: usize, outcome: Result<(), Error>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let ranks = match &error {
                Error::Failed { failure, .. } => failure.ranks().to_vec(),
                _ => Vec::new(),
            };
            print(rank, &format!("{error} (ranks {ranks:?})"));
            ExitCode::FAILURE
        }
    }
}

/// Takes a sum in step 4 and one in step 5, before which rank 2 does something else.
fn otherwise(timeout: Duration, rank_2: impl FnOnce(&mut Mpi) -> Option<ExitCode>) -> ExitCode {
    let mut rank = start(&options(timeout));
    let me = rank.rank();
    let run = || {
        rank.set_step(4);
        sum(&mut rank)?;
        rank.set_step(5);
        if me == 2
            && let Some(code) = rank_2(&mut rank)
        {
            return Ok(code);
        }
        sum(&mut rank)?;
        Ok(ExitCode::SUCCESS)
    };
    let outcome = run();
    drop(rank);
    outcome.unwrap_or_else(|error| said(me, Err(error)))
}

fn panics() -> ExitCode {
    otherwise(LONG, |_| panic!("planned"))
}

fn gives_up() -> ExitCode {
    otherwise(LONG, |rank| {
        rank.abort("the disk is full");
        Some(ExitCode::FAILURE)
    })
}

fn ends_early() -> ExitCode {
    otherwise(LONG, |_| Some(ExitCode::SUCCESS))
}

/// Rank 2 takes its part in all there is and ends; the others fail, one by one, long after.
fn ends_in_time() -> ExitCode {
    let mut rank = start(&options(LONG));
    let me = rank.rank();
    let mut run = || {
        let rest = rank.subgroup(&[0, 1, 3])?;
        rank.set_step(5);
        rank.barrier()?;
        let Some(mut rest) = rest else { return Ok(()) };
        std::thread::sleep(Duration::from_secs(2));
        if me == 3 {
            rest.abort("too late");
        }
        let outcome = sum(&mut rest);
        std::thread::sleep(Duration::from_millis(300 * me as u64));
        outcome
    };
    let outcome = run();
    drop(rank);
    said(me, outcome)
}

fn exits() -> ExitCode {
    otherwise(LONG, |_| std::process::exit(3))
}

fn stalls() -> ExitCode {
    otherwise(SHORT, |_| {
        std::thread::sleep(LONG);
        None
    })
}

/// Rank 3 stalls; rank 2 waits for it in one set, rank 1 for rank 2 in another, rank 0 for all.
fn stalls_elsewhere() -> ExitCode {
    let mut rank = start(&options(SHORT));
    let me = rank.rank();
    let mut run = || {
        let last = rank.subgroup(&[2, 3])?;
        let middle = rank.subgroup(&[1, 2])?;
        if me == 3 {
            std::thread::sleep(LONG);
        }
        if me > 1 {
            last.expect("a member").barrier()?;
        }
        if me > 0 {
            middle.expect("a member").barrier()?;
        }
        rank.barrier()
    };
    let outcome = run();
    drop(rank);
    said(me, outcome)
}

fn killed() -> ExitCode {
    otherwise(LONG, |_| {
        let me = std::process::id().to_string();
        let kill = std::process::Command::new("kill").args(["-9", &me]).status();
        panic!("still here: {kill:?}")
    })
}

fn fail_together() -> ExitCode {
    let mut rank = start(&options(LONG));
    let me = rank.rank();
    let mut run = || {
        rank.set_step(5);
        let mut copy = rank.duplicate()?;
        let mut odd = rank.split(Some(me % 2), 0)?.expect("every rank has a color");
        if me == 2 {
            std::thread::sleep(Duration::from_millis(100));
            copy.abort("not here");
            return Ok(());
        }
        let began = Instant::now();
        let beside = std::thread::scope(|scope| {
            let beside = scope.spawn(|| copy.barrier());
            // Of the odd ranks, both are here; of the even ones, rank 2 is not.
            while odd.barrier().is_ok() {}
            beside.join().expect("no panic")
        });
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert!(odd.failure().is_some() && copy.failure() == odd.failure());
        beside
    };
    let outcome = run();
    drop(rank);
    said(me, outcome)
}

/// A thread of rank 2 gives up while all ranks exchange megabytes.
fn amid() -> ExitCode {
    let mut rank = start(&options(LONG));
    let me = rank.rank();
    let mut run = || {
        let copy = rank.duplicate()?;
        let mut values = vec![1.0f32; 1 << 20];
        rank.barrier()?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                if me == 2 {
                    copy.abort("enough");
                }
            });
            loop {
                rank.all_reduce(&mut values)?;
            }
        })
    };
    let outcome = run();
    drop(rank);
    said(me, outcome)
}

fn never_starts() -> ExitCode {
    let me = std::env::var("OMPI_COMM_WORLD_RANK").unwrap_or_default();
    if me == "2" {
        std::thread::sleep(Duration::from_secs(3));
        return ExitCode::FAILURE;
    }
    match Mpi::start(&MpiOptions::default().with_meeting(SHORT)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error @ Error::Absent { .. }) => {
            print(&me, &error);
            ExitCode::FAILURE
        }
        Err(error) => panic!("that others did not come, not {error}"),
    }
}

fn other_options() -> ExitCode {
    let me = std::env::var("OMPI_COMM_WORLD_RANK").unwrap_or_default();
    let timeout = if me == "2" { SHORT * 2 } else { SHORT };
    match Mpi::start(&options(timeout)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            print(&me, &error);
            ExitCode::FAILURE
        }
    }
}

/// Rank 1 expects an element less from each than they send.
fn unchecked() -> ExitCode {
    let mut rank = start(&options(LONG).with_check(Check::Nothing));
    rank.set_step(5);
    let me = rank.rank();
    let expects = if me == 1 { [3, 4, 3, 3] } else { [4; 4] };
    let (send, mut recv) = ([1u32; 16], vec![0u32; expects.iter().sum()]);
    let done = rank.all_to_all_v(&send, &[4; 4], &mut recv, &expects);
    // Whoever was done before learns of it in the next call.
    let outcome = done.and_then(|()| rank.all_to_all_v(&send, &[4; 4], &mut [0; 16], &[4; 4]));
    drop(rank);
    said(me, outcome)
}

/// Rank 2 stops itself while the others exchange with it; a thread of it does so at some moment of
/// a transfer.
fn stopped() -> ExitCode {
    let mut rank = start(&options(SHORT));
    let me = rank.rank();
    let mut run = || {
        let mut values = vec![1.0f32; 1 << 24];
        rank.all_reduce(&mut values)?;
        if me == 2 {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                let me = std::process::id().to_string();
                let _ = std::process::Command::new("kill").args(["-STOP", &me]).status();
            });
        }
        for _ in 0..1000 {
            rank.all_reduce(&mut values)?;
        }
        Ok(())
    };
    let outcome = run();
    drop(rank);
    said(me, outcome)
}
