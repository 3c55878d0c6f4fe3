//! Plans that a run makes for itself: `--planner`.

use super::Options;
use crate::{Error, Result};
use emb_shard::{Plan, Tables, WorkloadSpec};

/// What a planner is told of a run, beside its options.
#[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "read where there are planners"))]
pub(super) struct Asked<'a> {
    /// The tables as plans see them.
    pub(super) tables: &'a Tables,
    /// Their measured look-ups.
    pub(super) workload: Option<&'a WorkloadSpec>,
    /// Samples of a step.
    pub(super) batch_size: usize,
    /// Ranks.
    pub(super) world: u32,
    /// Ranks of a node.
    pub(super) node_ranks: u32,
}

/// The plan of the planner called `name`, and what a person should know of it.
///
/// # Errors
/// An unknown name; options that say what the planner says; tables that do not fit.
pub(super) fn plan(
    options: &Options,
    name: &str,
    asked: &Asked<'_>,
) -> Result<(Plan, Vec<String>)> {
    let refuse = |what: String| Err(Error::Config(what));
    if options.plan.is_some() {
        return refuse("--plan and --planner both say where tables live: give one".into());
    }
    let own = options.table.iter().find(|one| one.placement.is_some() || one.replicas.is_some());
    if let Some(table) = own {
        return refuse(format!(
            "table {:?}: placement and replicas have no effect: the planner says them",
            table.name
        ));
    }
    if options.layout.is_some() && options.replicas.is_none() {
        return refuse("--layout has no effect without --replicas: the planner says it".into());
    }
    made::plan(options, name, asked)
}

#[cfg(not(feature = "cli"))]
mod made {
    use super::{Asked, Error, Options, Plan, Result};

    pub(super) fn plan(_: &Options, _: &str, _: &Asked<'_>) -> Result<(Plan, Vec<String>)> {
        Err(Error::Config("--planner: this build has no planners by name, feature cli".into()))
    }
}

#[cfg(feature = "cli")]
mod made {
    use super::{Asked, Error, Options, Plan, Result};
    use crate::config::placing::mesh;
    use crate::config::replicas::sync;
    use crate::config::words::SyncKind;
    use crate::planning::{Machines, make_plan, planner};
    use emb_shard::{
        Batch, Constraints, CostOptions, LevelSpec, Objective, PlanSpec, ReplicaSync, StepModel,
        Table, TableSpec, Task, Topology, TopologySpec, UnitRanks, ValueType, Workload,
        WorkloadSpec,
    };

    pub(super) fn plan(
        options: &Options,
        name: &str,
        asked: &Asked<'_>,
    ) -> Result<(Plan, Vec<String>)> {
        let model = StepModel { options: CostOptions::of_emb_train() };
        let planner = planner(name, model)?;
        let mut spec = spec(asked)?;
        options.wire.unwrap_or_default().price(&mut spec);
        let workload = Workload::new(spec)?;
        let topology = machines(options, asked)?;
        let groups = options.replicas.map(|_| mesh(options, asked.world)).transpose()?;
        let replicas = groups.map(|mesh| (mesh.replicas(), mesh.layout()));
        let constraints = Constraints { replicas, ..Constraints::default() };
        let objective = Objective::default();
        let task = Task { workload: &workload, topology: &topology, constraints, objective };
        let outcome = make_plan(planner.as_ref(), &task, &model)?;
        let notes = outcome.notes();
        Ok((with_sync(options, outcome.plan)?, notes))
    }

    /// The run as a workload: every row of a table alike where nothing was measured.
    fn spec(asked: &Asked<'_>) -> Result<WorkloadSpec> {
        let tables = asked.tables.tables().as_slice();
        let kind = |table: &Table| (table.element_bytes(), table.state());
        if let Some(other) = tables.iter().find(|table| kind(table) != kind(&tables[0])) {
            return Err(Error::Config(format!(
                "--planner: table {:?} has weights of another type, or other optimizer state, than \
                 {:?}: planners know one of each for all tables",
                other.name(),
                tables[0].name()
            )));
        }
        let mut spec = WorkloadSpec::new("run", Batch::Global(asked.batch_size as u64));
        // Both types of two bytes are the same to a planner.
        spec.rows = if tables[0].element_bytes() == 2 { ValueType::Bf16 } else { ValueType::F32 };
        spec.state = tables[0].state();
        spec.tables = tables.iter().map(|table| of_table(table, asked.workload)).collect();
        Ok(spec)
    }

    fn of_table(table: &Table, measured: Option<&WorkloadSpec>) -> TableSpec {
        let mut spec = TableSpec {
            pooling_factor: table.pooling_factor(),
            pooling: table.pooling(),
            features: Some(table.features().to_vec()),
            ..TableSpec::new(table.name(), table.rows(), table.dim())
        };
        let named = |all: &WorkloadSpec| {
            let found = all.tables.iter().find(|one| one.name == spec.name);
            found.map(|one| (one.clone(), all.access.clone()))
        };
        if let Some((found, access)) = measured.and_then(named) {
            spec.pooling_factor = found.pooling_factor;
            spec.access = found.access.or(Some(access));
            spec.hot = found.hot;
        }
        spec
    }

    /// Those of `--topology`, or the ranks of this process as threads, in nodes that differ by name
    /// alone.
    fn machines(options: &Options, asked: &Asked<'_>) -> Result<Topology> {
        let (world, node) = (asked.world, asked.node_ranks);
        if let Some(text) = &options.topology {
            let topology = Machines::read(text)?.all()?;
            if topology.world() != world {
                return Err(Error::Config(format!(
                    "--topology {text} has {} ranks, --world is {world}",
                    topology.world()
                )));
            }
            return Ok(topology);
        }
        let mut spec = TopologySpec::from(Topology::preset(&format!("cpu:{world}"))?);
        if node < world {
            let inner = LevelSpec { ranks: UnitRanks::Equal(node), ..spec.levels[0].clone() };
            spec.levels[0].name = "cluster".into();
            spec.levels.insert(0, inner);
        }
        Ok(Topology::new(spec)?)
    }

    /// The plan with the sync that options ask for: tiers that sum gradients keep doing so unless
    /// all tiers are to.
    fn with_sync(options: &Options, plan: Plan) -> Result<Plan> {
        let Some(asked) = sync(options)? else { return Ok(plan) };
        let sums = options.sync == Some(SyncKind::Gradients) || asked == ReplicaSync::Gradients;
        let mut tables = plan.placed().as_slice().to_vec();
        for tier in tables.iter_mut().flat_map(|placed| &mut placed.tiers) {
            let replicated = tier.mesh.replicas() > 1;
            if replicated && (sums || tier.sync != ReplicaSync::Gradients) {
                tier.sync = asked;
            }
        }
        let (world, node_ranks) = (plan.world(), plan.node_ranks());
        Ok(Plan::new(plan.tables(), PlanSpec { world, node_ranks, tables })?)
    }
}
