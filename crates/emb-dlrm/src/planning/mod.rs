//! Planning from the command line: what a person wrote becomes a task, a plan, a report.
//!
//! ```text
//!   --workload preset|FILE --WorkloadOptions--> Workload --+
//!   --topology preset|FILE --machines---------> Topology --+--> Task --Planner by name--> Plan
//!   --planner, --pin, ..   --PlannerOptions---> Constraints+                               |
//!                                                            PlanReport, PlanDiff, Simulation <+
//! ```
//!
//! How a plan is found and what it costs is `emb-shard`'s; files, names and reports are here.

mod auto;
mod chart;
mod csv_file;
mod diff;
mod machines;
mod outcome;
mod placed;
mod planner_options;
mod planners;
mod simulate;
mod what_if;
mod words;
mod workloads;

pub use auto::Auto;
pub use chart::scaling_chart;
pub use diff::{PlanDiff, TableDiff, read_plan};
pub use machines::Machines;
pub use outcome::{Outcome, PlanReport, RankBytes, TableReport, make_plan};
pub use placed::in_words;
pub use planner_options::{PlannerOptions, ReplicaOptions};
pub use planners::{DEFAULT_PLANNER, Solver, planner, planner_names};
pub use simulate::{Point, Replicas, Simulation, Simulator};
pub use what_if::WhatIf;
pub use words::parse_bytes;
pub use workloads::WorkloadOptions;
