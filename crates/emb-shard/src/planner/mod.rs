//! Who decides where tables live: [`Planner`].
//!
//! ```text
//!   Workload, Topology, Constraints --> Task --> Planner --> Plan
//! ```
//!
//! All planners answer the same [`Task`] with the one [`Plan`] type, so that any of them can be
//! compared with any other, executed, or replaced by one of your own. A task that cannot be met is
//! refused with the table that does not fit and the bytes it is short of
//! ([`DoesNotFit`](crate::DoesNotFit)).

mod baseline;
mod embark;
mod flexshard;
mod lattice;
mod task;

pub use baseline::{
    Beam, Greedy, GreedyBy, Random, TableRowWise, TorchRec, TorchRecConstants, baselines,
};
pub use embark::{EmbarkClusters, EmbarkOptions, EmbarkPlanner, EmbarkSearch};
pub use flexshard::{
    FlexShardPlanner, TierBytes, TierKind, TierSolution, TierSolver, TieredTable, Travel,
};
pub use lattice::{Alternative, Explanation, Lattice, Planned, TableExplanation, explain};
pub use task::{Constraints, Kind, Objective, Task};

use crate::{Plan, Result};

/// Decides where tables live.
///
/// The same task gives the same plan, on every machine.
pub trait Planner {
    /// What it is called on a command line.
    fn name(&self) -> &'static str;

    /// Makes a plan.
    ///
    /// # Errors
    /// A table that does not fit, by name and bytes ([`DoesNotFit`](crate::DoesNotFit)); constraints
    /// that this planner cannot meet, by name.
    fn plan(&self, task: &Task<'_>) -> Result<Plan>;
}
