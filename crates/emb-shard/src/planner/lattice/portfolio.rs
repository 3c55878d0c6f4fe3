//! Plans of simpler planners, in case one of them is better.

use super::state::beside;
use crate::planner::{EmbarkPlanner, baselines};
use crate::{Objective, Plan, Result, StepModel, Task};

/// Tables times ranks up to which all of them are asked; `beam` and `torchrec` take longest.
const FEW: u64 = 20_000;
const SLOW: [&str; 2] = ["beam", "torchrec"];

/// Bytes too many and the value of the objective; less is better.
pub(super) type Worth = (f64, f64);

/// What a plan is worth for a task.
pub(super) fn worth(model: &StepModel, task: &Task<'_>, plan: &Plan) -> Result<Worth> {
    let mut ledger = model.ledger(plan, task.workload, task.topology)?;
    let room = ledger.table_room(beside(task));
    let value = match task.objective {
        Objective::StepSeconds => ledger.step_seconds(),
        Objective::InterNodeBytes => ledger.inter_node_bytes(),
        Objective::Memory => ledger.peak_bytes().get() as f64,
    };
    Ok(((room - task.table_budget().get() as f64).max(0.0), value))
}

/// The best plan of the baselines that the task allows.
pub(super) fn best(model: &StepModel, task: &Task<'_>) -> Result<Option<(Worth, Plan)>> {
    let tables = task.workload.tables().tables().len() as u64;
    let few = tables * u64::from(task.topology.world()) <= FEW;
    let mut best: Option<(Worth, Plan)> = None;
    let mut planners = baselines();
    planners.push(Box::new(EmbarkPlanner::default()));
    for planner in planners.iter().filter(|planner| few || !SLOW.contains(&planner.name())) {
        // A planner that finds no plan has nothing to offer.
        let Ok(plan) = planner.plan(task) else { continue };
        if !allowed(task, &plan) {
            continue;
        }
        let worth = worth(model, task, &plan)?;
        if best.as_ref().is_none_or(|(known, _)| worth < *known) {
            best = Some((worth, plan));
        }
    }
    Ok(best)
}

fn allowed(task: &Task<'_>, plan: &Plan) -> bool {
    let mut tiers = plan.placed().as_slice().iter().flat_map(|table| &table.tiers);
    tiers.all(|tier| task.allows_exchange(tier.exchange))
}
