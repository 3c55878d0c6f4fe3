//! Who looks up which row: [`Access`], and [`RowFrequencies`] that compute with it.
//!
//! What a plan costs depends on how often its rows are looked up: how many of a batch's ids are
//! distinct, and how many of its look-ups the hottest rows take. Rows are named by *frequency
//! rank*, 0 for the most frequent one; which row of the table that is does not matter here. Look-ups
//! are independent draws, the model of `RecShard` (ASPLOS 2022) and of Zipf-distributed benchmarks.
//!
//! Every answer takes a time that does not grow with the number of rows: Zipf's law is summed by
//! the Euler-Maclaurin formula, a histogram by its buckets.

mod frequencies;
mod histogram;
mod steps;
mod zipf;

pub use frequencies::RowFrequencies;
pub use histogram::{Bucket, Histogram};

use serde::{Deserialize, Serialize};

/// How look-ups spread over the rows of a table, as configuration says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Access {
    /// Every row equally often.
    #[default]
    Uniform,
    /// The row of frequency rank `r` (from 0) in proportion to `(r + 1)^-exponent`.
    Zipf {
        /// `0..=15`; 0 is uniform.
        exponent: f64,
    },
    /// As measured. A table may have more rows than the histogram: those are never looked up.
    Histogram(Histogram),
}

#[cfg(test)]
mod tests;
