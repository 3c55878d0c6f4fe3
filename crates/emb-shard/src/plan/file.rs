//! A plan as a file: [`PlanFile`], versioned, for any serde format, and its readable JSON text.

mod order;
mod text;

use super::same::same;
use super::{Block, Exchange, Owners, Plan, PlanSpec, ReplicaSync, TablePlan, Tier, check_world};
use crate::{
    ColRange, Error, Layout, Mesh, PlanFault, Pooling, Result, RowMap, RowMapKind, RowRange, Table,
    TableOptions, Tables,
};
use order::OrderFile;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;

/// A plan as a file: plain data for any serde format.
///
/// [`Display`](std::fmt::Display) writes it as JSON with one line for each table; every JSON
/// reader reads it back. Unknown fields are refused. It becomes a [`Plan`] by
/// [`into_plan`](Self::into_plan), which checks it against the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    version: u32,
    world: u32,
    node_ranks: u32,
    fingerprint: String,
    tables: Vec<TableFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    table: String,
    rows: u64,
    dim: usize,
    element_bytes: u8,
    pooling: Pooling,
    /// `None` for one feature named like the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<OrderFile>,
    tiers: Vec<TierFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TierFile {
    rows: [u64; 2],
    group: u32,
    layout: Layout,
    exchange: Exchange,
    sync: ReplicaSync,
    blocks: Vec<BlockFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockFile {
    columns: [usize; 2],
    map: MapFile,
    owners: OwnersFile,
}

/// A row map by its rule where it has one; parts are as many as owners.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum MapFile {
    Even,
    Ceil,
    Modulo,
    Starts(Vec<u64>),
    Permuted { permutation: OrderFile, then: Box<MapFile> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum OwnersFile {
    /// From the first up to but not including the second.
    Span([u32; 2]),
    List(Vec<u32>),
}

impl Plan {
    /// The plan as a file.
    pub fn to_file(&self) -> PlanFile {
        let tables = self.placed.iter().map(|(id, plan)| to_table(&self.tables.tables()[id], plan));
        PlanFile {
            version: VERSION,
            world: self.world,
            node_ranks: self.node_ranks,
            fingerprint: format!("{:016x}", self.fingerprint),
            tables: tables.collect(),
        }
    }
}

impl PlanFile {
    /// The tables as the file describes them. What plans do not keep, optimizer state and pooling
    /// factors, is as [`TableOptions`] has it by default.
    ///
    /// # Errors
    /// A table that cannot exist, or is there twice, by name.
    pub fn tables(&self) -> Result<Tables> {
        let table = |file: &TableFile| {
            let options = TableOptions {
                element_bytes: file.element_bytes,
                pooling: file.pooling,
                features: file.features.clone(),
                ..TableOptions::default()
            };
            Table::new(&file.table, file.rows, file.dim, options)
        };
        Tables::new(self.tables.iter().map(table).collect::<Result<_>>()?)
    }

    /// Checks the file against the tables of a model and makes the plan.
    ///
    /// # Errors
    /// Another version; tables that are missing, unknown, placed twice or of another shape, by
    /// name; a fingerprint of other tables; and all that [`Plan::new`] refuses.
    pub fn into_plan(self, tables: &Tables) -> Result<Plan> {
        if self.version != VERSION {
            return Err(Error::PlanVersion { version: self.version, supported: VERSION });
        }
        check_world(self.world, self.node_ranks)?;
        let known: HashMap<&str, &Table> =
            tables.tables().as_slice().iter().map(|table| (table.name(), table)).collect();
        let unknown = self.tables.iter().filter(|table| !known.contains_key(table.table.as_str()));
        let mut unknown: Vec<String> = unknown.map(|table| table.table.clone()).collect();
        if !unknown.is_empty() {
            unknown.sort_unstable();
            return Err(Error::TablesUnknown { tables: unknown });
        }
        let mut plans = Vec::with_capacity(self.tables.len());
        for file in self.tables {
            same_shape(&file, known[file.table.as_str()])?;
            plans.push(from_table(file, self.world)?);
        }
        let spec = PlanSpec { world: self.world, node_ranks: self.node_ranks, tables: plans };
        let plan = Plan::new(tables, spec)?;
        let given = format!("{:016x}", plan.fingerprint);
        if given != self.fingerprint {
            // A text that is no number cannot be a fingerprint of any tables: shown as zero.
            let recorded = u64::from_str_radix(&self.fingerprint, 16).unwrap_or(0);
            return Err(Error::Fingerprint { plan: recorded, given: plan.fingerprint });
        }
        Ok(plan)
    }
}

fn same_shape(file: &TableFile, table: &Table) -> Result<()> {
    let name = table.name();
    same(name, "rows", &file.rows, &table.rows())?;
    same(name, "columns", &file.dim, &table.dim())?;
    same(name, "bytes a weight", &file.element_bytes, &table.element_bytes())?;
    same(name, "pooling", &format!("{:?}", file.pooling), &format!("{:?}", table.pooling()))?;
    let features = file.features.as_ref().map_or_else(|| name.to_owned(), |names| names.join(", "));
    same(name, "features", &features, &table.features().join(", "))
}

fn to_table(table: &Table, plan: &TablePlan) -> TableFile {
    TableFile {
        table: plan.table.clone(),
        rows: table.rows(),
        dim: table.dim(),
        element_bytes: table.element_bytes(),
        pooling: table.pooling(),
        features: (table.features() != [table.name()]).then(|| table.features().to_vec()),
        order: plan.order.as_ref().map(OrderFile::new),
        tiers: plan.tiers.iter().map(to_tier).collect(),
    }
}

fn to_tier(tier: &Tier) -> TierFile {
    let block = |block: &Block| BlockFile {
        columns: [block.columns.start(), block.columns.end()],
        map: to_map(&block.map),
        owners: match block.owners.as_span() {
            Some((first, count)) => OwnersFile::Span([first, first + count]),
            None => OwnersFile::List(block.owners.iter().collect()),
        },
    };
    TierFile {
        rows: [tier.rows.start(), tier.rows.end()],
        group: tier.mesh.group_ranks(),
        layout: tier.mesh.layout(),
        exchange: tier.exchange,
        sync: tier.sync,
        blocks: tier.blocks.iter().map(block).collect(),
    }
}

fn to_map(map: &RowMap) -> MapFile {
    match map.kind() {
        RowMapKind::Range(starts) if is_even(starts) => MapFile::Even,
        RowMapKind::Range(starts) if is_ceil(starts) => MapFile::Ceil,
        RowMapKind::Range(starts) => MapFile::Starts(starts.to_vec()),
        RowMapKind::Modulo { .. } => MapFile::Modulo,
        RowMapKind::Permuted { order, then } => {
            let permutation = OrderFile::new(order);
            MapFile::Permuted { permutation, then: Box::new(to_map(then)) }
        }
    }
}

fn is_even(starts: &[u64]) -> bool {
    let (rows, owners) = (starts[starts.len() - 1], starts.len() - 1);
    RowMap::even(rows, owners).is_ok_and(|map| map.kind() == RowMapKind::Range(starts))
}

fn is_ceil(starts: &[u64]) -> bool {
    let (rows, owners) = (starts[starts.len() - 1], starts.len() - 1);
    RowMap::ceil(rows, owners).is_ok_and(|map| map.kind() == RowMapKind::Range(starts))
}

fn from_table(file: TableFile, world: u32) -> Result<TablePlan> {
    let order = file.order.map(|order| order.into_order(file.rows)).transpose();
    let order = order.map_err(|fault| {
        let (table, fault) = (file.table.clone(), Box::new(fault));
        Error::Order { table, fault }
    })?;
    let mut tiers = Vec::with_capacity(file.tiers.len());
    for (number, tier) in file.tiers.into_iter().enumerate() {
        let tier = from_tier(tier, world, &file.table, number);
        tiers.push(tier.map_err(|fault| in_tier(&file.table, number, fault))?);
    }
    Ok(TablePlan { table: file.table, order, tiers })
}

/// Ranges, meshes and row maps do not know where they are used.
fn in_tier(table: &str, tier: usize, fault: Error) -> Error {
    match fault {
        Error::Plan { .. } => fault,
        fault => Error::Tier { table: table.to_owned(), tier, fault: Box::new(fault) },
    }
}

fn from_tier(file: TierFile, world: u32, table: &str, number: usize) -> Result<Tier> {
    let rows = RowRange::new(file.rows[0], file.rows[1])?;
    let mesh = Mesh::new(world, file.group, file.layout)?;
    let mut blocks = Vec::with_capacity(file.blocks.len());
    for block in file.blocks {
        let columns = ColRange::new(block.columns[0], block.columns[1])?;
        let owners = match block.owners {
            OwnersFile::Span([first, end]) => Owners::span(first, end.saturating_sub(first)),
            OwnersFile::List(positions) => Owners::list(&positions),
        };
        // Refused before a row map of that many parts is made.
        if owners.len() > file.group as usize {
            let (owner, group_ranks) = (owners.len() as u64 - 1, file.group);
            let fault = PlanFault::OwnerRange { columns, rows, owner, group_ranks };
            return Err(Error::Plan { table: table.to_owned(), tier: Some(number), fault });
        }
        let map = from_map(block.map, rows.rows(), owners.len())?;
        blocks.push(Block { columns, map, owners });
    }
    Ok(Tier { rows, mesh, exchange: file.exchange, sync: file.sync, blocks })
}

fn from_map(file: MapFile, rows: u64, owners: usize) -> Result<RowMap> {
    match file {
        MapFile::Even => RowMap::even(rows, owners),
        MapFile::Ceil => RowMap::ceil(rows, owners),
        MapFile::Modulo => RowMap::modulo(rows, owners),
        MapFile::Starts(starts) => RowMap::range(starts),
        MapFile::Permuted { permutation, then } => {
            RowMap::ordered(permutation.into_order(rows)?, from_map(*then, rows, owners)?)
        }
    }
}
