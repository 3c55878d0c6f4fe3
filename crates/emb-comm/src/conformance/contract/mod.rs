//! The failure contract: whatever a rank does, every other rank is told, by name and soon.
//!
//! A [`Case`] is a fault of one rank of four, in a set of ranks: the world, or a group or a replica
//! set of two dimensions, with a duplicate at work on another thread. Every rank [`play`]s it and
//! brings back what it was [`Told`]; [`judge`] says what of that breaks the contract. A harness
//! starts the ranks, as threads or as processes, and ends what hangs.
//!
//! ```text
//!   rank 0, 1, 2                            rank 3
//!     steps 0..5 of ordinary exchanges        steps 0..5 of ordinary exchanges
//!     step 5: an operation                    step 5: something else, or nothing ever again
//!     told: who, in which step, soon          told too, if it is still there
//!     everything fails the same from here
//! ```
//!
//! The contract is that of [`Collective`](crate::Collective): an error of a survivor is
//! [`Error::Failed`](crate::Error::Failed), or a refusal of counts that names both ranks; it names
//! the operation and the step that this rank was in, the rank at fault and its step; every later
//! operation, also on the duplicate, fails with the same; nothing panics, on the way out neither.

mod case;
mod judge;
mod play;
mod told;

pub use case::{CULPRIT, Case, Fault, STEP, Sets, WORLD};
pub use judge::{Expected, judge};
pub use play::play;
pub use told::{Told, now};
