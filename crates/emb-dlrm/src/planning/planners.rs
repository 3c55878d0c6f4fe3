//! The planners by name; the only list of them.

use super::Auto;
use crate::config::nearest;
use crate::{Error, Result};
use emb_shard::{
    Duplicates, EmbarkPlanner, FlexShardPlanner, Lattice, Plan, Planner, StepModel, Task, baselines,
};
use std::fmt;

/// The planner of those who name none.
pub const DEFAULT_PLANNER: &str = "lattice";

/// Makes one of each; those that price steps do so by `model`.
fn all(model: StepModel) -> Vec<Box<dyn Solver>> {
    let mut all: Vec<Box<dyn Solver>> = vec![
        Box::new(Lattice { model, ..Lattice::default() }),
        Plain::solver(Box::new(FlexShardPlanner::default())),
        // Pooled tables, too, are cut into tiers.
        Plain::solver(Box::new(FlexShardPlanner {
            duplicates: Duplicates::PerRank,
            ..FlexShardPlanner::default()
        })),
        Plain::solver(Box::new(EmbarkPlanner::default())),
    ];
    all.extend(baselines().into_iter().map(Plain::solver));
    all.push(Plain::solver(Box::new(Auto)));
    all
}

/// A planner that may know how short a step can be at best.
pub trait Solver: Planner + fmt::Debug {
    /// A plan, and the seconds that a step of none can be below, where the planner knows them.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    fn solve(&self, task: &Task<'_>) -> emb_shard::Result<(Plan, Option<f64>)>;
}

/// A planner that knows of no bound.
struct Plain(Box<dyn Planner>);

impl Plain {
    fn solver(planner: Box<dyn Planner>) -> Box<dyn Solver> {
        Box::new(Self(planner))
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Plain").field(&self.name()).finish()
    }
}

impl Planner for Plain {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn plan(&self, task: &Task<'_>) -> emb_shard::Result<Plan> {
        self.0.plan(task)
    }
}

impl Solver for Plain {
    fn solve(&self, task: &Task<'_>) -> emb_shard::Result<(Plan, Option<f64>)> {
        Ok((self.plan(task)?, None))
    }
}

impl Solver for Lattice {
    fn solve(&self, task: &Task<'_>) -> emb_shard::Result<(Plan, Option<f64>)> {
        let planned = Lattice::solve(self, task)?;
        Ok((planned.plan, Some(planned.lower_bound_seconds)))
    }
}

/// The planner called `name`, pricing steps by `model` where it asks for that.
///
/// # Errors
/// An unknown name, with the nearest and all known ones.
pub fn planner(name: &str, model: StepModel) -> Result<Box<dyn Solver>> {
    let found = all(model).into_iter().find(|planner| planner.name() == name);
    found.ok_or_else(|| {
        Error::Config(format!("--planner {}", nearest::explain(name, &planner_names())))
    })
}

/// Names of all planners.
pub fn planner_names() -> Vec<&'static str> {
    all(StepModel::default()).iter().map(|planner| planner.name()).collect()
}
