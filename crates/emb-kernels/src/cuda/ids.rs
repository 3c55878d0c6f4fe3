//! Refusal of ids outside their tables.

/// Memory of the checks.
#[derive(Debug, Default)]
pub(super) struct Scratch {}
