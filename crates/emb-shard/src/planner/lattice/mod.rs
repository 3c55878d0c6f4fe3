//! The planner that searches the whole placement lattice: [`Lattice`].
//!
//! ```text
//!   for every number of replicas and layout
//!     options   every cut x exchange of every table, priced for the mean rank
//!     start     greedy: heavy tables first, each where it hurts least
//!     search    tables leave the busiest rank as long as the simulated step gets shorter
//!   the best of all and of the baselines, and a bound that no plan can be below
//! ```

mod begin;
mod bound;
mod choice;
mod explain;
mod explained;
mod options;
mod portfolio;
mod price;
mod search;
mod short;
mod start;
mod state;
mod thorough;

pub use explain::{Alternative, Explanation, TableExplanation, explain};

use super::{Planner, Task};
use crate::{Error, Estimate, Layout, Ledger, Mesh, Plan, Result, StepModel};
use begin::Begun;

/// Chooses for every table how it is cut, who owns the parts and how they are reached, and for all
/// of them the number of replicas and the layout of groups, so that the simulated step is short
/// and every rank has room.
///
/// The search is greedy, then local; it counts placements tried, not seconds, so that the same
/// task gives the same plan everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lattice {
    /// What prices a step.
    pub model: StepModel,
    /// Placements to try at most; `None` for as many as take about a second.
    pub tries: Option<u64>,
}

/// A plan, what it costs, and how far it may be from the best.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What a step of it costs.
    pub estimate: Estimate,
    /// Seconds that a step of no plan of this task can be below.
    pub lower_bound_seconds: f64,
}

/// Placements that are tried in about a second, times ranks.
const TRIES: u64 = 4_000_000;
/// However few ranks.
const MOST_TRIES: u64 = 40_000;

/// Meshes whose plans are improved: those that start best; the first alone where tables and ranks
/// are many.
const IMPROVED: usize = 2;

/// First plans of a mesh that are improved, where tables and ranks are few.
const STARTS: usize = 6;

/// How many times the replicas of the best plan are tried before the search for more ends.
const PAST: u32 = 2;

impl Lattice {
    /// Makes a plan, with its cost and a bound.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn solve(&self, task: &Task<'_>) -> Result<Planned> {
        let mut ledger = Ledger::new(&self.model, task.workload, task.topology, task.node_ranks())?;
        let mut begun: Vec<Begun<'_>> = Vec::new();
        for mesh in meshes(task)? {
            task.check_pinned(mesh)?;
            let first = begin::first_plans(task, &mut ledger, mesh, false)?;
            begun.extend(first.into_iter().next());
            if past_the_best(&begun) {
                break;
            }
        }
        let meshes: Vec<Mesh> = begun.iter().map(|begun| begun.state.mesh).collect();
        // Stable: fewer replicas first among equals.
        begun.sort_by(|a, b| a.score.compare(b.score));
        begun.truncate(if begin::is_small(task) { IMPROVED } else { 1 });
        let improved: Vec<Mesh> = begun.iter().map(|begun| begun.state.mesh).collect();
        let mut best = self.improve(task, &mut ledger, begun)?;
        let mut plan = best.state.plan()?;
        let worth = portfolio::worth(&self.model, task, &plan)?;
        match portfolio::best(&self.model, task)? {
            Some((simpler, found)) if simpler < worth && simpler.0 == 0.0 => plan = found,
            _ if best.score.excess > 0.0 => return Err(short::of(&mut best.state)),
            _ => {}
        }
        let estimate = self.model.ledger(&plan, task.workload, task.topology)?.estimate();
        let lower_bound_seconds = bound::seconds(task, &mut ledger, &meshes, &improved)?;
        Ok(Planned { plan, estimate, lower_bound_seconds })
    }

    /// The best plan that local search makes of the first plans over the meshes that began best.
    fn improve<'a>(
        &self,
        task: &'a Task<'a>,
        ledger: &mut Ledger<'a>,
        begun: Vec<Begun<'a>>,
    ) -> Result<Begun<'a>> {
        let tries = self
            .tries
            .unwrap_or_else(|| (TRIES / u64::from(task.topology.world())).clamp(1, MOST_TRIES));
        let starts = if begin::is_small(task) { STARTS } else { 1 };
        // Half of the tries tell which start is the best, the other half go to it.
        let each = (tries / (2 * begun.len() * starts).max(1) as u64).max(1);
        let mut best: Option<Begun<'a>> = None;
        for without in begun {
            // Hot rows are looked for only where they may end up in a plan.
            let mut first = begin::first_plans(task, ledger, without.state.mesh, true)?;
            first.push(without);
            first.sort_by(|a, b| a.score.compare(b.score));
            first.truncate(starts);
            for mut begun in first {
                let left = search::improve(&mut begun.state, &begun.options, each)?;
                search::improve(&mut begun.state, &begun.all, left)?;
                begun.score = begun.state.score();
                if best.as_ref().is_none_or(|best| begun.score.compare(best.score).is_lt()) {
                    best = Some(begun);
                }
            }
        }
        if let Some(best) = &mut best {
            search::improve(&mut best.state, &best.all, tries / 2)?;
            best.score = best.state.score();
        }
        best.ok_or_else(|| Error::Constraint { what: "0 groups of ranks".to_owned() })
    }
}

impl Planner for Lattice {
    fn name(&self) -> &'static str {
        "lattice"
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        Ok(self.solve(task)?.plan)
    }
}

/// Whether more replicas only make it worse: exchanges get shorter with them and syncs longer, so
/// the best number lies where both meet.
fn past_the_best(begun: &[Begun<'_>]) -> bool {
    let best = begun
        .iter()
        .enumerate()
        .reduce(|a, b| if b.1.score.compare(a.1.score).is_lt() { b } else { a });
    let replicas = |at: usize| begun[at].state.mesh.replicas();
    let last = replicas(begun.len() - 1);
    best.is_some_and(|(at, best)| best.score.excess == 0.0 && last > PAST * replicas(at))
}

/// The groups of ranks that are tried: one of all ranks, then ever more replicas, in both layouts
/// where nodes make them differ.
fn meshes(task: &Task<'_>) -> Result<Vec<Mesh>> {
    if task.constraints.replicas.is_some() {
        return Ok(vec![task.mesh()?]);
    }
    let world = task.topology.world();
    let most = task.constraints.max_replicas.unwrap_or(world).min(world);
    let one_level = task.topology.levels().len() == 1;
    let mut meshes = vec![Mesh::new(world, world, Layout::Strided)?];
    // Every rank with its own copy of all tables is what data-parallel placements are.
    let most = most.min(world.saturating_sub(1));
    for replicas in (2..=most).filter(|&count| world.is_multiple_of(count)) {
        meshes.push(Mesh::new(world, world / replicas, Layout::Strided)?);
        if !one_level {
            meshes.push(Mesh::new(world, world / replicas, Layout::Contiguous)?);
        }
    }
    // Positions that tables are pinned to must exist in every group.
    let last = task.constraints.pinned.values().max();
    meshes.retain(|mesh| {
        mesh.replicas() == 1 || last.is_none_or(|&position| position < mesh.group_ranks())
    });
    Ok(meshes)
}
