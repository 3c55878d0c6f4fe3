//! Planners in an arena: how good their plans are, and how long they take.
fn main() {}
