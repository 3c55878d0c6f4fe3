//! The bytes that a step of the plan should move: [`Prediction`].

use super::Levels;
use crate::Result;
use emb_shard::{
    CostModel as _, CostOptions, Exchange, LevelBytes, LevelSpec, Plan, RankEstimate, ReplicaSync,
    StepModel, Topology, TopologySpec, UnitRanks, Workload, WorkloadSpec,
};

/// Any rate: bytes do not depend on it.
const RATE: f64 = 1e9;

/// What the cost model expects of a step, a rank in the mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Prediction {
    pub(super) exchange: Option<Levels>,
    pub(super) sync: Option<Levels>,
    /// Look-ups of a sample, by table.
    pub(super) lookups: Vec<f64>,
}

impl Prediction {
    /// With the look-ups of `measured`, which speaks of every table of `spec`.
    pub(super) fn of_workload(
        plan: &Plan,
        mut spec: WorkloadSpec,
        measured: &WorkloadSpec,
    ) -> Result<Self> {
        for table in &mut spec.tables {
            let found = measured.tables.iter().find(|other| other.name == table.name);
            if let Some(found) = found {
                table.pooling_factor = found.pooling_factor;
                let access = found.access.as_ref().unwrap_or(&measured.access);
                table.access = Some(access.clone());
            }
        }
        Self::new(plan, spec)
    }

    /// With so many look-ups of each table a sample, of which rows is not known: only what does not
    /// depend on it is predicted.
    pub(super) fn of_lookups(plan: &Plan, mut spec: WorkloadSpec, lookups: &[f64]) -> Result<Self> {
        for (table, lookups) in spec.tables.iter_mut().zip(lookups) {
            let features = table.features.as_ref().map_or(1, Vec::len).max(1);
            table.pooling_factor = lookups / features as f64;
        }
        let all = Self::new(plan, spec)?;
        Ok(Self {
            exchange: all.exchange.filter(|_| any_rows_exchange(plan)),
            sync: all.sync.filter(|_| any_rows_sync(plan)),
            ..all
        })
    }

    fn new(plan: &Plan, spec: WorkloadSpec) -> Result<Self> {
        let workload = Workload::new(spec)?;
        let model = StepModel { options: CostOptions::of_emb_train() };
        let estimate = model.estimate(plan, &workload, &topology(plan)?)?;
        let mean = |of: fn(&RankEstimate) -> &[LevelBytes]| {
            let received = |level: usize| {
                let ranks = estimate.ranks.iter();
                let sum: f64 = ranks.map(|rank| of(rank)[level].received).sum();
                sum / estimate.ranks.len().max(1) as f64
            };
            Levels::new([received(0), received(1)])
        };
        let tables = workload.tables().tables().as_slice();
        Ok(Self {
            exchange: Some(mean(|rank| &rank.exchanged)),
            sync: Some(mean(|rank| &rank.synced)),
            lookups: tables.iter().map(emb_shard::Table::lookups).collect(),
        })
    }
}

/// Whether the bytes of the exchanges, summed over the ranks, are the same whichever rows are looked
/// up: ids and pooled sums are; distinct rows are not, nor what owners of cut columns tell each
/// other of them, nor how many look-ups each tier of a table has.
fn any_rows_exchange(plan: &Plan) -> bool {
    let counts = |exchange| !matches!(exchange, Exchange::Unique { .. });
    plan.exchange_classes().iter().all(|class| counts(class.exchange) && !class.columns_cut)
        && plan.placed().iter().all(|(_, placed)| placed.tiers.len() == 1)
}

/// The same of the syncs: all weights travel, or nothing does.
fn any_rows_sync(plan: &Plan) -> bool {
    plan.sync_classes().iter().all(|class| matches!(class.sync, ReplicaSync::Weights { .. }))
}

/// Nodes as the plan has them.
fn topology(plan: &Plan) -> Result<Topology> {
    let level = |name: &str, ranks| LevelSpec {
        name: name.to_owned(),
        ranks: UnitRanks::Equal(ranks),
        bandwidth: RATE,
        latency: 0.0,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    };
    Ok(Topology::new(TopologySpec {
        name: "this run".to_owned(),
        ranks: plan.world(),
        memory_bytes: u64::MAX,
        memory_bandwidth: RATE,
        flops: RATE,
        levels: vec![level("node", plan.node_ranks()), level("cluster", plan.world())],
    })?)
}
