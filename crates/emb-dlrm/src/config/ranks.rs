//! The ranks of a run and the plan of its tables: [`Ranks`].

use super::resolve::within;
use super::tables::{TablePlan, Tables};
use super::words::{LayoutKind, PlacementKind, ScalingKind, SyncKind};
use super::{Options, TableOptions, nearest};
use crate::{Error, Result, sharded};
use emb_kernels::{Dtype, Pooling};
use emb_optim::{Extent, GroupGradient, ReplicaRule, ReplicaScaling, RuleKind};
use emb_shard::{
    AutoOptions, Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, PlanFile, ReplicaSync,
    RowCut, StateBytes, TableId,
};
use std::num::NonZeroU32;
use std::time::Duration;

/// Largest world: every rank is a thread.
const MAX_RANKS: u32 = 1024;
/// Words that `--plan` takes beside files.
const PLANS: &[&str] = &["auto", "table-wise", "row-wise", "column-wise", "data-parallel"];

/// Many ranks, and where each table lives.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// Where every row and column lives, for which the tables' rules are scaled.
    pub plan: Plan,
    /// Ranks of a node.
    pub ranks_per_node: u32,
    /// How long a rank waits for its peers.
    pub timeout: Duration,
}

impl Ranks {
    /// Reads the options of ranks and gives the tables the replica rules of the plan; `None` for one
    /// process.
    ///
    /// # Errors
    /// Options that have no effect or contradict each other; a plan that can't be read or made.
    pub(super) fn from_options(options: &Options, tables: &mut Tables) -> Result<Option<Self>> {
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
        let timeout = options.timeout.unwrap_or(120.0);
        if !(0.001..=1e6).contains(&timeout) {
            return Err(Error::Config(format!("--timeout is {timeout}, valid: 0.001 to 1e6")));
        }
        let plan = make_plan(options, tables, world, world / nodes)?;
        refuse_unused(options, &plan)?;
        scale(options, tables, &plan)?;
        check(&plan, tables)?;
        Ok(Some(Self {
            plan,
            ranks_per_node: world / nodes,
            timeout: Duration::from_secs_f64(timeout),
        }))
    }

    /// Ranks in all.
    pub fn world(&self) -> usize {
        self.plan.world() as usize
    }
}

/// Threads of each rank.
pub(super) fn threads(options: &Options) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let world = options.world.unwrap_or(1).max(1) as usize;
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
        ("replicas", options.replicas.is_some_and(|replicas| replicas != 1)),
        ("layout", options.layout.is_some()),
        ("sync", options.sync.is_some()),
        ("sync-every", options.sync_every.is_some()),
        ("replica-scaling", options.replica_scaling.is_some()),
        ("timeout", options.timeout.is_some()),
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

/// Refuses what was said of replicas and plays no part in the plan.
fn refuse_unused(options: &Options, plan: &Plan) -> Result<()> {
    let tiers = || plan.placed().iter().flat_map(|(_, placed)| &placed.tiers);
    let replicated = || tiers().filter(|tier| tier.mesh.replicas() > 1);
    let sums = replicated().any(|tier| tier.sync == ReplicaSync::Gradients);
    let averages = replicated().any(|tier| tier.sync != ReplicaSync::Gradients);
    let explicit = options.sync == Some(SyncKind::Gradients);
    let exact = options.replica_scaling == Some(ScalingKind::Exact);
    if exact && !sums {
        return Err(Error::Config(
            "--replica-scaling exact has no effect: no table has replicas that sum gradients"
                .into(),
        ));
    }
    let asked = [
        ("sync-every", options.sync_every.is_some()),
        // What goes with summed gradients is said where rules are chosen.
        ("replica-scaling", options.replica_scaling.is_some() && !exact && !(sums && explicit)),
        ("sync weights", options.sync == Some(SyncKind::Weights)),
    ];
    if let Some((name, _)) = asked.iter().find(|(_, given)| *given && !averages) {
        return Err(Error::Config(format!(
            "--{name} has no effect: no table has replicas that average weights (data-parallel ones \
             sum gradients: give --sync weights, and a --plan other than auto)"
        )));
    }
    if options.plan.as_deref() == Some("data-parallel")
        && tiers().all(|tier| tier.mesh.group_ranks() == 1)
    {
        let group = [
            ("replicas", options.replicas.is_some_and(|replicas| replicas != plan.world())),
            ("layout", options.layout.is_some()),
        ];
        if let Some((name, _)) = group.iter().find(|(_, given)| *given) {
            return Err(Error::Config(format!(
                "--{name} has no effect: with --plan data-parallel every rank has every table"
            )));
        }
    }
    Ok(())
}

fn make_plan(options: &Options, tables: &Tables, world: u32, node_ranks: u32) -> Result<Plan> {
    let word = options.plan.as_deref().unwrap_or("auto");
    let own = |table: &TableOptions| table.placement.is_some() || table.replicas.is_some();
    let planned = planned_tables(tables, replica_guess(options))?;
    if !PLANS.contains(&word) {
        let given = [
            ("replicas", options.replicas.is_some()),
            ("layout", options.layout.is_some()),
            ("sync", options.sync.is_some()),
            ("sync-every", options.sync_every.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Error::Config(format!("--{name} has no effect: the plan file says it")));
        }
        if let Some(table) = options.table.iter().find(|table| own(table)) {
            return Err(Error::Config(format!(
                "table {:?}: placement and replicas have no effect: the plan file says them",
                table.name
            )));
        }
        return from_file(word, &planned, world);
    }
    if options.plan.is_some()
        && options.table.iter().all(|table| table.placement.is_some())
        && !options.table.is_empty()
    {
        return Err(Error::Config(
            "--plan has no effect: every [[table]] has its own placement".into(),
        ));
    }
    let mesh = mesh(options, world)?;
    let sync = sync(options)?;
    let all = |placement: Placement, group: Option<(u32, Layout)>| {
        let group_ranks = group.map_or(mesh.group_ranks(), |(ranks, _)| ranks);
        let sync = match placement {
            // Data-parallel tables have a default of their own.
            Placement::DataParallel => options.sync.and(sync),
            _ if group_ranks == world => None,
            _ => sync,
        };
        PlaceOptions { placement, group, exchange: None, sync }
    };
    let default = word.parse().ok().map_or(Placement::TableWise { owner: None }, placement);
    let mut builder = PlanBuilder::new(mesh).node_ranks(node_ranks).all(all(default, None));
    for table in options.table.iter().filter(|table| own(table)) {
        let group = table.replicas.map(|replicas| {
            if replicas == 0 || !world.is_multiple_of(replicas) {
                return Err(Error::Config(format!(
                    "table {:?}: replicas is {replicas}, {world} ranks are not shared out evenly",
                    table.name
                )));
            }
            Ok((world / replicas, mesh.layout()))
        });
        let placement = table.placement.map_or(default, placement);
        builder = builder.table(&table.name, all(placement, group.transpose()?));
    }
    if word == "auto" && !options.table.iter().any(own) {
        return Ok(builder.auto(&planned, AutoOptions::default())?);
    }
    Ok(builder.build(&planned)?)
}

fn placement(kind: PlacementKind) -> Placement {
    match kind {
        PlacementKind::TableWise => Placement::TableWise { owner: None },
        PlacementKind::RowWise => Placement::RowWise { cut: RowCut::Even },
        PlacementKind::ColumnWise => Placement::ColumnWise { parts: None },
        PlacementKind::DataParallel => Placement::DataParallel,
    }
}

fn mesh(options: &Options, world: u32) -> Result<Mesh> {
    let replicas = options.replicas.unwrap_or(1);
    if replicas == 0 || !world.is_multiple_of(replicas) {
        return Err(Error::Config(format!(
            "--replicas is {replicas}: {world} ranks are not shared out evenly"
        )));
    }
    let layout = match options.layout.unwrap_or(LayoutKind::Strided) {
        LayoutKind::Strided => Layout::Strided,
        LayoutKind::Contiguous => Layout::Contiguous,
    };
    Ok(Mesh::new(world, world / replicas, layout)?)
}

/// The sync of tables with replicas.
fn sync(options: &Options) -> Result<Option<ReplicaSync>> {
    let Some(every) = NonZeroU32::new(options.sync_every.unwrap_or(1)) else {
        return Err(Error::Config("--sync-every is 0, valid: 1 or more".into()));
    };
    let exact = options.replica_scaling == Some(ScalingKind::Exact);
    let replicated = options.replicas.is_some_and(|replicas| replicas > 1)
        || options.plan.as_deref() == Some("data-parallel")
        || options.table.iter().any(|table| {
            table.replicas.is_some_and(|replicas| replicas > 1)
                || table.placement == Some(PlacementKind::DataParallel)
        });
    if !replicated {
        let given = [
            ("layout", options.layout.is_some()),
            ("sync", options.sync.is_some()),
            ("sync-every", options.sync_every.is_some()),
            ("replica-scaling", options.replica_scaling.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            None => Ok(None),
            Some((name, _)) => Err(Error::Config(format!(
                "--{name} has no effect without replicas: give --replicas 2 or more"
            ))),
        };
    }
    let kind = options.sync.unwrap_or(if exact { SyncKind::Gradients } else { SyncKind::Weights });
    match (kind, exact) {
        (SyncKind::Weights, true) => Err(Error::Config(
            "--replica-scaling exact sums gradients: give --sync gradients, or no --sync".into(),
        )),
        (SyncKind::Weights, false) => Ok(Some(ReplicaSync::TouchedRows { every })),
        (SyncKind::Gradients, _) if options.sync_every.is_some() => Err(Error::Config(
            "--sync-every has no effect: gradients are summed in every step".into(),
        )),
        (SyncKind::Gradients, _) => Ok(Some(ReplicaSync::Gradients)),
    }
}

fn from_file(path: &str, tables: &emb_shard::Tables, world: u32) -> Result<Plan> {
    let file = std::path::Path::new(path);
    if let Some(near) = nearest::nearest(path, PLANS).filter(|_| !file.exists()) {
        return Err(Error::Config(format!(
            "--plan: there is no file {path}; did you mean {near}?"
        )));
    }
    let text = std::fs::read_to_string(file).map_err(Error::io("reading", file))?;
    let read: PlanFile = serde_json::from_str(&text)
        .map_err(|error| Error::Config(format!("--plan {path}: {error}")))?;
    let plan =
        read.into_plan(tables).map_err(|error| Error::Config(format!("--plan {path}: {error}")))?;
    if plan.world() != world {
        return Err(Error::Config(format!(
            "--plan {path} is for {} ranks, --world is {world}",
            plan.world()
        )));
    }
    Ok(plan)
}

/// The replica rule that state is planned for.
fn replica_guess(options: &Options) -> Option<ScalingKind> {
    options.replica_scaling.filter(|&rule| rule == ScalingKind::History)
}

/// The tables as a plan sees them.
fn planned_tables(tables: &Tables, rule: Option<ScalingKind>) -> Result<emb_shard::Tables> {
    let one = |(number, table): (usize, &TablePlan)| {
        let spec = &table.spec;
        let features: Vec<_> =
            tables.features.iter().filter(|feature| feature.table == number).collect();
        let mut state = StateBytes::default();
        let scaled = match rule {
            Some(_) if adapts(spec.optimizer.kind()) => with_rule(table, ReplicaRule::History, 2)?,
            _ => spec.optimizer,
        };
        for slot in scaled.slots() {
            match slot.extent {
                Extent::Row => state.per_row += 4,
                Extent::Element => state.per_element += 4,
            }
        }
        let mean = features.first().is_some_and(|feature| feature.pooling == Pooling::Mean);
        let options = emb_shard::TableOptions {
            element_bytes: match spec.dtype {
                Dtype::F32 => 4,
                Dtype::F16 | Dtype::Bf16 => 2,
            },
            state,
            pooling: if mean { emb_shard::Pooling::Mean } else { emb_shard::Pooling::Sum },
            pooling_factor: features.iter().map(|feature| feature.bag).sum::<f64>()
                / features.len().max(1) as f64,
            features: Some(features.iter().map(|feature| feature.name.clone()).collect()),
        };
        Ok(emb_shard::Table::new(&spec.name, spec.rows, spec.dim, options)?)
    };
    let tables = tables.tables.iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
    Ok(emb_shard::Tables::new(tables)?)
}

fn adapts(kind: RuleKind) -> bool {
    kind != RuleKind::Sgd
}

/// Gives every table the replica rule that goes with its place in the plan.
fn scale(options: &Options, tables: &mut Tables, plan: &Plan) -> Result<()> {
    for (number, table) in (0..).zip(&mut tables.tables) {
        let tier = plan.tier(TableId::new(number), 0)?;
        let replicas = tier.mesh.replicas();
        if replicas == 1 {
            continue;
        }
        let adapts = adapts(table.spec.optimizer.kind());
        let rule = match (tier.sync, options.replica_scaling) {
            (ReplicaSync::Gradients, _) | (_, Some(ScalingKind::Exact)) => ReplicaRule::Exact,
            (_, None) if adapts => ReplicaRule::Moment,
            (_, None | Some(ScalingKind::None)) => ReplicaRule::None,
            (_, Some(ScalingKind::Moment)) => ReplicaRule::Moment,
            (_, Some(ScalingKind::Lr)) => ReplicaRule::Lr,
            (_, Some(ScalingKind::History)) => ReplicaRule::History,
        };
        if let (ReplicaRule::Exact, Some(asked)) = (rule, options.replica_scaling)
            && asked != ScalingKind::Exact
            && options.sync == Some(SyncKind::Gradients)
        {
            return Err(Error::Config(format!(
                "--replica-scaling {asked} has no effect: --sync gradients is exact"
            )));
        }
        table.spec.optimizer = with_rule(table, rule, replicas)?;
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

fn with_rule(table: &TablePlan, rule: ReplicaRule, replicas: u32) -> Result<emb_optim::Optimizer> {
    let mut config = *table.spec.optimizer.config();
    config.replica = ReplicaScaling::new(rule, replicas);
    if rule == ReplicaRule::Lr && !adapts(config.kind) {
        // With means SGD needs no other rate; M times the rate belongs to sums.
        config.replica.gradients = GroupGradient::Sum;
    }
    config.build().map_err(|error| Error::Config(format!("table {:?}: {error}", table.spec.name)))
}
