//! Naive `f64` specification of every operation.
//!
//! Clear before fast: every function is a direct transcription of what
//! [`Backend`](crate::Backend) promises, on plain vectors.

pub mod dense;
pub mod embedding;
