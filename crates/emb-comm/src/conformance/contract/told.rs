//! What a rank was told: [`Told`].

use crate::{Error, FailureKind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What one rank was told when the world failed. It goes from process to process as a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// The rank that was told.
    pub rank: usize,
    /// When, by [`now`].
    pub at: Duration,
    /// The step that it was in.
    pub step: u64,
    /// What kind of thing went wrong.
    pub kind: FailureKind,
    /// The ranks to look at.
    pub ranks: Vec<usize>,
    /// The step in which it went wrong.
    pub failed_in: u64,
    /// What this rank found that breaks the contract; empty where nothing does.
    pub problem: String,
    /// The whole error.
    pub message: String,
}

/// Kinds by the names that they have in a line.
const KINDS: [FailureKind; 6] = [
    FailureKind::Missing,
    FailureKind::Mismatch,
    FailureKind::Error,
    FailureKind::Panic,
    FailureKind::Left,
    FailureKind::Aborted,
];

/// Time since 1970 by the system's clock, which processes of a machine share.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Told {
    /// `error` is what the rank got, `later` what a call after that got: a failure in any case.
    pub(super) fn new(rank: usize, at: Duration, step: u64, error: &Error, later: &Error) -> Self {
        let message = error.to_string();
        let Error::Failed { failure, .. } = later else {
            let problem = format!("a later call does not fail as the world has: {later}");
            return Self::without_failure(rank, at, step, problem, message);
        };
        Self {
            rank,
            at,
            step,
            kind: failure.kind(),
            ranks: failure.ranks().to_vec(),
            failed_in: failure.step(),
            problem: String::new(),
            message,
        }
    }

    /// What a rank says that was not told, though it should have been.
    pub(super) fn without_failure(
        rank: usize,
        at: Duration,
        step: u64,
        problem: String,
        message: String,
    ) -> Self {
        let (kind, ranks) = (FailureKind::Error, Vec::new());
        Self { rank, at, step, kind, ranks, failed_in: 0, problem, message }
    }

    /// Adds what breaks the contract.
    pub(super) fn add(&mut self, problem: String) {
        let before = std::mem::replace(&mut self.problem, problem);
        if !before.is_empty() {
            self.problem = format!("{before}; {}", self.problem);
        }
    }

    /// As a line.
    pub fn to_line(&self) -> String {
        let ranks: Vec<String> = self.ranks.iter().map(ToString::to_string).collect();
        let Self { rank, step, kind, failed_in, .. } = self;
        let plain = |text: &str| text.replace(['\t', '\n'], " ");
        let (at, ranks) = (self.at.as_micros(), ranks.join(","));
        let (problem, message) = (plain(&self.problem), plain(&self.message));
        format!("{rank}\t{at}\t{step}\t{kind:?}\t{ranks}\t{failed_in}\t{problem}\t{message}\n")
    }

    /// What [`to_line`](Self::to_line) wrote; `None` for anything else.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut cells = line.trim_end_matches('\n').split('\t');
        let mut cell = || cells.next();
        Some(Self {
            rank: cell()?.parse().ok()?,
            at: Duration::from_micros(cell()?.parse().ok()?),
            step: cell()?.parse().ok()?,
            kind: cell().and_then(|name| KINDS.into_iter().find(|k| format!("{k:?}") == name))?,
            ranks: cell()?.split(',').filter_map(|rank| rank.parse().ok()).collect(),
            failed_in: cell()?.parse().ok()?,
            problem: cell()?.to_owned(),
            message: cell()?.to_owned(),
        })
    }
}
