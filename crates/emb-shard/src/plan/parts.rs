//! The parts of a plan: [`PlanSpec`], [`TablePlan`], [`Tier`], [`Block`].
//!
//! Plain data with open fields: anyone may write a plan down. It becomes a
//! [`Plan`](crate::Plan) only if it is consistent.

use super::{Exchange, Owners, ReplicaSync, RowOrder};
use crate::{ColRange, Mesh, RowMap, RowRange};

/// A plan as written down, not yet checked.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSpec {
    /// Ranks of the run, `W`.
    pub world: u32,
    /// Ranks of a node, `L`; divides `W`. Ranks of one node are consecutive.
    pub node_ranks: u32,
    /// Every table once, in any order.
    pub tables: Vec<TablePlan>,
}

/// Where one table lives.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePlan {
    /// Table name.
    pub table: String,
    /// The order of rows in which tiers are cut, for instance by frequency; `None` for the order
    /// of the table.
    pub order: Option<RowOrder>,
    /// Row blocks that follow each other, covering all rows.
    pub tiers: Vec<Tier>,
}

/// A block of rows that is stored once in every group of `g` ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// Its rows, in the table's [`order`](TablePlan::order).
    pub rows: RowRange,
    /// The groups: `g = mesh.group_ranks()`, in each of which the tier is stored once.
    pub mesh: Mesh,
    /// How rows travel inside a group.
    pub exchange: Exchange,
    /// How the `W/g` replicas are kept equal.
    pub sync: ReplicaSync,
    /// Column blocks that follow each other, covering all columns.
    pub blocks: Vec<Block>,
}

/// Columns of a tier, their rows cut into parts with owners.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its columns.
    pub columns: ColRange,
    /// Which part has which row; rows are counted from the start of the tier.
    pub map: RowMap,
    /// The owner of each part of `map`.
    pub owners: Owners,
}

impl Block {
    /// Rows of a part that exists.
    pub(crate) fn part_rows(&self, part: usize) -> u64 {
        self.map.rows_of(part).expect("invariant: the caller counts parts by the map")
    }

    /// Owner of a part that exists, in a checked plan.
    pub(crate) fn owner(&self, part: usize) -> u32 {
        self.owners.get(part).expect("invariant: a plan has an owner for every part")
    }
}

impl Tier {
    /// What the placement is called: `table_wise`, `row_wise`, `column_wise`, `data_parallel`,
    /// `table_row_wise` (rows over a part of the group) or `grid` (rows and columns).
    pub fn kind(&self) -> &'static str {
        let group = self.mesh.group_ranks() as usize;
        let rows_cut = self.blocks.iter().any(|block| block.owners.len() > 1);
        match self.blocks.as_slice() {
            _ if group == 1 => "data_parallel",
            [block] if block.owners.len() == group => "row_wise",
            [_] if rows_cut => "table_row_wise",
            [_] => "table_wise",
            _ if rows_cut => "grid",
            _ => "column_wise",
        }
    }
}
