//! One thing looked at: [`Check`].

use serde::{Deserialize, Serialize};

/// What is thought of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be, or of no consequence.
    Ok,
    /// It can't be told here.
    Unknown,
    /// Works, but slower or less than it could.
    Warning,
    /// Something will not work.
    Problem,
}

impl Verdict {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Problem => "PROBLEM",
        }
    }
}

/// What was looked at, what was found, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// `processor`, `memory`, ..
    pub area: String,
    /// What of it.
    pub name: String,
    /// What is thought of it.
    pub verdict: Verdict,
    /// What is there.
    pub found: String,
    /// What to do, where it is not as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub(super) fn ok(area: &str, name: &str, found: impl Into<String>) -> Self {
        Self {
            area: area.to_owned(),
            name: name.to_owned(),
            verdict: Verdict::Ok,
            found: found.into(),
            fix: None,
        }
    }

    pub(super) fn unknown(area: &str, name: &str, why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unknown, ..Self::ok(area, name, why) }
    }

    /// The same as a warning, with what to do.
    pub(super) fn warn(self, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, fix: Some(fix.into()), ..self }
    }

    /// The same as a problem, with what to do.
    pub(super) fn problem(self, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Problem, fix: Some(fix.into()), ..self }
    }

    /// What was read, or that it can't be.
    pub(super) fn of<T>(
        area: &str,
        name: &str,
        read: Result<T, String>,
        judge: impl FnOnce(T) -> Self,
    ) -> Self {
        match read {
            Ok(value) => judge(value),
            Err(why) => Self::unknown(area, name, why),
        }
    }
}
