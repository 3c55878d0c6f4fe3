//! What a rule found: [`Violation`].

use crate::Failure;
use std::fmt;

/// One place that breaks a rule; prints as `file:line: message`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Path from the workspace's root.
    pub(crate) file: String,
    /// Line, from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl Violation {
    /// A violation at `line` of `file`.
    pub(crate) fn new(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, message } = self;
        if *line == 0 {
            write!(f, "{file}: {message}")
        } else {
            write!(f, "{file}:{line}: {message}")
        }
    }
}

/// Prints violations, and fails if there are any.
pub(crate) fn report(rule: &str, violations: &[Violation]) -> Result<(), Failure> {
    for violation in violations {
        eprintln!("{violation}");
    }
    match violations.len() {
        0 => Ok(()),
        count => Err(format!("{rule}: {count} violation(s), listed above").into()),
    }
}

/// The violations as lines, for tests.
#[cfg(test)]
pub(crate) fn lines(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}
