//! Tiers by frequency: [`FlexShardPlanner`], and the [`TierSolver`] behind it.

mod given;
mod kind;
mod place;
mod solver;
mod table;

pub use kind::{TierBytes, TierKind};
pub use solver::{TierSolution, TierSolver};
pub use table::{TieredTable, Travel};

use super::{Planner, Task};
use crate::{Duplicates, Error, Plan, Result, StepModel};
use given::{Cuts, Given, Tiered};

/// Cuts every table by the frequency of its rows: the hottest on every rank, the next once in
/// every node, the rest over all ranks (`FlexShard`, arXiv 2301.02959).
///
/// How many rows each tier has is what [`TierSolver`] finds for all tables at once under
/// [`Task::budget`], less the dense model. Tables that tiers do not pay for stay row-wise.
///
/// **Order of rows.** Tiers are cut in the order of the table
/// ([`TablePlan::order`](crate::TablePlan::order) is `None`): as it is, the plan is for ids that
/// were put in the order of frequency when data was made ready, so that a tier is a comparison
/// with two numbers and needs no table in memory. For any other data
/// [`Plan::with_hot_rows`] fills the tiers with the rows that were measured to be hot. Inside a tier rows are dealt out in turn
/// ([`RowMap::modulo`](crate::RowMap::modulo)), which spreads the warm ones.
///
/// **Exactness.** Gradients are summed over replicas before the update
/// ([`ReplicaSync::Gradients`](crate::ReplicaSync::Gradients)), so that a step equals that of one
/// process.
///
/// **Nodes.** One node has no tier in it. Where nodes differ, they are cut into equal ones
/// ([`Task::node_ranks`]), inside which links are those inside a node all the same; single ranks
/// have no such tier either.
///
/// **Pooled tables** exchange sums, of which one travels for every bag and every rank with a part
/// of the table. Hot rows elsewhere do not spare them, so such a table is one tier, the cheapest.
/// With [`Duplicates::PerRank`] its rows travel and it is cut like others.
///
/// ```
/// use emb_shard::{
///     Access, Batch, FlexShardPlanner, Planner, Pooling, TableId, TableSpec, Task, Topology,
///     Workload, WorkloadSpec,
/// };
///
/// let mut spec = WorkloadSpec::new("clicks", Batch::PerRank(1024));
/// spec.access = Access::Zipf { exponent: 1.05 };
/// let sequence = TableSpec { pooling: Pooling::None, ..TableSpec::new("seen", 10_000_000, 64) };
/// spec.tables = vec![TableSpec { pooling_factor: 100.0, ..sequence }];
/// let workload = Workload::new(spec)?;
/// let topology = Topology::preset("dgx-h100:16")?;
///
/// let plan = FlexShardPlanner::default().plan(&Task::new(&workload, &topology))?;
/// let tiers = &plan.placed()[TableId::new(0)].tiers;
/// let groups: Vec<u32> = tiers.iter().map(|tier| tier.mesh.group_ranks()).collect();
/// assert_eq!(groups, [1, 8, 128]);
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlexShardPlanner {
    /// Whether a row that is asked for twice travels twice; as published, it does.
    /// [`Duplicates::PerNode`] is refused: rows are then cheapest without tiers.
    pub duplicates: Duplicates,
    /// Most that the owner of a hot row may be asked for beyond the mean, as a part of it.
    ///
    /// The owner of a row that look-ups ask for with probability `p` gets `p W` of the mean of `W`
    /// ranks for it alone, so rows with `p > imbalance / W` are on every rank in any case. There
    /// are at most `W / imbalance` of them in a table. 0 to leave them to the solver.
    pub imbalance: f64,
}

impl Default for FlexShardPlanner {
    /// Duplicates travel; a row may add a tenth of the mean to its owner.
    fn default() -> Self {
        Self { duplicates: Duplicates::Kept, imbalance: 0.1 }
    }
}

/// Tries to meet the budget with the peak that the cost model finds. The first starts lower by what
/// it was over, the next by twice as much, and so on.
const TRIES: u32 = 8;

impl Planner for FlexShardPlanner {
    /// `flexshard`, and `flexshard-unique` where a row that a rank asks for twice travels once.
    fn name(&self) -> &'static str {
        if self.duplicates == Duplicates::Kept { "flexshard" } else { "flexshard-unique" }
    }

    /// # Errors
    /// A table that does not fit, with its exchange; `kinds` that allow neither `row_wise` nor
    /// `data_parallel`; an imbalance that is negative or not finite, duplicates per node.
    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        self.check()?;
        let given = Given::new(self, task)?;
        let tables = given.tables();
        let room = given.room()?;
        let mut budget = room;
        for doubled in 0..TRIES {
            let Some(cuts) = given.cuts(&tables, budget)? else { break };
            let plan = given.place(&cuts)?;
            let over = over(&plan, task)?;
            if over == 0.0 {
                return rated(&given, &tables, (cuts, plan), budget);
            }
            budget -= over * f64::from(1 << doubled);
        }
        let (cuts, needs) = given.leanest(&tables)?;
        let plan = given.place(&cuts)?;
        let over = over(&plan, task)?;
        if over == 0.0 { Ok(plan) } else { Err(given.does_not_fit(&cuts, &needs, room, over)) }
    }
}

impl FlexShardPlanner {
    fn check(&self) -> Result<()> {
        let refuse = |what| Err(Error::Constraint { what });
        if !(self.imbalance.is_finite() && self.imbalance >= 0.0) {
            let imbalance = self.imbalance;
            return refuse(format!("an imbalance of {imbalance}: must be finite and at least 0"));
        }
        if self.duplicates == Duplicates::PerNode {
            return refuse("flexshard with duplicates per node: kept or per rank are known".into());
        }
        Ok(())
    }
}

/// Times that tiers are cut anew for the bytes that the tiers before have sent.
const CUT_ANEW: u32 = 3;

/// The fastest plan among this one and those that come of it where links are as fast as they are in
/// messages of its bytes. How fast that is nobody knows before there are tiers, and the solver takes
/// a byte to cost the same in messages of any size.
fn rated(
    given: &Given<'_>,
    tables: &Tiered<'_>,
    (mut cuts, mut best): (Cuts, Plan),
    budget: f64,
) -> Result<Plan> {
    let Task { workload, topology, .. } = given.task;
    let seconds = |plan: &Plan| -> Result<f64> {
        Ok(StepModel::default().ledger(plan, workload, topology)?.step_seconds())
    };
    for _ in 0..CUT_ANEW {
        let Some(again) = given.cut_anew(tables, &cuts, budget)? else { break };
        let plan = given.place(&again)?;
        if over(&plan, given.task)? == 0.0 && seconds(&plan)? < seconds(&best)? {
            best = plan;
        }
        cuts = again;
    }
    Ok(best)
}

/// Bytes that the fullest rank has too many as the cost model counts them: hot owners have more in
/// their buffers than the mean.
fn over(plan: &Plan, task: &Task<'_>) -> Result<f64> {
    let peak = StepModel::default().ledger(plan, task.workload, task.topology)?.peak_bytes();
    Ok(peak.get().saturating_sub(task.budget().get()) as f64)
}
