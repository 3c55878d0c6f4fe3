//! Machines measured: [`measure`] times exchanges, look-ups and products over all ranks and writes
//! what a planner reads.
//!
//! ```text
//!   ranks -------- exchange.rs --------> seconds by size and level --+
//!   ranks -------- rates.rs -----------> look-ups, products ---------+--> Calibration --> topology.toml
//!   nccl-tests --- nccl_tests.rs ------> seconds by size ------------+        residuals, held-out sizes
//! ```
//!
//! Every second size is held out of the fit: what is predicted for those says how far the file can
//! be trusted.

mod exchange;
mod fitted;
mod nccl_tests;
mod over;
mod places;
mod rates;
mod sampler;

pub use exchange::{LevelTimes, Point, Times};
pub use fitted::{Calibration, Machine, Residual, from_tables, from_times};
pub use nccl_tests::{NcclTable, NcclTest, read_table};
pub use over::{Job, Over, over};
pub use places::Places;
pub use rates::Rates;
pub(crate) use sampler::{Sampler, median};

use crate::Result;
use emb_comm::Collective;
use std::time::Duration;

/// What is told while something is measured: what, and how much of it is done, `0..=1`.
pub type Progress<'a> = &'a (dyn Fn(&str, f64) + Sync);

/// Times of all levels, and what one rank computes: called by every rank, with the same arguments.
///
/// # Errors
/// Ranks of a host that are no neighbours, by rank; a collective that fails; memory that cannot be
/// had.
pub fn measure<C: Collective>(
    ranks: &mut C,
    places: &Places,
    threads: usize,
    budget: Duration,
    progress: Progress<'_>,
) -> Result<(Times, Rates)> {
    let rates = rates::measure(ranks, threads, budget.mul_f64(0.15), progress)?;
    let times = exchange::measure(ranks, places, budget.mul_f64(0.85), progress)?;
    Ok((times, rates))
}
