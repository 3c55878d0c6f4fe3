//! The lattice planner against brute force, budgets, bounds and random tasks.

mod bound;
mod brute;
mod cases;
mod random;
mod reports;
