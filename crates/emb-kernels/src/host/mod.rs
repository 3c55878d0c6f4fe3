//! What a rank does in host memory around its collectives: distinct rows, and sums of rows.
//!
//! Compiled for the instruction sets that the kernels of [`cpu`](crate::cpu) are compiled for and
//! chosen once; results are the same bits on all. One thread; nothing is allocated beyond memory
//! that is kept. Indices are checked: one that does not fit panics.

mod bags;
mod distinct;
mod rows;

pub use bags::{Lookups, Sources, Upstream, add_bags, add_gradients};
pub use distinct::Distinct;
pub use rows::{add, add_rows, copy_rows};
