//! What can be wrong with the placement of a table: [`PlanFault`].

use super::{Exchange, ReplicaSync};
use crate::{ColRange, Pooling, RowRange};

/// What is wrong with the placement of a table; the error around it names table and tier.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// A table without tiers.
    #[error("has no tiers")]
    NoTiers,
    /// A tier that does not follow the one before.
    #[error("rows {rows} must begin at row {expected}, so that every row is in one tier")]
    TierStart {
        /// Rows of the tier.
        rows: RowRange,
        /// Where the tier before ends.
        expected: u64,
    },
    /// A tier without rows.
    #[error("rows {rows} are none")]
    TierEmpty {
        /// Rows of the tier.
        rows: RowRange,
    },
    /// Tiers that do not end with the table.
    #[error("tiers end at row {end}, the table has {rows} rows")]
    TiersEnd {
        /// End of the last tier.
        end: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// An order of another number of rows.
    #[error("the order has {order} rows, the table {rows}")]
    OrderRows {
        /// Rows of the order.
        order: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// Groups of another world.
    #[error("its groups share out {groups} ranks, the plan has {world}")]
    World {
        /// Ranks that the groups share out.
        groups: u32,
        /// Ranks of the plan.
        world: u32,
    },
    /// A tier without column blocks.
    #[error("rows {rows} have no column blocks")]
    NoBlocks {
        /// Rows of the tier.
        rows: RowRange,
    },
    /// A block that does not follow the one before.
    #[error("columns {columns} must begin at {expected}, so that every column is in one block")]
    ColumnStart {
        /// Columns of the block.
        columns: ColRange,
        /// Where the block before ends.
        expected: usize,
    },
    /// A block without columns.
    #[error("columns {columns} are none")]
    ColumnsEmpty {
        /// Columns of the block.
        columns: ColRange,
    },
    /// Blocks that do not end with the table.
    #[error("column blocks end at {end}, the table has {dim} columns")]
    ColumnsEnd {
        /// End of the last block.
        end: usize,
        /// Columns of the table.
        dim: usize,
    },
    /// A row map of another number of rows.
    #[error("columns {columns}: the row map has {map} rows, rows {rows} are {}", .rows.rows())]
    MapRows {
        /// Columns of the block.
        columns: ColRange,
        /// Rows of its map.
        map: u64,
        /// Rows of the tier.
        rows: RowRange,
    },
    /// Owners of another number than there are row parts.
    #[error("columns {columns}: {owners} owners for {parts} row parts")]
    OwnerCount {
        /// Columns of the block.
        columns: ColRange,
        /// Owners listed.
        owners: usize,
        /// Row parts of the map.
        parts: usize,
    },
    /// An owner outside the group.
    #[error(
        "columns {columns}, rows {rows}: owner {owner} is outside the {group_ranks} ranks of a group"
    )]
    OwnerRange {
        /// Columns of the block.
        columns: ColRange,
        /// Rows of the part (of the tier where the part has no range).
        rows: RowRange,
        /// The owner, as a position in the group.
        owner: u64,
        /// Ranks of a group.
        group_ranks: u32,
    },
    /// An owner of two row parts of one block.
    #[error("columns {columns}, rows {rows}: owner {owner} (rank {rank}) already has other rows")]
    OwnerTwice {
        /// Columns of the block.
        columns: ColRange,
        /// Rows of the second part (of the tier where the part has no range).
        rows: RowRange,
        /// The owner, as a position in the group.
        owner: u32,
        /// Its rank in the first group.
        rank: u32,
    },
    /// An exchange that contradicts the size of groups.
    #[error("exchange {exchange} in groups of {group_ranks}: local is for groups of one alone")]
    ExchangeGroup {
        /// The exchange.
        exchange: Exchange,
        /// Ranks of a group.
        group_ranks: u32,
    },
    /// An exchange that cannot serve the pooling.
    #[error("exchange {exchange} cannot serve features pooled by {pooling:?}")]
    ExchangePooling {
        /// The exchange.
        exchange: Exchange,
        /// The pooling of the table.
        pooling: Pooling,
    },
    /// An exchange by nodes over groups that nodes cut unevenly.
    #[error("exchange {exchange}: nodes of {node_ranks} cut groups of {group_ranks} unevenly")]
    ExchangeNodes {
        /// The exchange.
        exchange: Exchange,
        /// Ranks of a node.
        node_ranks: u32,
        /// Ranks of a group.
        group_ranks: u32,
    },
    /// A sync that contradicts the number of replicas.
    #[error("sync {sync} with {replicas} replica(s): none is for one replica alone")]
    SyncReplicas {
        /// The sync.
        sync: ReplicaSync,
        /// Replicas, `W/g`.
        replicas: u32,
    },
}
