//! Synthetic click data with a known truth.
//!
//! Each sample is a function of the seed and the sample's index alone, so any rank makes its
//! share without the others, and fresh rows for evaluation are simply another range of indices
//! ([`EVALUATION_START`]). Memory does not grow with the rows of a table.
//!
//! Ids follow a Zipf law over ranks; ranks are spread over the rows of a table by a fixed
//! permutation. Labels are drawn from a planted teacher whose probability is known for every
//! sample, so the best AUC and normalized entropy that any model can reach are known as well.

mod generator;
mod options;
mod permutation;
mod random;
mod source;
mod teacher;
mod zipf;

#[cfg(test)]
mod tests;

pub use options::{Bag, EVALUATION_START, Feature, Options};
pub use source::Synthetic;
