//! Why the ranks of a world cannot go on: [`Failure`].

use crate::Operation;
use std::fmt;

/// The first thing that went wrong in a world of ranks. Every rank's error carries the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    kind: FailureKind,
    ranks: Vec<usize>,
    operation: Option<Operation>,
    step: u64,
    message: String,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// Ranks did not arrive within the timeout. Those to look at are the ones that others wait for
    /// and that wait for nobody.
    Missing,
    /// Ranks called different operations, or the same with different arguments.
    Mismatch,
    /// A rank returned an error, or its arguments were refused.
    Error,
    /// A rank panicked.
    Panic,
    /// A rank dropped its communicator while others still needed it.
    Left,
    /// A rank gave up on purpose.
    Aborted,
}

impl Failure {
    pub(crate) fn new(
        kind: FailureKind,
        ranks: Vec<usize>,
        operation: Option<Operation>,
        step: u64,
        message: String,
    ) -> Self {
        Self { kind, ranks, operation, step, message }
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The ranks to look at, as numbered in the world: those that failed, are missing, or differ.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// The operation it was noticed in or happened in; `None` outside any.
    pub fn operation(&self) -> Option<Operation> {
        self.operation
    }

    /// The step it was noticed in or happened in, as last set by
    /// [`set_step`](crate::Collective::set_step).
    pub fn step(&self) -> u64 {
        self.step
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// "rank 2", "ranks 0, 1 and 3".
pub(crate) fn list(ranks: &[usize]) -> String {
    let (last, rest) = match ranks {
        [] => return "no rank".to_owned(),
        [rank] => return format!("rank {rank}"),
        [rest @ .., last] => (last, rest),
    };
    let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
    format!("ranks {} and {last}", rest.join(", "))
}
