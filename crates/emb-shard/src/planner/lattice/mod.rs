//! The planner that searches the whole placement lattice: [`Lattice`].
//!
//! ```text
//!   for every number of replicas and layout
//!     options   every cut x exchange of every table, priced for the mean rank
//!     start     greedy: heavy tables first, each where it hurts least
//!     search    tables leave the busiest rank as long as the simulated step gets shorter
//!   the best of all, and a bound that no plan can be below
//! ```

mod bound;
mod choice;
mod options;
mod price;
mod search;
mod short;
mod start;
mod state;

use super::{Planner, Task};
use crate::{Error, Estimate, Layout, Ledger, Mesh, Plan, Result, StepModel};
use price::Options;
use state::{Score, State};

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

/// How much busier than the mean an owner may be, and how much of the exchange of ids counts, in
/// the first plans that are tried.
const STARTS: [(f64, f64); 6] =
    [(1.0, 1.0), (0.25, 1.0), (4.0, 1.0), (1.0, 0.0), (0.05, 1.0), (0.0, 1.0)];

/// Placements that are tried in about a second, times ranks.
const TRIES: u64 = 4_000_000;
/// However few ranks.
const MOST_TRIES: u64 = 20_000;

/// Meshes whose plans are improved: those that start best.
const IMPROVED: usize = 2;

/// A first plan over one mesh.
struct Begun<'a> {
    state: State<'a>,
    score: Score,
    options: Options,
}

impl Lattice {
    /// Makes a plan, with its cost and a bound.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn solve(&self, task: &Task<'_>) -> Result<Planned> {
        let mut begun: Vec<Begun<'_>> = Vec::new();
        for mesh in meshes(task)? {
            task.check_pinned(mesh)?;
            begun.push(self.begin(task, mesh, false)?);
        }
        let mut order: Vec<usize> = (0..begun.len()).collect();
        // Stable: fewer replicas first among equals.
        order.sort_by(|&a, &b| begun[a].score.compare(begun[b].score));
        let tries = self
            .tries
            .unwrap_or_else(|| (TRIES / u64::from(task.topology.world())).clamp(1, MOST_TRIES));
        let mut best: Option<(Score, usize)> = None;
        for &number in order.iter().take(IMPROVED) {
            // Hot rows are looked for only where they may end up in a plan.
            let hot = self.begin(task, begun[number].state.mesh, true)?;
            if hot.score.compare(begun[number].score).is_lt() {
                begun[number] = hot;
            }
            let Begun { state, score, options } = &mut begun[number];
            search::improve(state, options, tries / IMPROVED as u64)?;
            *score = state.score();
            if best.is_none_or(|(known, _)| score.compare(known).is_lt()) {
                best = Some((*score, number));
            }
        }
        let Some((score, number)) = best else {
            return Err(Error::Constraint { what: "0 groups of ranks".to_owned() });
        };
        if score.excess > 0.0 {
            return Err(short::of(&mut begun[number].state));
        }
        let plan = begun[number].state.plan()?;
        let estimate = self.model.ledger(&plan, task.workload, task.topology)?.estimate();
        let lower_bound_seconds = bound::seconds(self, task)?;
        Ok(Planned { plan, estimate, lower_bound_seconds })
    }

    fn begin<'a>(&self, task: &'a Task<'a>, mesh: Mesh, hot: bool) -> Result<Begun<'a>> {
        let budget = task.budget().get() as f64;
        let mut ledger = Ledger::new(&self.model, task.workload, task.topology, task.node_ranks())?;
        let mut best: Option<Begun<'a>> = None;
        let mut all: Vec<(f64, Options)> = Vec::new();
        for (patience, ids_count) in STARTS {
            let known = all.iter().position(|(counted, _)| *counted == ids_count);
            let at = known.unwrap_or(all.len());
            if known.is_none() {
                all.push((ids_count, price::of_mesh(task, &mut ledger, mesh, ids_count, hot)?));
            }
            let options = &all[at].1;
            let chosen = start::greedy(mesh, options, budget, patience);
            let mut state = State::new(task, mesh, &self.model, chosen)?;
            let score = state.score();
            if best.as_ref().is_none_or(|best| score.compare(best.score).is_lt()) {
                let options = options.clone();
                best = Some(Begun { state, score, options });
            }
        }
        best.ok_or_else(|| Error::Constraint { what: "no first plan".to_owned() })
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
    let replicas = std::iter::successors(Some(2u32), |count| count.checked_mul(2));
    for replicas in replicas.take_while(|&count| count <= most && count < world) {
        if world.is_multiple_of(replicas) {
            meshes.push(Mesh::new(world, world / replicas, Layout::Strided)?);
            if !one_level {
                meshes.push(Mesh::new(world, world / replicas, Layout::Contiguous)?);
            }
        }
    }
    // Positions that tables are pinned to must exist in every group.
    let last = task.constraints.pinned.values().max();
    meshes.retain(|mesh| {
        mesh.replicas() == 1 || last.is_none_or(|&position| position < mesh.group_ranks())
    });
    Ok(meshes)
}
