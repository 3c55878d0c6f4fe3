//! How one table is to be placed: [`Placement`], [`PlaceOptions`].

use crate::{Exchange, Layout, ReplicaSync, Result, RowMap};

/// How rows are cut into parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowCut {
    /// Ranges of `ceil(rows / parts)` rows until none are left: 10 rows over 4 are 3, 3, 3, 1.
    #[default]
    Ceil,
    /// Ranges whose lengths differ by at most one: 10 rows over 4 are 3, 3, 2, 2.
    Even,
    /// Round robin, which spreads rows ordered by frequency.
    Modulo,
}

/// How a table is placed in each group of a mesh.
///
/// Owners that are left open go where there is least work so far, heavy tables first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// The whole table on one rank of the group.
    TableWise {
        /// Its position in the group; `None` for the rank with least work.
        owner: Option<u32>,
    },
    /// Rows over all ranks of the group. Ranks may be more than rows: some then own nothing.
    RowWise {
        /// How rows are cut.
        cut: RowCut,
    },
    /// Columns over ranks of the group, each at most once; widths differ by at most one, the wider
    /// first: 10 columns over 3 are 4, 3, 3.
    ColumnWise {
        /// Column blocks, `1..=S`; fewer where the table has fewer columns: 2 columns over 4 use
        /// two ranks. `None` for all ranks of the group.
        parts: Option<u32>,
    },
    /// The whole table on every rank: groups of one.
    DataParallel,
    /// Rows over the ranks of the group on one node.
    TableRowWise {
        /// How rows are cut.
        cut: RowCut,
        /// The node, among those of the group; `None` for the one with least work.
        node: Option<u32>,
    },
    /// Columns over nodes of the group, each at most once, and the rows of each block over the
    /// ranks of its node.
    Grid {
        /// How rows are cut.
        cut: RowCut,
        /// Column blocks, `1..=nodes`; fewer where the table has fewer columns. `None` for all
        /// nodes of the group.
        parts: Option<u32>,
    },
}

/// A placement and what may differ from the rest of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaceOptions {
    /// The placement.
    pub placement: Placement,
    /// Ranks of a group and their layout, for a number of replicas of its own; `None` for the mesh
    /// of the builder. A data-parallel table always has groups of one.
    pub group: Option<(u32, Layout)>,
    /// `None` for `Local` in groups of one, else `Reduce` (flat) for pooled and `Unique` (per rank)
    /// for sequence features.
    pub exchange: Option<Exchange>,
    /// `None` for no sync of one replica, `Gradients` for data-parallel tables, else `Weights`
    /// every step.
    pub sync: Option<ReplicaSync>,
}

impl From<Placement> for PlaceOptions {
    fn from(placement: Placement) -> Self {
        Self { placement, group: None, exchange: None, sync: None }
    }
}

impl Placement {
    /// What it is called in plans, errors and configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::TableWise { .. } => "table_wise",
            Self::RowWise { .. } => "row_wise",
            Self::ColumnWise { .. } => "column_wise",
            Self::DataParallel => "data_parallel",
            Self::TableRowWise { .. } => "table_row_wise",
            Self::Grid { .. } => "grid",
        }
    }
}

impl RowCut {
    pub(crate) fn map(self, rows: u64, parts: u32) -> Result<RowMap> {
        match self {
            Self::Ceil => RowMap::ceil(rows, parts as usize),
            Self::Even => RowMap::even(rows, parts as usize),
            Self::Modulo => RowMap::modulo(rows, parts as usize),
        }
    }
}
