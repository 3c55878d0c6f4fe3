//! Naive `f64` specification of every operation.
