//! Whole trainings over ranks against one process.

mod checkpoints;
mod equality;
mod evaluation;
mod faults;
mod options;
mod reports;
mod rules;
mod support;
