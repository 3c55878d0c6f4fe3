//! The planners by name; the only list of them.

use super::Auto;
use crate::config::nearest;
use crate::{Error, Result};
use emb_shard::{Lattice, Plan, Planner, Task};

/// The planner of those who name none.
pub const DEFAULT_PLANNER: &str = "lattice";

/// Makes one of each.
fn all() -> Vec<Box<dyn Solver>> {
    vec![Box::new(Lattice::default()), Box::new(Auto)]
}

/// A planner that may know how short a step can be at best.
pub trait Solver: Planner + std::fmt::Debug {
    /// A plan, and the seconds that a step of none can be below, where the planner knows them.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    fn solve(&self, task: &Task<'_>) -> emb_shard::Result<(Plan, Option<f64>)> {
        Ok((self.plan(task)?, None))
    }
}

impl Solver for Auto {}

impl Solver for Lattice {
    fn solve(&self, task: &Task<'_>) -> emb_shard::Result<(Plan, Option<f64>)> {
        let planned = Lattice::solve(self, task)?;
        Ok((planned.plan, Some(planned.lower_bound_seconds)))
    }
}

/// The planner called `name`.
///
/// # Errors
/// An unknown name, with the nearest and all known ones.
pub fn planner(name: &str) -> Result<Box<dyn Solver>> {
    let found = all().into_iter().find(|planner| planner.name() == name);
    found.ok_or_else(|| {
        Error::Config(format!("--planner {}", nearest::explain(name, &planner_names())))
    })
}

/// Names of all planners.
pub fn planner_names() -> Vec<&'static str> {
    all().iter().map(|planner| planner.name()).collect()
}
