//! Planning from the command line: what a person wrote becomes a task, a plan, a report.
//!
//! ```text
//!   --workload preset|FILE --WorkloadOptions--> Workload --+
//!   --topology preset|FILE --machines---------> Topology --+--> Task --Planner by name--> Plan
//!   --planner, --pin, ..   --PlannerOptions---> Constraints+                               |
//!                                                                    PlanReport, PlanDiff <+
//! ```
//!
//! How a plan is found and what it costs is `emb-shard`'s; files, names and reports are here.

mod auto;
mod csv_file;
mod diff;
mod machines;
mod outcome;
mod placed;
mod planner_options;
mod planners;
mod words;
mod workloads;

pub use auto::Auto;
pub use diff::{PlanDiff, TableDiff, read_plan};
pub use machines::Machines;
pub use outcome::{Outcome, PlanReport, RankBytes, TableReport, make_plan};
pub use placed::in_words;
pub use planner_options::PlannerOptions;
pub use planners::{DEFAULT_PLANNER, planner, planner_names};
pub use words::parse_bytes;
pub use workloads::WorkloadOptions;
