//! Baseline planners: what they decide, what they refuse, and that no task breaks them.

mod choices;
mod common;
mod properties;
mod refusals;
