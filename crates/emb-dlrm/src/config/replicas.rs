//! How replicas are kept equal, and what that asks of the tables' rules.

use super::Options;
use super::tables::{TablePlan, Tables};
use super::words::{PlacementKind, ScalingKind, SyncKind};
use crate::{Error, Result};
use emb_optim::{GroupGradient, Optimizer, ReplicaRule, ReplicaScaling, RuleKind};
use emb_shard::{Plan, ReplicaSync, TableId, Tier};
use std::num::NonZeroU32;

/// The sync of tables with replicas; `None` for the default of their placement.
///
/// # Errors
/// Options that have no effect or contradict each other.
pub(super) fn sync(options: &Options) -> Result<Option<ReplicaSync>> {
    let Some(every) = NonZeroU32::new(options.sync_every.unwrap_or(1)) else {
        return Err(Error::Config("--sync-every is 0, valid: 1 or more".into()));
    };
    let exact = options.replica_scaling == Some(ScalingKind::Exact);
    let replicated = options.replicas.is_some_and(|replicas| replicas > 1)
        || options.plan.as_deref() == Some("data-parallel")
        || options.planner.is_some()
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
    let averages = SyncKind::TouchedRows;
    let kind = options.sync.unwrap_or(if exact { SyncKind::Gradients } else { averages });
    match (kind, exact) {
        (SyncKind::Weights | SyncKind::TouchedRows, true) => Err(Error::Config(
            "--replica-scaling exact sums gradients: give --sync gradients, or no --sync".into(),
        )),
        (SyncKind::Weights, false) => Ok(Some(ReplicaSync::Weights { every })),
        (SyncKind::TouchedRows, false) => Ok(Some(ReplicaSync::TouchedRows { every })),
        (SyncKind::Gradients, _) if options.sync_every.is_some() => Err(Error::Config(
            "--sync-every has no effect: gradients are summed in every step".into(),
        )),
        (SyncKind::Gradients, _) => Ok(Some(ReplicaSync::Gradients)),
    }
}

/// Refuses what was said of replicas and plays no part in the plan.
///
/// # Errors
/// The option, by name.
pub(super) fn refuse_unused(options: &Options, plan: &Plan) -> Result<()> {
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
        ("sync touched-rows", options.sync == Some(SyncKind::TouchedRows)),
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

/// The rule of a table with all the state that it may get once the plan is known.
///
/// # Errors
/// A rule that the option does not go with.
pub(super) fn history(options: &Options, table: &TablePlan) -> Result<Optimizer> {
    let optimizer = table.spec.optimizer;
    if options.replica_scaling == Some(ScalingKind::History) && adapts(optimizer.kind()) {
        return with_rule(table, ReplicaRule::History, 2);
    }
    Ok(optimizer)
}

fn adapts(kind: RuleKind) -> bool {
    kind != RuleKind::Sgd
}

/// Gives every table the replica rule that goes with its place in the plan.
///
/// # Errors
/// A rule that a table's optimizer does not go with, by table.
pub(super) fn scale(options: &Options, tables: &mut Tables, plan: &Plan) -> Result<()> {
    for (number, table) in (0..).zip(&mut tables.tables) {
        let Some(tier) = deciding(&plan.placed().get(TableId::new(number))?.tiers) else {
            continue;
        };
        let replicas = tier.mesh.replicas();
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

/// The tier that the rule of a table follows, of those with replicas: one that averages weights where
/// there is one, for summed gradients are exact under any number; of several the one with most
/// replicas.
fn deciding(tiers: &[Tier]) -> Option<&Tier> {
    let replicated = tiers.iter().filter(|tier| tier.mesh.replicas() > 1);
    replicated.max_by_key(|tier| (tier.sync != ReplicaSync::Gradients, tier.mesh.replicas()))
}

fn with_rule(table: &TablePlan, rule: ReplicaRule, replicas: u32) -> Result<Optimizer> {
    let mut config = *table.spec.optimizer.config();
    config.replica = ReplicaScaling::new(rule, replicas);
    if rule == ReplicaRule::Lr && !adapts(config.kind) {
        // With means SGD needs no other rate; M times the rate belongs to sums.
        config.replica.gradients = GroupGradient::Sum;
    }
    config.build().map_err(|error| Error::Config(format!("table {:?}: {error}", table.spec.name)))
}
