//! Why tables are where they are: [`Explanation`].

use super::choice::Choice;
use super::price::{self, Priced};
use super::start::Given;
use super::state::beside;
use crate::{
    Estimate, Layout, Ledger, Mesh, Plan, Result, StepModel, TableId, TablePlan, Task, Tier,
};
use serde::Serialize;

/// What a plan costs, and for every table where it is and what else would cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Seconds of a step.
    pub step_seconds: f64,
    /// The tables, in order.
    pub tables: Vec<TableExplanation>,
    /// What a step costs, rank by rank.
    pub estimate: Estimate,
}

/// Where a table is and what else would cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableExplanation {
    /// Table name.
    pub table: String,
    /// Its placement, tier by tier.
    pub placement: String,
    /// The next best placements, all other tables as they are; at most two.
    pub others: Vec<Alternative>,
}

/// Another placement of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// The placement.
    pub placement: String,
    /// Seconds of a step with it; less than the plan's where the planner was not allowed to have
    /// it, had no room for it, or missed it.
    pub step_seconds: f64,
    /// Bytes that the fullest rank would have too much.
    pub short_bytes: u64,
}

/// Other placements that are told.
const OTHERS: usize = 2;

/// Explains any plan of a task.
///
/// # Errors
/// A plan of other tables or ranks; a table that no placement is allowed for.
pub fn explain(model: &StepModel, task: &Task<'_>, plan: &Plan) -> Result<Explanation> {
    let mut ledger = model.ledger(plan, task.workload, task.topology)?;
    let estimate = ledger.estimate();
    let mesh = main_mesh(plan)?;
    let options = price::of_mesh(task, &mut ledger, mesh, 1.0, true)?;
    let mut tables = Vec::with_capacity(options.len());
    for (id, placed) in plan.placed().iter() {
        let choices = &options[id.get() as usize];
        tables.push(TableExplanation {
            table: placed.table.clone(),
            placement: text(placed),
            others: others(task, &mut ledger, mesh, id, placed, choices)?,
        });
    }
    Ok(Explanation { step_seconds: estimate.step_seconds(), tables, estimate })
}

/// The mesh of the largest groups.
fn main_mesh(plan: &Plan) -> Result<Mesh> {
    let tiers = plan.placed().as_slice().iter().flat_map(|table| &table.tiers);
    let whole = Mesh::new(plan.world(), plan.world(), Layout::Strided)?;
    let cut = tiers.map(|tier| tier.mesh).filter(|mesh| mesh.group_ranks() > 1);
    Ok(cut.reduce(|a, b| if b.group_ranks() > a.group_ranks() { b } else { a }).unwrap_or(whole))
}

fn others(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    mesh: Mesh,
    id: TableId,
    placed: &TablePlan,
    choices: &[Priced],
) -> Result<Vec<Alternative>> {
    let table = &task.workload.tables().tables()[id];
    let (budget, room) = (task.budget().get(), task.table_budget().get() as f64);
    ledger.remove(id, placed)?;
    let positions = ledger.by_position(mesh, beside(task));
    let given = Given {
        busy: positions.iter().map(|at| at.0.tables()).collect(),
        stored: positions.iter().map(|at| at.1).collect(),
    };
    let here = text(placed);
    let mut others: Vec<Alternative> = Vec::new();
    for priced in choices {
        let units = given.least_busy(priced, room);
        let choice: &Choice = &priced.choice;
        let other = choice.plan(table, &units)?;
        let placement = text(&other);
        if placement == here || others.iter().any(|other| other.placement == placement) {
            continue;
        }
        ledger.add(id, &other)?;
        others.push(Alternative {
            placement,
            step_seconds: ledger.step_seconds(),
            short_bytes: ledger.peak_bytes().get().saturating_sub(budget),
        });
        ledger.remove(id, &other)?;
    }
    ledger.add(id, placed)?;
    others.sort_by(|a, b| {
        (a.short_bytes > 0)
            .cmp(&(b.short_bytes > 0))
            .then(a.step_seconds.total_cmp(&b.step_seconds))
    });
    others.truncate(OTHERS);
    Ok(others)
}

/// A placement in one line: `row_wise 8x1 reduce`, hot tiers first.
fn text(placed: &TablePlan) -> String {
    let tiers: Vec<String> = placed.tiers.iter().map(tier_text).collect();
    tiers.join(" + ")
}

fn tier_text(tier: &Tier) -> String {
    let parts = tier.blocks.iter().map(|block| block.owners.len()).max().unwrap_or(0);
    let (kind, blocks) = (tier.kind(), tier.blocks.len());
    match tier.mesh.group_ranks() {
        1 => format!("{kind} ({} rows)", tier.rows.rows()),
        _ if tier.mesh.replicas() > 1 => {
            format!("{kind} {parts}x{blocks} {} M={}", tier.exchange, tier.mesh.replicas())
        }
        _ => format!("{kind} {parts}x{blocks} {}", tier.exchange),
    }
}
