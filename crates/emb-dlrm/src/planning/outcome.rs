//! A plan that was made, and what is reported of it: [`Outcome`], [`PlanReport`].

use super::{Solver, WhatIf, in_words};
use crate::config::LayoutKind;
use crate::{Error, Result, sharded};
use emb_shard::{
    CostModel as _, EmbarkModel, Estimate, Explanation, HotRowsShort, Layout, Parts, Plan, Rank,
    RankEstimate, StepModel, Task, Tier,
};
use serde::Serialize;
use std::time::Instant;

/// A plan that fits, and what it costs.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The plan.
    pub plan: Plan,
    /// What a step of it costs by one [`StepModel`], whoever planned.
    pub estimate: Estimate,
    /// Seconds that planning took.
    pub planning_seconds: f64,
    /// Seconds that a step of no plan can be below, where the planner knows them.
    pub lower_bound_seconds: Option<f64>,
    /// Tables whose tiers were to have more hot rows than the workload knows, and were cut.
    pub hot_rows_short: Vec<HotRowsShort>,
}

/// What `emb plan --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanReport {
    /// Name of the workload.
    pub workload: String,
    /// Name of the topology.
    pub topology: String,
    /// Ranks.
    pub ranks: u32,
    /// Samples of a step, of all ranks together.
    pub batch: u64,
    /// Who planned.
    pub planner: String,
    /// Whether there is a plan that fits: true.
    pub feasible: bool,
    /// Seconds that planning took.
    pub planning_seconds: f64,
    /// Seconds of a step.
    pub step_seconds: f64,
    /// Seconds that a step of no plan can be below, where the planner knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound_seconds: Option<f64>,
    /// The seconds of a step by part, of the slowest rank in each.
    pub step_parts: Parts,
    /// Seconds of the tables on the busiest rank over those of the mean rank.
    pub max_over_mean: f64,
    /// Cost of the most expensive bucket under `EMBark`'s model.
    pub embark_cost: f64,
    /// Bytes that the busiest rank sends or receives outside its node in a step.
    pub inter_node_bytes_per_rank: f64,
    /// Bytes that the busiest rank sends or receives inside its node in a step.
    pub intra_node_bytes_per_rank: f64,
    /// Bytes of memory of the fullest rank.
    pub peak_bytes: RankBytes,
    /// Most replicas of a table that is not data-parallel.
    pub replicas: u32,
    /// The tables.
    pub tables: Vec<TableReport>,
    /// Tables whose tiers were to have more hot rows than the workload knows, and were cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hot_rows_short: Vec<HotRowsShort>,
    /// What other placements of each table would cost, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// What would be with other replicas and on fewer machines, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
}

/// Bytes of memory of a rank at the peak of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankBytes {
    /// All of them.
    pub max_rank: f64,
    /// Weights of tables.
    pub weights: f64,
    /// Their optimizer state.
    pub state: f64,
    /// What is sent and received.
    pub buffers: f64,
    /// The dense model.
    pub dense: f64,
}

/// Where a table lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// Name.
    pub name: String,
    /// Its placement, as [`in_words`] has it.
    pub placement: String,
}

/// Has `planner` make a plan, times it, gives tiers the hot rows that the workload knows, and checks by `model` that every rank has room for
/// tables, state, buffers and the dense model.
///
/// # Errors
/// [`Error::Infeasible`]: a table that does not fit, or a rank whose peak does not; [`Error::Config`]:
/// constraints that can't be met.
pub fn make_plan(planner: &dyn Solver, task: &Task<'_>, model: &StepModel) -> Result<Outcome> {
    let since = Instant::now();
    let (plan, lower_bound_seconds) = planner.solve(task).map_err(|error| match error {
        emb_shard::Error::DoesNotFit(_) => Error::Infeasible(error.to_string()),
        emb_shard::Error::Constraint { .. } | emb_shard::Error::TablesUnknown { .. } => {
            Error::Config(error.to_string())
        }
        other => other.into(),
    })?;
    let planning_seconds = since.elapsed().as_secs_f64();
    let (plan, hot_rows_short) = plan.with_hot_rows(task.workload)?;
    check_ways(planner.name(), task, &plan)?;
    let estimate = model.estimate(&plan, task.workload, task.topology)?;
    let reason = match too_full(&plan, &estimate, task.budget().get())? {
        None => too_large(&estimate, task.table_budget().get()),
        full => full,
    };
    match reason {
        None => {
            Ok(Outcome { plan, estimate, planning_seconds, lower_bound_seconds, hot_rows_short })
        }
        Some(reason) => Err(Error::Infeasible(reason)),
    }
}

/// Refuses ways to place tables that the task does not allow and the planner does not ask about.
fn check_ways(planner: &str, task: &Task<'_>, plan: &Plan) -> Result<()> {
    for (_, placed) in plan.placed().iter() {
        let refused = |tier: &&Tier| !task.allows_exchange(tier.exchange);
        let tiers = placed.tiers.len();
        let what = if let Some(tier) = placed.tiers.iter().find(refused) {
            format!("exchange {}", tier.exchange)
        } else if task.constraints.one_tier && (tiers > 1 || placed.order.is_some()) {
            format!("{tiers} tiers")
        } else {
            continue;
        };
        return Err(Error::Config(format!(
            "planner {planner:?} gives table {:?} {what}, which is not allowed: choose another \
             --planner",
            placed.table
        )));
    }
    Ok(())
}

/// Why a rank has more of tables than it may, if one has.
fn too_large(estimate: &Estimate, budget: u64) -> Option<String> {
    let stored = |rank: &RankEstimate| rank.peak.weights + rank.peak.state;
    let rank = estimate.ranks.iter().max_by(|a, b| stored(a).total_cmp(&stored(b)))?;
    let short = stored(rank) - budget as f64;
    (short > 0.0).then(|| {
        format!(
            "rank {} stores {:.0} bytes of weights and state, {budget} are allowed, short \
             {short:.0}: more ranks or more --table-bytes would help",
            rank.rank,
            stored(rank)
        )
    })
}

/// Why the fullest rank is too full, if it is.
fn too_full(plan: &Plan, estimate: &Estimate, budget: u64) -> Result<Option<String>> {
    let Some(rank) = estimate.fullest().filter(|rank| rank.peak.total() > budget as f64) else {
        return Ok(None);
    };
    let bytes = |shard: &emb_shard::Shard| {
        let table = &plan.tables().tables()[shard.table];
        (table.part_bytes(shard.rows, shard.columns.columns()).total(), table.name())
    };
    let shards = plan.shards_of(Rank::new(rank.rank))?;
    let largest = shards.map(|shard| bytes(&shard)).max_by_key(|(bytes, _)| *bytes);
    let (most, table) = largest.map_or((0, ""), |(bytes, name)| (bytes.get(), name));
    let peak = &rank.peak;
    Ok(Some(format!(
        "rank {} needs {:.0} bytes ({:.0} of weights, {:.0} of state, {:.0} of buffers, {:.0} of \
         the dense model), has {budget}, short {:.0}; its largest part is {most} bytes of table \
         {table:?}: more ranks or a smaller --batch-size would help",
        rank.rank,
        peak.total(),
        peak.weights,
        peak.state,
        peak.buffers,
        peak.dense,
        (peak.total() - budget as f64).ceil(),
    )))
}

impl Outcome {
    /// Most replicas of a table that is not data-parallel.
    pub fn replicas(&self) -> u32 {
        let tiers = self.plan.placed().iter().flat_map(|(_, placed)| &placed.tiers);
        let cut = tiers.filter(|tier| tier.mesh.group_ranks() > 1);
        cut.map(|tier| tier.mesh.replicas()).max().unwrap_or(1)
    }

    /// The layout of groups that have replicas; strided where there are none.
    pub fn layout(&self) -> LayoutKind {
        let mut tiers = self.plan.placed().iter().flat_map(|(_, placed)| &placed.tiers);
        if tiers.any(|tier| tier.mesh.layout() == Layout::Contiguous) {
            LayoutKind::Contiguous
        } else {
            LayoutKind::Strided
        }
    }

    /// Why `emb train` can't execute the plan, if it can't.
    pub fn not_for_training(&self) -> Option<String> {
        sharded::executable(&self.plan).err().map(|error| error.to_string())
    }

    /// What a person should know of its tiers, a line each: hot rows that nobody knows, and tiers
    /// that are right for ids in the order of frequency alone.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let more = |count: usize| match count {
            0 | 1 => String::new(),
            count => format!(" and {} more tables", count - 1),
        };
        if let Some(short) = self.hot_rows_short.first() {
            notes.push(format!(
                "table {:?}{}: tiers for {} hot rows are cut to the {} that are known; emb profile \
                 finds more in more data, or with a larger --hot-rows or --memory",
                short.table,
                more(self.hot_rows_short.len()),
                short.wanted,
                short.known
            ));
        }
        let placed = self.plan.placed().iter().map(|(_, placed)| placed);
        let open: Vec<_> =
            placed.filter(|one| one.tiers.len() > 1 && one.order.is_none()).collect();
        if let Some(first) = open.first() {
            notes.push(format!(
                "table {:?}{}: the first tiers have the first rows, which is right where ids are in \
                 the order of frequency; a --workload of emb profile says which rows are hot",
                first.table,
                more(open.len())
            ));
        }
        notes
    }

    /// Bytes of the fullest rank.
    pub fn peak_bytes(&self) -> RankBytes {
        let peak = self.estimate.fullest().map(|rank| rank.peak).unwrap_or_default();
        RankBytes {
            max_rank: peak.total(),
            weights: peak.weights,
            state: peak.state,
            buffers: peak.buffers,
            dense: peak.dense,
        }
    }

    /// What is reported of it.
    ///
    /// # Errors
    /// A batch that so many ranks cannot have.
    pub fn report(&self, planner: &str, task: &Task<'_>) -> Result<PlanReport> {
        let tables = self.plan.placed().iter().map(|(_, placed)| TableReport {
            name: placed.table.clone(),
            placement: in_words(placed),
        });
        let estimate = &self.estimate;
        let nodes = self.plan.world() / self.plan.node_ranks();
        Ok(PlanReport {
            workload: task.workload.name().to_owned(),
            topology: task.topology.name().to_owned(),
            ranks: self.plan.world(),
            batch: task.workload.batch().global(self.plan.world())?,
            planner: planner.to_owned(),
            feasible: true,
            planning_seconds: self.planning_seconds,
            step_seconds: estimate.step_seconds(),
            lower_bound_seconds: self.lower_bound_seconds,
            step_parts: estimate.parts,
            max_over_mean: estimate.max_over_mean(),
            embark_cost: EmbarkModel::published(nodes).cost(&self.plan, task.workload)?.max(),
            inter_node_bytes_per_rank: estimate.inter_node_bytes(),
            intra_node_bytes_per_rank: estimate.intra_node_bytes(),
            peak_bytes: self.peak_bytes(),
            replicas: self.replicas(),
            tables: tables.collect(),
            hot_rows_short: self.hot_rows_short.clone(),
            explanation: None,
            what_if: None,
        })
    }
}
