//! Tiers by frequency: the published figures, the solver against brute force, and what holds for
//! every task.

mod common;
#[path = "../support/data.rs"]
mod data;

mod constraints;
mod properties;
mod published;
mod ratios;
mod solver;
