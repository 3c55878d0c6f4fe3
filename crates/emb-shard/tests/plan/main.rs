//! Plans: coverage, refusals, builders, planner, files, text, routing and schedule.

mod builders;
mod common;
mod coverage;
mod file;
mod hot;
mod order;
mod planner;
mod refusals;
mod routing;
mod schedule;
mod text;
