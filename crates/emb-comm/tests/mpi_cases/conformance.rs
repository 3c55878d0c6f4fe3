//! The suite of the crate, on processes.

use super::{Case, options, start};
use emb_comm::{Check, Collective, Mpi, MpiOptions, Operation, conformance};
use std::process::ExitCode;
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);

pub(super) fn cases() -> Vec<Case> {
    let well = |name, worlds, rank| Case {
        name,
        worlds,
        rank,
        succeeds: true,
        within: LONG,
        code: Some(0),
        says: |_, _| None,
    };
    vec![
        well("a_process_that_nobody_launched_is_a_world", &[0], alone),
        well("conforms", &[1, 2, 3, 4, 8], conforms),
        well("conforms_without_comparing_calls", &[4], conforms_unchecked),
        well("refuses_and_starts_anew", &[2, 3, 4, 8], refuses),
        well("u29_worlds_of_ranks_are_those_of_the_launcher", &[3], members),
        well("meters_count_what_came_from_others", &[2], meters),
        well("calls_allocate_nothing_after_the_first", &[2], allocations),
    ]
}

fn run_all(options: &MpiOptions) -> ExitCode {
    let mut rank = start(options);
    for check in conformance::checks::<Mpi>() {
        check.run(&mut rank).unwrap_or_else(|error| panic!("{}: {error}", check.name()));
    }
    rank.close().unwrap_or_else(|error| panic!("{error}"));
    ExitCode::SUCCESS
}

fn conforms() -> ExitCode {
    run_all(&options(LONG))
}

fn conforms_unchecked() -> ExitCode {
    run_all(&options(LONG).with_check(Check::Nothing))
}

fn refuses() -> ExitCode {
    for check in conformance::refusals::<Mpi>() {
        let mut rank = start(&options(LONG));
        check.run(&mut rank).unwrap_or_else(|error| panic!("{}: {error}", check.name()));
        let error = rank.close().expect_err("the world has failed");
        assert!(error.to_string().contains("in step 7"), "{}: {error}", check.name());
    }
    start(&options(LONG)).close().expect("a new world is well");
    ExitCode::SUCCESS
}

fn alone() -> ExitCode {
    let rank = start(&options(LONG));
    assert_eq!((rank.rank(), rank.world(), rank.hosts().len()), (0, 1, 1));
    drop(rank);
    conforms()
}

fn allocations() -> ExitCode {
    let mut rank = start(&options(LONG));
    let mut values = vec![1.0f32; 1000];
    let mut received = vec![0.0f32; 1000];
    let mut counts = [0; 2];
    let mut step = |rank: &mut Mpi| {
        rank.exchange_counts(&[500, 500], &mut counts)?;
        rank.all_to_all_v(&values, &counts, &mut received, &counts)?;
        rank.all_gather_v(&values[..500], &mut received, &counts)?;
        rank.reduce_scatter_v(&received, &mut values[..500], &counts)?;
        rank.all_reduce(&mut values)?;
        rank.broadcast(&mut values, 1)?;
        rank.barrier()
    };
    step(&mut rank).expect("a step");
    let counted = allocation_counter::measure(|| {
        for _ in 0..10 {
            step(&mut rank).expect("a step");
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    rank.close().expect("all close");
    ExitCode::SUCCESS
}

fn members() -> ExitCode {
    let rank = start(&options(LONG));
    assert_eq!(rank.members(), [0, 1, 2]);
    assert_eq!(rank.hosts().len(), 3);
    assert_eq!(rank.ranks_per_host(), Some(3), "one host: {:?}", rank.hosts());
    assert!(Mpi::library().contains(|c: char| c.is_ascii_digit()), "{}", Mpi::library());
    ExitCode::SUCCESS
}

fn meters() -> ExitCode {
    let count = |options: &MpiOptions| {
        let mut rank = start(options);
        let send = [1.5f64; 10];
        rank.all_to_all_v(&send, &[5, 5], &mut send.clone(), &[5, 5]).expect("an exchange");
        let meter = rank.meters()[Operation::AllToAllV];
        rank.close().expect("all close");
        (meter.calls, meter.intra_node_bytes, meter.inter_node_bytes)
    };
    assert_eq!(count(&options(LONG)), (1, 40, 0), "the ranks find that they share a host");
    assert_eq!(count(&options(LONG).with_ranks_per_node(1)), (1, 0, 40));
    ExitCode::SUCCESS
}
