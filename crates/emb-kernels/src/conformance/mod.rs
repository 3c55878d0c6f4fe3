//! The suite that every backend passes.

pub mod dense;
