//! Naive `f64` specification of every operation.

pub mod dense;
