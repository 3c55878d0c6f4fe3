//! Where the time of a step goes on the ranks, while they train: [`Watch`].
//!
//! ```text
//!   every rank, every step     meters of its collectives, its own clock      no communication
//!   every N steps              a few numbers a rank, one all-gather
//!   rank 0                     Health: shares, the slowest rank, bytes against the plan, advice
//! ```
//!
//! **Exposed** is what a rank's own thread spends in collectives: exchanges of the tables, the total
//! of the loss, and of what goes on beside it, syncs of replicas and sums of dense gradients, the
//! part that it waits for. **Waiting** is the part of it in which the rank copies and sums nothing itself.
//!
//! **To compute** is all the rest of a step, by the clock on the wall: reading data included, and
//! also a disk, a device or a busy neighbour that keeps a rank from its work, which the time of
//! its processor would not show. Others wait for a rank whatever it is that holds it up. Where
//! ranks outnumber the cores it also includes waiting for a core, for all ranks alike.

mod advice;
mod figures;
mod judge;
mod measure;
mod prediction;
mod slowest;
mod watch;

pub use figures::{Bytes, Exposed, Health, Levels, SlowRank};
pub use watch::Watch;

#[cfg(test)]
mod tests;
