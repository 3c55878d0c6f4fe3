//! Every way that `TorchRec` may shard a table: [`options`].

use super::estimate::Estimator;
use crate::planner::baseline::given::Given;
use crate::{Error, Kind, Result, Table, Task};

/// A sharding type, in the order in which `EmbeddingBagCollectionSharder` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    DataParallel,
    TableWise,
    ColumnWise,
    /// Column blocks on ranks of one node.
    TableColumnWise,
    RowWise,
    TableRowWise,
    Grid,
}

impl Way {
    pub(super) const ALL: [Self; 7] = [
        Self::DataParallel,
        Self::TableWise,
        Self::ColumnWise,
        Self::TableColumnWise,
        Self::RowWise,
        Self::TableRowWise,
        Self::Grid,
    ];

    /// The kind of the placement it becomes.
    fn kind(self) -> Kind {
        match self {
            Self::DataParallel => Kind::DataParallel,
            Self::TableWise => Kind::TableWise,
            Self::ColumnWise | Self::TableColumnWise => Kind::ColumnWise,
            Self::RowWise => Kind::RowWise,
            Self::TableRowWise => Kind::TableRowWise,
            Self::Grid => Kind::Grid,
        }
    }

    /// Whether all positions get a shard each.
    pub(super) fn is_uniform(self) -> bool {
        matches!(self, Self::DataParallel | Self::RowWise)
    }
}

/// One way to shard one table. All shards cost as much as the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) way: Way,
    /// Column blocks.
    pub(super) blocks: u32,
    /// Columns of each.
    pub(super) columns: usize,
    /// Positions that share the rows of a block.
    pub(super) width: u32,
    /// Seconds of a shard.
    pub(super) seconds: f64,
    /// Bytes of a shard: weights, optimizer state, ids and outputs.
    pub(super) bytes: u64,
}

impl Choice {
    pub(super) fn shards(self) -> u32 {
        self.blocks * self.width
    }

    /// Bytes of all shards.
    pub(super) fn total_bytes(self) -> u128 {
        u128::from(self.bytes) * u128::from(self.shards())
    }
}

/// The ways that the task allows, for each table: `EmbeddingEnumerator`. A grid is tried only where
/// the constraints name it, a pinned table is table-wise, and ways that come to another one
/// (column-wise in one block, nodes of one rank or all ranks) are left out.
pub(super) fn options(
    given: &Given<'_>,
    node_ranks: u32,
    estimator: &Estimator,
) -> Result<Vec<Vec<Choice>>> {
    let tables = given.tables().iter().enumerate();
    tables
        .map(|(number, table)| {
            let ways = Way::ALL.iter().filter(|&&way| match given.pinned(number) {
                Some(_) => way == Way::TableWise,
                None => allowed(given, way),
            });
            let shape = |&way: &Way| shape(given, node_ranks, estimator, table, way);
            let found: Vec<Choice> = ways.filter_map(shape).collect();
            if found.is_empty() { Err(no_way(given.task(), table)) } else { Ok(found) }
        })
        .collect()
}

fn allowed(given: &Given<'_>, way: Way) -> bool {
    // One rank has one way, whatever it is called.
    if given.mesh.world() == 1 {
        return way == Way::TableWise;
    }
    let named = given.task().constraints.kinds.is_some();
    given.task().allows(way.kind()) && (way != Way::Grid || named)
}

/// Blocks, columns and width of a way; `None` where another way is the same.
fn shape(
    given: &Given<'_>,
    node_ranks: u32,
    estimator: &Estimator,
    table: &Table,
    way: Way,
) -> Option<Choice> {
    let group = given.mesh.group_ranks();
    let nodes = group / node_ranks;
    let own = given.task().constraints.min_columns;
    let block = block_columns(own.unwrap_or(estimator.constants.min_columns), table.dim());
    let cut = block < table.dim();
    let (columns, width) = match way {
        Way::DataParallel => Some((table.dim(), group)),
        Way::TableWise => Some((table.dim(), 1)),
        Way::ColumnWise => cut.then_some((block, 1)),
        Way::TableColumnWise => (cut && nodes > 1 && node_ranks > 1).then_some((block, 1)),
        Way::RowWise => (group > 1).then_some((table.dim(), group)),
        Way::TableRowWise => (nodes > 1 && node_ranks > 1).then_some((table.dim(), node_ranks)),
        Way::Grid => (cut && nodes > 1 && node_ranks > 1).then_some((block, node_ranks)),
    }?;
    let rows = match way {
        Way::DataParallel => table.rows(),
        _ => table.rows().div_ceil(u64::from(width)),
    };
    let stored = table.part_bytes(rows, columns).total().get();
    Some(Choice {
        way,
        blocks: (table.dim() / columns) as u32,
        columns,
        width,
        seconds: estimator.seconds(table, way, columns).total(),
        bytes: stored.saturating_add(estimator.buffer_bytes(table, way, columns)),
    })
}

/// Columns of a block: the least from `least` on that divides `columns` and is a multiple of four,
/// else all (`_find_base_dim` of `torchrec/distributed/sharding_plan.py`).
fn block_columns(least: usize, columns: usize) -> usize {
    let divides = |&block: &usize| columns.is_multiple_of(block) && block.is_multiple_of(4);
    (least.max(1)..columns).find(divides).unwrap_or(columns)
}

fn no_way(task: &Task<'_>, table: &Table) -> Error {
    let kinds = task.constraints.kinds.iter().flatten();
    let kinds: Vec<String> = kinds.map(|kind| format!("{kind:?}")).collect();
    let what = format!(
        "torchrec has no way to place table {:?} of {} columns on {} ranks as any of: {}",
        table.name(),
        table.dim(),
        task.topology.world(),
        kinds.join(", "),
    );
    Error::Constraint { what }
}
