//! How often the rows of every table are looked up, measured in one pass over training data.
//!
//! ```text
//!   Config --> sources::training --> batches of rows, hashed as training hashes them
//!                                       |
//!                                    RowCounts a table, in bounded memory
//!                                       |
//!                                    Profile --> WorkloadSpec   what planners start from
//! ```
//!
//! The tables are those of the configuration: names, rows, dims, features and optimizer state are
//! what a run with the same options has, so that a plan made from a profile is a plan for that run.
//! The work of its dense model is counted from its shape.

mod counts;
mod dense;
mod measure;
mod shares;
mod text;

pub use counts::RowCounts;
pub(crate) use measure::workload_of;
pub use measure::{Profile, ProfileOptions, TableProfile, profile};
pub use text::workload_text;

#[cfg(test)]
mod tests;
