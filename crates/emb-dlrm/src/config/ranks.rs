//! The ranks of a run and the plan of its tables: [`Ranks`].

use super::placing::{make_plan, planned_tables};
use super::planner::{self, Asked};
use super::replicas::{refuse_unused, scale};
use super::resolve::within;
use super::tables::Tables;
use super::words::{IdWireKind, TransportKind};
use super::{Options, TableOptions};
use crate::sharded::{IdWire, Wires};
use crate::{Error, Result, sharded};
use emb_shard::{Plan, WorkloadSpec};
use std::time::Duration;

/// Largest world.
const MAX_RANKS: u32 = 1024;

/// Many ranks, and where each table lives.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// Where every row and column lives, for which the tables' rules are scaled.
    pub plan: Plan,
    /// Ranks of a node.
    pub ranks_per_node: u32,
    /// How long a rank waits for its peers.
    pub timeout: Duration,
    /// How ids travel to the owners of rows.
    pub id_wire: IdWire,
    /// How rows, gradients and weights travel.
    pub wires: Wires,
    /// What a person should know of a plan that was made for this run.
    pub notes: Vec<String>,
}

impl Ranks {
    /// Reads the options of ranks and gives the tables the replica rules of the plan; `None` for one
    /// process.
    ///
    /// # Errors
    /// Options that have no effect or contradict each other; a plan that can't be read or made.
    pub(super) fn from_options(
        options: &Options,
        tables: &mut Tables,
        batch_size: usize,
        workload: Option<&WorkloadSpec>,
    ) -> Result<Option<Self>> {
        let world = options.world.unwrap_or(1);
        if !(1..=MAX_RANKS).contains(&world) {
            return Err(Error::Config(format!("--world is {world}, valid: 1 to {MAX_RANKS}")));
        }
        if world == 1 {
            refuse_without_ranks(options)?;
            return Ok(None);
        }
        if options.threads.is_some() {
            return Err(Error::Config("--threads is for one rank: give --threads-per-rank".into()));
        }
        let nodes = options.nodes.unwrap_or(1);
        if nodes == 0 || !world.is_multiple_of(nodes) {
            return Err(Error::Config(format!(
                "--nodes is {nodes}: {world} ranks are not shared out evenly"
            )));
        }
        let timeout = timeout(options)?;
        if options.topology.is_some() && options.planner.is_none() {
            return Err(Error::Config("--topology has no effect: give --planner NAME".into()));
        }
        let node_ranks = world / nodes;
        let (plan, notes) = match &options.planner {
            None => (make_plan(options, tables, world, node_ranks)?, Vec::new()),
            Some(name) => {
                let planned = planned_tables(options, tables)?;
                let asked = Asked { tables: &planned, workload, batch_size, world, node_ranks };
                planner::plan(options, name, &asked)?
            }
        };
        let ranks_per_node = plan.node_ranks();
        if options.nodes.is_some() && ranks_per_node != world / nodes {
            return Err(Error::Config(format!(
                "--nodes is {nodes}, the plan is for {ranks_per_node} ranks a node"
            )));
        }
        refuse_unused(options, &plan)?;
        scale(options, tables, &plan)?;
        check(&plan, tables)?;
        let id_wire = match options.id_wire {
            Some(IdWireKind::Packed) => IdWire::Packed,
            Some(IdWireKind::Plain) | None => IdWire::Plain,
        };
        let wire = options.wire.unwrap_or_default();
        wire.refuse_unused(&plan)?;
        let wires = wire.wires(batch_size)?;
        Ok(Some(Self { plan, ranks_per_node, timeout, id_wire, wires, notes }))
    }

    /// Ranks in all.
    pub fn world(&self) -> usize {
        self.plan.world() as usize
    }
}

/// How long a rank waits for its peers.
///
/// # Errors
/// No sensible time.
pub(crate) fn timeout(options: &Options) -> Result<Duration> {
    let timeout = options.timeout.unwrap_or(120.0);
    if !(0.001..=1e6).contains(&timeout) {
        return Err(Error::Config(format!("--timeout is {timeout}, valid: 0.001 to 1e6")));
    }
    Ok(Duration::from_secs_f64(timeout))
}

/// Threads of each rank; `local` are the ranks of this host where they are processes.
pub(super) fn threads(options: &Options, local: Option<usize>) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let world = local.unwrap_or(options.world.unwrap_or(1) as usize).max(1);
    match (options.threads, options.threads_per_rank) {
        (Some(_), Some(_)) => Err(Error::Config(
            "--threads and --threads-per-rank both say how many threads compute: give one".into(),
        )),
        (Some(threads), None) => within("threads", threads, 1024),
        (None, Some(threads)) => within("threads-per-rank", threads, 1024),
        (None, None) => Ok((cores / world).max(1)),
    }
}

fn refuse_without_ranks(options: &Options) -> Result<()> {
    let given = [
        ("nodes", options.nodes.is_some_and(|nodes| nodes != 1)),
        ("plan", options.plan.is_some()),
        ("planner", options.planner.is_some()),
        ("topology", options.topology.is_some()),
        ("replicas", options.replicas.is_some_and(|replicas| replicas != 1)),
        ("layout", options.layout.is_some()),
        ("sync", options.sync.is_some()),
        ("sync-every", options.sync_every.is_some()),
        ("id-wire", options.id_wire.is_some()),
        ("wire", options.wire.is_some()),
        ("transport", options.transport.is_some_and(|kind| kind != TransportKind::Local)),
        ("replica-scaling", options.replica_scaling.is_some()),
        ("check-replicas", options.check_replicas == Some(true)),
        ("timeout", options.timeout.is_some()),
        ("health", options.health.is_some_and(|every| every > 0)),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        return Err(Error::Config(format!(
            "--{name} has no effect on one rank: give --world 2 or more"
        )));
    }
    let placed = |table: &&TableOptions| table.placement.is_some() || table.replicas.is_some();
    if let Some(table) = options.table.iter().find(placed) {
        return Err(Error::Config(format!(
            "table {:?}: placement and replicas have no effect on one rank: give --world 2 or more",
            table.name
        )));
    }
    Ok(())
}

/// Refuses what of the plan can't be executed.
fn check(plan: &Plan, tables: &Tables) -> Result<()> {
    let specs: Vec<_> = tables.tables.iter().map(|table| table.spec.clone()).collect();
    let world = plan.world() as usize;
    sharded::check(plan, &specs, &tables.features(), specs.len(), world)
        .map_err(|error| Error::Config(format!("--plan: {error}")))
}
