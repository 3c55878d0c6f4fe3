//! Which plans, tables and features can be executed; everything else is refused by name.

use super::error::{Error, Result, refuse};
use emb_kernels::{Feature, Pooling, TableSpec};
use emb_optim::{GroupGradient, ReplicaRule};
use emb_shard::{Exchange, Plan, ReplicaSync, TablePlan, Tier};

/// Checks a plan against the tables and features that it is to place.
///
/// # Errors
/// By table name, what can't be executed.
pub(crate) fn check(
    plan: &Plan,
    specs: &[TableSpec],
    features: &[Feature],
    rates: usize,
    world: usize,
) -> Result<()> {
    if plan.world() as usize != world {
        let planned = plan.world();
        return Err(Error::Mismatch(format!("the plan is for {planned} ranks, there are {world}")));
    }
    let tables = plan.tables().tables().as_slice();
    if tables.len() != specs.len() || rates != specs.len() {
        return Err(Error::Mismatch(format!(
            "the plan has {} tables, there are {} and {rates} learning rates",
            tables.len(),
            specs.len()
        )));
    }
    for (table, spec) in tables.iter().zip(specs) {
        let (rows, dim) = (table.rows(), table.dim());
        if (table.name(), rows, dim) != (spec.name.as_str(), spec.rows, spec.dim) {
            return refuse(
                &spec.name,
                format!(
                    "{} rows of {}, but the plan has {:?} with {rows} rows of {dim} here",
                    spec.rows,
                    spec.dim,
                    table.name()
                ),
            );
        }
        if spec.window != emb_kernels::Window::whole(spec.dim) {
            return refuse(&spec.name, "it is a part of a table; whole tables are cut by the plan");
        }
    }
    for ((_, placed), spec) in plan.placed().iter().zip(specs) {
        check_placed(placed)?;
        for tier in &placed.tiers {
            check_optimizer(spec, placed, tier)?;
        }
    }
    for feature in features.iter().filter(|feature| feature.pooling == Pooling::None) {
        let Some(placed) = plan.placed().as_slice().get(feature.table) else { continue };
        let pools = |tier: &&Tier| matches!(tier.exchange, Exchange::Reduce { .. });
        if let Some(tier) = placed.tiers.iter().find(pools) {
            let what = format!(
                "feature {:?} isn't pooled, exchange {} pools: unique or rows is needed",
                feature.name, tier.exchange
            );
            return refuse(&placed.table, what);
        }
    }
    Ok(())
}

/// Checks that every table lives in a way that can be executed.
///
/// # Errors
/// By table name, what can't be.
#[cfg(feature = "cli")]
pub(crate) fn executable(plan: &Plan) -> Result<()> {
    plan.placed().as_slice().iter().try_for_each(check_placed)
}

fn check_placed(placed: &TablePlan) -> Result<()> {
    for tier in &placed.tiers {
        if tier.sync == ReplicaSync::FullyShardedReplicas {
            return refuse(&placed.table, format!("sync {} isn't executed", tier.sync));
        }
    }
    Ok(())
}

fn check_optimizer(spec: &TableSpec, placed: &TablePlan, tier: &Tier) -> Result<()> {
    let optimizer = &spec.optimizer;
    if tier.blocks.len() > 1 && optimizer.needs_whole_row() {
        return refuse(&spec.name, "max_norm needs whole rows, the plan cuts columns");
    }
    let scaling = optimizer.replica();
    let (planned, given) = (tier.mesh.replicas(), scaling.replicas);
    let exact = tier.sync == ReplicaSync::Gradients;
    let one = placed.tiers.len() == 1;
    match scaling.rule {
        ReplicaRule::None => {}
        ReplicaRule::Exact if !exact && planned > 1 => {
            let what =
                format!("replica rule exact needs sync gradients, the plan has {}", tier.sync);
            return refuse(&spec.name, what);
        }
        // Of several tiers, those that sum take rule exact, which keeps the same state but for history.
        rule if exact && rule != ReplicaRule::Exact && (one || rule == ReplicaRule::History) => {
            return refuse(
                &spec.name,
                format!("replica rule {rule} doesn't go with sync gradients"),
            );
        }
        // Every tier of several has its own number of replicas.
        rule if planned != given && one => {
            let what = format!("replica rule {rule} over {given} replicas, the plan has {planned}");
            return refuse(&spec.name, what);
        }
        _ => {}
    }
    Ok(())
}

/// What the gradient of the mean loss over the global batch is multiplied by for a tier.
///
/// A group sees `1/M` of the samples, so that the mean of the replicas' steps is the step of the
/// mean gradient if each takes `M` times its part. Summed gradients are what they are.
pub(super) fn gradient_scale(spec: &TableSpec, tier: &Tier) -> f32 {
    let mean = spec.optimizer.replica().gradients == GroupGradient::Mean;
    match tier.sync {
        ReplicaSync::Weights { .. } | ReplicaSync::TouchedRows { .. } if mean => {
            tier.mesh.replicas() as f32
        }
        _ => 1.0,
    }
}
