//! Which plans, tables and features can be executed; everything else is refused by name.

use super::error::{Error, Result, refuse};
use emb_kernels::{Feature, Pooling, TableSpec};
use emb_optim::{GroupGradient, ReplicaRule};
use emb_shard::{Exchange, Path, Plan, ReplicaSync, RowMapKind, TableId, TablePlan, Tier};

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
    for feature in features {
        if feature.pooling == Pooling::None {
            let table = specs.get(feature.table).map_or("", |spec| &spec.name);
            let name = &feature.name;
            return refuse(
                table,
                format!("feature {name:?} isn't pooled: not executed over ranks"),
            );
        }
    }
    for ((_, placed), spec) in plan.placed().iter().zip(specs) {
        let tier = only_tier(placed)?;
        check_tier(&spec.name, tier)?;
        check_optimizer(spec, tier)?;
    }
    Ok(())
}

/// Checks that every table lives in a way that can be executed.
///
/// # Errors
/// By table name, what can't be.
#[cfg(feature = "cli")]
pub(crate) fn executable(plan: &Plan) -> Result<()> {
    for (_, placed) in plan.placed().iter() {
        check_tier(&placed.table, only_tier(placed)?)?;
    }
    Ok(())
}

/// The tier of a table of a checked plan.
pub(super) fn tier_of(plan: &Plan, table: usize) -> Result<&Tier> {
    Ok(plan.tier(TableId::new(table as u32), 0)?)
}

fn only_tier(placed: &TablePlan) -> Result<&Tier> {
    if placed.order.is_some() {
        return refuse(&placed.table, "an order of rows of its own isn't executed");
    }
    match placed.tiers.as_slice() {
        [tier] => Ok(tier),
        tiers => refuse(&placed.table, format!("{} tiers: only one is executed", tiers.len())),
    }
}

fn check_tier(table: &str, tier: &Tier) -> Result<()> {
    match tier.exchange {
        Exchange::Local | Exchange::Reduce { over: Path::Flat } => {}
        other => return refuse(table, format!("exchange {other} isn't executed, only reduce")),
    }
    if tier.sync == ReplicaSync::FullyShardedReplicas {
        return refuse(table, format!("sync {} isn't executed", tier.sync));
    }
    let group = tier.mesh.group_ranks();
    for (number, block) in tier.blocks.iter().enumerate() {
        if matches!(block.map.kind(), RowMapKind::Permuted { .. }) {
            return refuse(table, "rows in a permuted order aren't executed");
        }
        if block.map != tier.blocks[0].map {
            return refuse(table, "column blocks whose rows are cut differently aren't executed");
        }
        let twice = block.owners.iter().find(|&owner| {
            tier.blocks[..number].iter().any(|other| other.owners.part_of(owner).is_some())
        });
        if let Some(owner) = twice.filter(|&owner| owner < group) {
            let what = format!("position {owner} of a group owns two column blocks: not executed");
            return refuse(table, what);
        }
    }
    Ok(())
}

fn check_optimizer(spec: &TableSpec, tier: &Tier) -> Result<()> {
    let optimizer = &spec.optimizer;
    if tier.blocks.len() > 1 && optimizer.needs_whole_row() {
        return refuse(&spec.name, "max_norm needs whole rows, the plan cuts columns");
    }
    let scaling = optimizer.replica();
    let (planned, given) = (tier.mesh.replicas(), scaling.replicas);
    let exact = tier.sync == ReplicaSync::Gradients;
    match scaling.rule {
        ReplicaRule::None => {}
        ReplicaRule::Exact if !exact && planned > 1 => {
            let what =
                format!("replica rule exact needs sync gradients, the plan has {}", tier.sync);
            return refuse(&spec.name, what);
        }
        rule if exact && rule != ReplicaRule::Exact => {
            return refuse(
                &spec.name,
                format!("replica rule {rule} doesn't go with sync gradients"),
            );
        }
        rule if planned != given => {
            let what = format!("replica rule {rule} over {given} replicas, the plan has {planned}");
            return refuse(&spec.name, what);
        }
        _ => {}
    }
    Ok(())
}

/// What the gradient of the mean loss over the global batch is multiplied by for a table.
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
