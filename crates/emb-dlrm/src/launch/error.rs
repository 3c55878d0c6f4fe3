//! What can go wrong among processes that start together.

/// Why processes cannot start together, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable of a launcher that says nothing sensible.
    #[error("{launcher} sets {variable}={value}: {problem}")]
    Variable {
        /// Who sets it.
        launcher: super::Launcher,
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What is wrong.
        problem: String,
    },
    /// One of two variables that only make sense together.
    #[error("{launcher} sets {given}={value} but not {missing}: set both, or unset {given}")]
    Half {
        /// Who sets them.
        launcher: super::Launcher,
        /// The variable that is set.
        given: &'static str,
        /// Its value.
        value: String,
        /// The variable that is not.
        missing: &'static str,
    },
    /// Two launchers that say different things.
    #[error(
        "this process is rank {} of {} by {}, and rank {} of {} by {}: unset the variables of one",
        first.rank, first.world, first.launcher, second.rank, second.world, second.launcher
    )]
    Contradiction {
        /// What one says.
        first: super::Place,
        /// What the other says.
        second: super::Place,
    },
    /// Ranks that know no common address.
    #[error("{0}")]
    NoAddress(String),
    /// Processes that cannot be started as asked, and why.
    #[error("{0}")]
    Start(String),
    /// A meeting of ranks that did not come about.
    #[error("{0}")]
    Meeting(String),
}
