//! The one error type of this crate.

use crate::RuleKind;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the names and values a person needs to find it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option that the rule has no meaning for.
    #[error("rule {rule} does not take {option}: {reason}")]
    Unsupported {
        /// The rule.
        rule: RuleKind,
        /// The option, with its value where the value decides.
        option: String,
        /// Why, and what to use instead.
        reason: &'static str,
    },
    /// Two options that contradict each other, or one without the other it needs.
    #[error("{option} cannot stand {problem}")]
    Contradiction {
        /// The option given.
        option: &'static str,
        /// What it stands with or without, and what to do.
        problem: &'static str,
    },
    /// A value outside the range of its option (NaN and infinities always are).
    #[error("{option} is {value}, valid: {valid}")]
    OutOfRange {
        /// The option.
        option: &'static str,
        /// The value given.
        value: f64,
        /// The values that are accepted.
        valid: &'static str,
    },
    /// A name that is none of the known ones.
    #[error("unknown {what} {name:?}, known: {known}")]
    UnknownName {
        /// What kind of thing was named.
        what: &'static str,
        /// The text given.
        name: String,
        /// All names that are known.
        known: &'static str,
    },
    /// A schedule text that cannot be read.
    #[error("schedule {text:?}: {problem}")]
    ScheduleText {
        /// The whole text.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Slices that must have matching lengths do not.
    #[error("{what}: expected {expected} values, got {got}")]
    Length {
        /// The slice at fault.
        what: &'static str,
        /// The length it should have.
        expected: usize,
        /// The length it has.
        got: usize,
    },
}
