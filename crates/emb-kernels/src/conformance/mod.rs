//! The suite that every backend passes.
//!
//! Each function takes a closure that makes a backend, compares it with
//! [`reference`](crate::reference), and panics with the case's seed where they differ.

pub mod dense;
pub mod embedding;
