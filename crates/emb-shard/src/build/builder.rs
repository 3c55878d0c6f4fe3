//! A placement for each table becomes a plan: [`PlanBuilder`].

use super::loads::Loads;
use super::place::{cost, mesh_of, place};
use super::{PlaceOptions, Placement, RowCut};
use crate::{Bytes, Error, Mesh, Plan, PlanSpec, Result, Table, Tables};
use std::collections::{BTreeMap, HashSet};

/// Makes a plan from a placement for each table.
///
/// Every group of a mesh gets the same placement. Tables whose owners are open are placed heavy
/// ones first, each where there is least work: longest processing time first, which is within 4/3
/// of the best (Graham 1969). Work is the mean number of weights read for a sample, look-ups times
/// columns; among equals bytes decide, then the lower rank. The same input gives the same plan.
///
/// ```
/// use emb_shard::{Layout, Mesh, Placement, PlanBuilder, RowCut, Table, TableOptions, Tables};
///
/// let table = |name: &str, rows| Table::new(name, rows, 16, TableOptions::default());
/// let tables = Tables::new(vec![table("ads", 1_000_000)?, table("day", 7)?])?;
/// let mesh = Mesh::new(8, 4, Layout::Strided)?;
/// let plan = PlanBuilder::new(mesh)
///     .all(Placement::RowWise { cut: RowCut::Ceil })
///     .table("day", Placement::DataParallel)
///     .build(&tables)?;
/// assert_eq!(plan.exchange_classes().len(), 2);
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanBuilder {
    pub(super) mesh: Mesh,
    pub(super) node_ranks: u32,
    pub(super) budget: Option<Bytes>,
    pub(super) all: PlaceOptions,
    pub(super) by_table: BTreeMap<String, PlaceOptions>,
}

impl PlanBuilder {
    /// Plans over the groups of `mesh`, one node for all ranks, no limit of bytes, every table
    /// whole on one rank of each group.
    pub fn new(mesh: Mesh) -> Self {
        let all = Placement::TableWise { owner: None }.into();
        Self { mesh, node_ranks: mesh.world(), budget: None, all, by_table: BTreeMap::new() }
    }

    /// Ranks of a node.
    #[must_use]
    pub fn node_ranks(mut self, ranks: u32) -> Self {
        self.node_ranks = ranks;
        self
    }

    /// Bytes of weights and optimizer state that a rank has room for.
    #[must_use]
    pub fn budget(mut self, bytes: Bytes) -> Self {
        self.budget = Some(bytes);
        self
    }

    /// The placement of every table without one of its own.
    #[must_use]
    pub fn all(mut self, options: impl Into<PlaceOptions>) -> Self {
        self.all = options.into();
        self
    }

    /// The placement of one table.
    #[must_use]
    pub fn table(mut self, name: impl Into<String>, options: impl Into<PlaceOptions>) -> Self {
        self.by_table.insert(name.into(), options.into());
        self
    }

    /// Makes the plan.
    ///
    /// # Errors
    /// A placement for a table that does not exist; by table name: a placement that cannot be made
    /// of it, a table that no rank has room for ([`DoesNotFit`](crate::DoesNotFit)), and all that
    /// [`Plan::new`] refuses.
    pub fn build(&self, tables: &Tables) -> Result<Plan> {
        let given = tables.tables().as_slice();
        self.refuse_unknown(given)?;
        let options = |table: &Table| self.by_table.get(table.name()).copied().unwrap_or(self.all);
        self.build_with(tables, &given.iter().map(options).collect::<Vec<_>>())
    }

    /// Refuses placements of tables that do not exist.
    pub(super) fn refuse_unknown(&self, given: &[Table]) -> Result<()> {
        let known: HashSet<&str> = given.iter().map(Table::name).collect();
        let unknown = self.by_table.keys().filter(|name| !known.contains(name.as_str())).cloned();
        let tables: Vec<String> = unknown.collect();
        if tables.is_empty() { Ok(()) } else { Err(Error::TablesUnknown { tables }) }
    }

    /// Makes the plan from the placement of each table, in table order.
    pub(super) fn build_with(&self, tables: &Tables, options: &[PlaceOptions]) -> Result<Plan> {
        let given = tables.tables().as_slice();
        let mut order = Vec::with_capacity(given.len());
        for (number, (table, options)) in given.iter().zip(options).enumerate() {
            let cost = cost(table, mesh_of(*options, self.mesh)?);
            order.push((is_open(options.placement), cost, table.weight_bytes(), number));
        }
        // Fixed owners first, then the heaviest, then the largest, then table order.
        order.sort_by(|a, b| {
            a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(b.2.cmp(&a.2)).then(a.3.cmp(&b.3))
        });
        let world = self.mesh.world();
        let mut loads = Loads::new(world, self.budget);
        let mut plans = Vec::with_capacity(given.len());
        for (.., number) in order {
            let (table, options) = (&given[number], options[number]);
            plans.push(place(table, options, self.mesh, self.node_ranks, &mut loads)?);
        }
        Plan::new(tables, PlanSpec { world, node_ranks: self.node_ranks, tables: plans })
    }
}

/// Whether owners are to be chosen.
fn is_open(placement: Placement) -> bool {
    match placement {
        Placement::TableWise { owner } => owner.is_none(),
        Placement::TableRowWise { node, .. } => node.is_none(),
        Placement::ColumnWise { .. } | Placement::Grid { .. } => true,
        Placement::RowWise { .. } | Placement::DataParallel => false,
    }
}

impl Plan {
    /// Every table whole on one rank of each group of `mesh`, heavy ones apart.
    ///
    /// # Errors
    /// As [`PlanBuilder::build`].
    pub fn table_wise(tables: &Tables, mesh: Mesh) -> Result<Self> {
        PlanBuilder::new(mesh).build(tables)
    }

    /// The rows of every table over the ranks of each group of `mesh`.
    ///
    /// # Errors
    /// As [`PlanBuilder::build`].
    pub fn row_wise(tables: &Tables, mesh: Mesh, cut: RowCut) -> Result<Self> {
        PlanBuilder::new(mesh).all(Placement::RowWise { cut }).build(tables)
    }

    /// The columns of every table over the ranks of each group of `mesh`.
    ///
    /// # Errors
    /// As [`PlanBuilder::build`].
    pub fn column_wise(tables: &Tables, mesh: Mesh, parts: Option<u32>) -> Result<Self> {
        PlanBuilder::new(mesh).all(Placement::ColumnWise { parts }).build(tables)
    }

    /// Every table whole on every rank of the world of `mesh`.
    ///
    /// # Errors
    /// As [`PlanBuilder::build`].
    pub fn data_parallel(tables: &Tables, mesh: Mesh) -> Result<Self> {
        PlanBuilder::new(mesh).all(Placement::DataParallel).build(tables)
    }

    /// The rows of every table over the ranks of one node of each group of `mesh`.
    ///
    /// # Errors
    /// As [`PlanBuilder::build`]; nodes that cut groups unevenly.
    pub fn table_row_wise(
        tables: &Tables,
        mesh: Mesh,
        node_ranks: u32,
        cut: RowCut,
    ) -> Result<Self> {
        let all = Placement::TableRowWise { cut, node: None };
        PlanBuilder::new(mesh).node_ranks(node_ranks).all(all).build(tables)
    }

    /// The columns of every table over nodes of each group of `mesh`, rows over their ranks.
    ///
    /// # Errors
    /// As [`PlanBuilder::build`]; nodes that cut groups unevenly.
    pub fn grid(
        tables: &Tables,
        mesh: Mesh,
        node_ranks: u32,
        parts: Option<u32>,
        cut: RowCut,
    ) -> Result<Self> {
        let all = Placement::Grid { cut, parts };
        PlanBuilder::new(mesh).node_ranks(node_ranks).all(all).build(tables)
    }
}
