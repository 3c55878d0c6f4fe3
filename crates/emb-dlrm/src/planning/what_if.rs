//! What would be on other machines and with other replicas: [`WhatIf`].

use super::{Point, Replicas, Simulator};
use crate::{Error, Result};
use serde::Serialize;

/// What `emb plan --explain` tells beside the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    /// The same ranks with so many replicas of every table that is not data-parallel; none where
    /// the task says how many.
    pub replicas: Vec<Point>,
    /// Fewest ranks, in whole nodes, on which the tables fit; `None` where the number of machines
    /// can't be changed.
    pub smallest_world: Option<u32>,
}

/// Replicas that are tried.
const REPLICAS: [u32; 4] = [1, 2, 4, 8];

impl WhatIf {
    /// Plans anew, `world` ranks with other replicas and ever fewer ranks.
    ///
    /// # Errors
    /// Constraints that can't be met on `world` ranks.
    pub fn new(simulator: &Simulator<'_>, world: u32) -> Result<Self> {
        let given = simulator.constraints.replicas.is_some();
        let counts = REPLICAS.into_iter().filter(|count| !given && world.is_multiple_of(*count));
        let lines: Vec<Replicas> = counts.map(Replicas::Exactly).collect();
        let replicas = simulator.run(&[world], &lines, |_| {})?.points;
        Ok(Self { replicas, smallest_world: smallest(simulator, world)? })
    }
}

/// Doubles the nodes until the tables fit, then halves the doubt.
fn smallest(simulator: &Simulator<'_>, world: u32) -> Result<Option<u32>> {
    let Some(node) = simulator.machines.ranks_of_node() else {
        return Ok(None);
    };
    let most = world / node;
    let mut fitting = 1;
    while fitting < most && !fits(simulator, fitting * node)? {
        fitting = (2 * fitting).min(most);
    }
    let mut short = fitting / 2;
    while fitting - short > 1 {
        let middle = u32::midpoint(short, fitting);
        if fits(simulator, middle * node)? {
            fitting = middle;
        } else {
            short = middle;
        }
    }
    Ok(Some(fitting * node))
}

/// Whether there is a plan for so many ranks. Constraints that only larger worlds can meet are one
/// more reason why not.
fn fits(simulator: &Simulator<'_>, ranks: u32) -> Result<bool> {
    match simulator.run(&[ranks], &[Replicas::Auto], |_| {}) {
        Ok(simulation) => Ok(simulation.points.iter().all(|point| point.feasible)),
        Err(Error::Config(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
