//! Where every cell of every table lives: [`Plan`].

mod check;
mod display;
mod fault;
mod file;
mod fingerprint;
mod hot;
mod index;
mod kinds;
mod order;
mod owners;
mod parts;
mod query;
mod same;

pub use fault::PlanFault;
pub use file::PlanFile;
pub use hot::HotRowsShort;
pub use index::{ExchangeClass, SyncClass};
pub use kinds::{Exchange, Path, Per, ReplicaSync};
pub use order::{RowOrder, RowOrderKind};
pub use owners::Owners;
pub use parts::{Block, PlanSpec, TablePlan, Tier};
pub use query::{Cell, Shard};

pub(crate) use fingerprint::fingerprint;

use crate::{Error, Layout, Mesh, Result, TableId, Tables, TypedVec};
use index::MeshIndex;
use std::collections::HashMap;

/// Most ranks that a plan may have: enough for any machine, small enough that a damaged plan file
/// cannot ask for all memory.
pub const MAX_WORLD: u32 = 1 << 20;

/// Where every cell of every table lives, checked: each is stored exactly once in every group of
/// its tier.
///
/// A plan is made from a [`PlanSpec`] by [`Plan::new`], by a [`PlanBuilder`](crate::PlanBuilder)
/// or from a [`PlanFile`]. It cannot be changed. Queries by rank or by cell do not search and do
/// not allocate.
///
/// Tiers over one group of all ranks, or over groups of one, are the same in both layouts and are
/// kept as [`Layout::Strided`].
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    world: u32,
    node_ranks: u32,
    tables: Tables,
    placed: TypedVec<TableId, TablePlan>,
    fingerprint: u64,
    meshes: Vec<MeshIndex>,
    exchanges: Vec<ExchangeClass>,
    syncs: Vec<SyncClass>,
}

impl Plan {
    /// Checks a plan for `tables`.
    ///
    /// # Errors
    /// Tables missing, unknown or placed twice, by name; by table, tier, rows, columns and rank:
    /// cells covered not once, parts without owner or owners without part, owners outside the
    /// group or with two parts of one block, an exchange that does not fit the group, the pooling
    /// or the nodes, a sync that does not fit the number of replicas. A world beyond
    /// [`MAX_WORLD`]; nodes that do not share it out.
    pub fn new(tables: &Tables, spec: PlanSpec) -> Result<Self> {
        let PlanSpec { world, node_ranks, tables: plans } = spec;
        check_world(world, node_ranks)?;
        let mut placed = in_table_order(tables, plans)?;
        let mut seen = Vec::new();
        for (table, plan) in tables.tables().as_slice().iter().zip(&mut placed) {
            check::table(table, plan, world, node_ranks, &mut seen)?;
            for tier in &mut plan.tiers {
                tier.mesh = one_layout(tier.mesh)?;
            }
        }
        let placed = TypedVec::new(placed)?;
        Ok(Self {
            world,
            node_ranks,
            tables: tables.clone(),
            fingerprint: fingerprint(tables.tables().as_slice()),
            meshes: index::meshes(tables, &placed)?,
            exchanges: index::exchanges(&placed),
            syncs: index::syncs(&placed),
            placed,
        })
    }

    /// Ranks of the run, `W`.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// Ranks of a node, `L`.
    pub fn node_ranks(&self) -> u32 {
        self.node_ranks
    }

    /// The tables it was made for.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Where each table lives.
    pub fn placed(&self) -> &TypedVec<TableId, TablePlan> {
        &self.placed
    }

    /// A number that stays the same on every machine and differs where names, shapes, stored bytes,
    /// pooling or features of the tables do.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The exchanges of all tiers: one collective of each stage serves all tiers of a class, so
    /// that the number of collectives does not grow with the number of tables.
    pub fn exchange_classes(&self) -> &[ExchangeClass] {
        &self.exchanges
    }

    /// The syncs of all replicated tiers.
    pub fn sync_classes(&self) -> &[SyncClass] {
        &self.syncs
    }
}

fn check_world(world: u32, node_ranks: u32) -> Result<()> {
    if world > MAX_WORLD {
        return Err(Error::WorldTooLarge { world, limit: MAX_WORLD });
    }
    if world == 0 || node_ranks == 0 || !world.is_multiple_of(node_ranks) {
        return Err(Error::NodeRanks { world, node_ranks });
    }
    Ok(())
}

/// Both layouts of one group, and of groups of one, are the same.
fn one_layout(mesh: Mesh) -> Result<Mesh> {
    let same = mesh.group_ranks() == 1 || mesh.replicas() == 1;
    let layout = if same { Layout::Strided } else { mesh.layout() };
    Mesh::new(mesh.world(), mesh.group_ranks(), layout)
}

fn in_table_order(tables: &Tables, plans: Vec<TablePlan>) -> Result<Vec<TablePlan>> {
    let mut by_name = HashMap::with_capacity(plans.len());
    for plan in plans {
        if let Some(twice) = by_name.insert(plan.table.clone(), plan) {
            return Err(Error::TablePlacedTwice { table: twice.table });
        }
    }
    let (mut placed, mut missing) = (Vec::new(), Vec::new());
    for table in tables.tables().as_slice() {
        match by_name.remove(table.name()) {
            Some(plan) => placed.push(plan),
            None => missing.push(table.name().to_owned()),
        }
    }
    if !by_name.is_empty() {
        let mut tables: Vec<String> = by_name.into_keys().collect();
        tables.sort_unstable();
        return Err(Error::TablesUnknown { tables });
    }
    if missing.is_empty() { Ok(placed) } else { Err(Error::TablesMissing { tables: missing }) }
}
