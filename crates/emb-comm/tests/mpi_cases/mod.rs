//! The cases: what each process does, and how the job must end.

mod conformance;
mod faults;
mod long;
mod rounds;

use emb_comm::{Mpi, MpiOptions};
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
    /// How long it may take, launcher included.
    pub(crate) within: Duration,
    /// The code that the launcher ends with, where it is that of a rank.
    pub(crate) code: Option<i32>,
    /// What is wrong with what the processes and the launcher printed, given how many there were.
    pub(crate) says: fn(usize, &str) -> Option<String>,
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = conformance::cases();
    cases.extend(faults::cases());
    cases.extend(long::cases());
    cases.extend(rounds::cases());
    cases
}

fn options(timeout: Duration) -> MpiOptions {
    MpiOptions::default().with_timeout(timeout)
}

fn start(options: &MpiOptions) -> Mpi {
    Mpi::start(options).unwrap_or_else(|error| panic!("{error}"))
}

/// Every one of `ranks` has printed what it says, and that contains each of `texts`.
fn each_says(ranks: &[usize], printed: &str, texts: &[&str]) -> Option<String> {
    for rank in ranks {
        let begin = format!("rank {rank} says: ");
        let Some(line) = printed.lines().find_map(|line| line.strip_prefix(&begin)) else {
            return Some(format!("rank {rank} says nothing"));
        };
        if let Some(text) = texts.iter().find(|text| !line.contains(**text)) {
            return Some(format!("rank {rank} does not say {text:?}, but {line:?}"));
        }
    }
    None
}
