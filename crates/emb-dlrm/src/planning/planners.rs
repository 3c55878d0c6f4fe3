//! The planners by name; the only list of them.

use super::Auto;
use crate::config::nearest;
use crate::{Error, Result};
use emb_shard::Planner;

/// The planner of those who name none.
pub const DEFAULT_PLANNER: &str = "auto";

/// Makes one of each.
fn all() -> Vec<Box<dyn Planner>> {
    vec![Box::new(Auto)]
}

/// The planner called `name`.
///
/// # Errors
/// An unknown name, with the nearest and all known ones.
pub fn planner(name: &str) -> Result<Box<dyn Planner>> {
    let found = all().into_iter().find(|planner| planner.name() == name);
    found.ok_or_else(|| {
        Error::Config(format!("--planner {}", nearest::explain(name, &planner_names())))
    })
}

/// Names of all planners.
pub fn planner_names() -> Vec<&'static str> {
    all().iter().map(|planner| planner.name()).collect()
}
