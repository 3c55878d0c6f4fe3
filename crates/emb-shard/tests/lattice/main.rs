//! The lattice planner against brute force, budgets, bounds and random tasks.

mod brute;
mod cases;
mod random;
mod reports;
