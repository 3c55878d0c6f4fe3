//! The cases: what each process does, and how the job must end.

use emb_comm::{Mpi, MpiOptions, conformance};
use std::process::ExitCode;
use std::time::Duration;

/// What processes do together.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// On how many processes.
    pub(crate) worlds: &'static [usize],
    /// What each does.
    pub(crate) rank: fn() -> ExitCode,
    /// Whether the job ends well.
    pub(crate) succeeds: bool,
    /// How long it may take.
    pub(crate) within: Duration,
    /// What is wrong with what the processes printed, given how many there were.
    pub(crate) says: fn(usize, &str) -> Option<String>,
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "conforms",
        worlds: &[1, 2, 3, 4, 8],
        rank: conforms,
        succeeds: true,
        within: Duration::from_mins(1),
        says: |_, _| None,
    },
    Case {
        name: "refuses_and_starts_anew",
        worlds: &[2, 3, 4, 8],
        rank: refuses,
        succeeds: true,
        within: Duration::from_mins(1),
        says: |_, _| None,
    },
];

fn options() -> MpiOptions {
    MpiOptions::default().with_timeout(Duration::from_secs(30))
}

fn start() -> Mpi {
    Mpi::start(&options()).unwrap_or_else(|error| panic!("{error}"))
}

fn conforms() -> ExitCode {
    let mut rank = start();
    for check in conformance::checks::<Mpi>() {
        check.run(&mut rank).unwrap_or_else(|error| panic!("{}: {error}", check.name()));
    }
    rank.close().unwrap_or_else(|error| panic!("{error}"));
    ExitCode::SUCCESS
}

fn refuses() -> ExitCode {
    for check in conformance::refusals::<Mpi>() {
        let mut rank = start();
        check.run(&mut rank).unwrap_or_else(|error| panic!("{}: {error}", check.name()));
        let error = rank.close().expect_err("the world has failed");
        assert!(error.to_string().contains("in step 7"), "{}: {error}", check.name());
    }
    start().close().expect("a new world is well");
    ExitCode::SUCCESS
}
