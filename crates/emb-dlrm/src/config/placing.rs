//! Where the tables of a run live: a plan from options, or from a file.

use super::optimizers::state_bytes;
use super::replicas::{history, sync};
use super::tables::{TablePlan, Tables};
use super::words::{LayoutKind, PlacementKind};
use super::{Options, TableOptions, nearest};
use crate::{Error, Result};
use emb_kernels::{Dtype, Pooling};
use emb_shard::{
    AutoOptions, Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, PlanFile, RowCut,
};

/// Words that `--plan` takes beside files.
const PLANS: &[&str] = &["auto", "table-wise", "row-wise", "column-wise", "data-parallel"];

/// Whether `--plan` or `--planner` says all of where tables live, so that options about it have no
/// effect.
#[cfg(feature = "data")]
pub(crate) fn is_planned(options: &Options) -> bool {
    let a_file = |plan: &String| !PLANS.contains(&plan.as_str());
    options.planner.is_some() || options.plan.as_ref().is_some_and(a_file)
}

/// The plan of the tables for `world` ranks.
///
/// # Errors
/// Options that have no effect or contradict each other; a plan that can't be read or made.
pub(super) fn make_plan(
    options: &Options,
    tables: &Tables,
    world: u32,
    node_ranks: u32,
) -> Result<Plan> {
    let word = options.plan.as_deref().unwrap_or("auto");
    let own = |table: &TableOptions| table.placement.is_some() || table.replicas.is_some();
    let planned = planned_tables(options, tables)?;
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
    if word == "auto" {
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

pub(super) fn mesh(options: &Options, world: u32) -> Result<Mesh> {
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

fn from_file(path: &str, tables: &emb_shard::Tables, world: u32) -> Result<Plan> {
    let file = std::path::Path::new(path);
    if let Some(near) = nearest::nearest(path, PLANS).filter(|_| !file.exists()) {
        return Err(Error::Config(format!(
            "--plan: there is no file {path}; did you mean {near}?"
        )));
    }
    if !file.is_file() {
        let what = if file.exists() { "is no ordinary file" } else { "does not exist" };
        let kinds = PLANS.join(", ");
        return Err(Error::Config(format!(
            "--plan {path}: the file {what}; the kinds of plans are {kinds}"
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

impl super::Config {
    /// The tables as plans see them: with stored bytes, optimizer state, pooling and features.
    ///
    /// # Errors
    /// Tables that no plan can hold, by name.
    pub fn planned_tables(&self) -> Result<emb_shard::Tables> {
        planned_tables(&self.options, &self.tables)
    }
}

/// The tables as a plan sees them.
///
/// # Errors
/// As [`Config::planned_tables`](super::Config::planned_tables).
pub(super) fn planned_tables(options: &Options, tables: &Tables) -> Result<emb_shard::Tables> {
    let one = |(number, table): (usize, &TablePlan)| {
        let spec = &table.spec;
        let features: Vec<_> =
            tables.features.iter().filter(|feature| feature.table == number).collect();
        let mean = features.first().is_some_and(|feature| feature.pooling == Pooling::Mean);
        let options = emb_shard::TableOptions {
            element_bytes: match spec.dtype {
                Dtype::F32 => 4,
                Dtype::F16 | Dtype::Bf16 => 2,
            },
            state: state_bytes(&history(options, table)?),
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
