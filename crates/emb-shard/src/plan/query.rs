//! What an executor asks of a plan: shards of a rank, owners of a cell, bytes of a rank.

use super::index::BlockRef;
use super::{Plan, Tier, check};
use crate::{
    ColRange, Error, GroupId, PartBytes, Rank, ReplicaId, Result, RowMap, RowMapKind, RowRange,
    TableId,
};

/// What one rank stores of one table: rows x columns of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    /// The table.
    pub table: TableId,
    /// Position of the tier in the table.
    pub tier: usize,
    /// Position of the column block in the tier.
    pub block: usize,
    /// Row part of the block: the owner's position in its [`RowMap`].
    pub part: usize,
    /// Number of rows, at least 1.
    pub rows: u64,
    /// The rows, in the table's order, where they are consecutive.
    pub range: Option<RowRange>,
    /// The columns.
    pub columns: ColRange,
    /// The group that the rank works in for this tier: also the number of this replica.
    pub group: GroupId,
    /// The ranks that hold the same shard.
    pub replica_set: ReplicaId,
}

/// Where a cell is stored in every group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Position of the tier in the table.
    pub tier: usize,
    /// Position of the column block in the tier.
    pub block: usize,
    /// Row part of the block.
    pub part: usize,
    /// The owner's position in its group: the replica set that holds the cell.
    pub replica_set: ReplicaId,
    /// Row in the owner's part.
    pub local: u64,
}

impl Plan {
    /// The shards of `rank`: mesh by mesh, in each those over the whole group first, then in table
    /// order. Parts without rows or columns are not shards.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn shards_of(&self, rank: Rank) -> Result<impl Iterator<Item = Shard> + '_> {
        self.check_rank(rank)?;
        Ok(self.meshes.iter().flat_map(move |index| {
            let (group, set) = index.mesh.place_of(rank);
            let everyone = index.everyone.iter().map(move |&at| (at, set.get()));
            let some = index.some_of(set.get() as usize).iter().copied();
            everyone.chain(some).filter_map(move |(at, part)| self.shard(at, part, group, set))
        }))
    }

    /// Where row `row`, column `column` of `table` is stored in every group.
    ///
    /// # Errors
    /// A table, row or column that does not exist.
    pub fn cell(&self, table: TableId, row: u64, column: usize) -> Result<Cell> {
        let plan = self.placed.get(table)?;
        let rows = self.tables.tables()[table].rows();
        if row >= rows {
            return Err(Error::NoSuch { kind: "row", index: row, count: rows });
        }
        let place = plan.order.as_ref().map_or(row, |order| order.place(row));
        let tier_number = plan.tiers.partition_point(|tier| tier.rows.end() <= place);
        let tier = &plan.tiers[tier_number];
        let block_number = tier.blocks.partition_point(|block| block.columns.end() <= column);
        let Some(block) = tier.blocks.get(block_number) else {
            let count = self.tables.tables()[table].dim() as u64;
            return Err(Error::NoSuch { kind: "column", index: column as u64, count });
        };
        let found = block.map.locate(place - tier.rows.start())?;
        let owner = block.owner(found.owner);
        let replica_set = ReplicaId::new(owner);
        let (part, local) = (found.owner, found.local);
        Ok(Cell { tier: tier_number, block: block_number, part, replica_set, local })
    }

    /// The rank that owns a cell in group `group` of the cell's tier.
    ///
    /// # Errors
    /// A table, row, column or group that does not exist.
    pub fn owner(&self, table: TableId, row: u64, column: usize, group: GroupId) -> Result<Rank> {
        let cell = self.cell(table, row, column)?;
        self.placed[table].tiers[cell.tier].mesh.rank_of(group, cell.replica_set)
    }

    /// The rank that owns a cell for `asker`: the owner in the group that `asker` works in.
    ///
    /// # Errors
    /// A table, row, column or rank that does not exist.
    pub fn owner_for(&self, asker: Rank, table: TableId, row: u64, column: usize) -> Result<Rank> {
        let cell = self.cell(table, row, column)?;
        let mesh = self.placed[table].tiers[cell.tier].mesh;
        mesh.rank_of(mesh.group_of(asker)?, cell.replica_set)
    }

    /// A tier of a table.
    ///
    /// # Errors
    /// A table or tier that does not exist.
    pub fn tier(&self, table: TableId, tier: usize) -> Result<&Tier> {
        let tiers = &self.placed.get(table)?.tiers;
        let count = tiers.len() as u64;
        tiers.get(tier).ok_or(Error::NoSuch { kind: "tier", index: tier as u64, count })
    }

    /// Which tier has which row, as a row map: "owner" is the tier, "local row" the row in it, so
    /// that ids are cut by tiers as they are by owners.
    ///
    /// # Errors
    /// A table that does not exist.
    pub fn tier_map(&self, table: TableId) -> Result<RowMap> {
        let plan = self.placed.get(table)?;
        let ends = plan.tiers.iter().map(|tier| tier.rows.end());
        let by_tier = RowMap::range(std::iter::once(0).chain(ends).collect())?;
        match &plan.order {
            Some(order) => RowMap::ordered(order.clone(), by_tier),
            None => Ok(by_tier),
        }
    }

    /// Which row part of a column block has which row of the tier.
    ///
    /// # Errors
    /// A table, tier or block that does not exist.
    pub fn row_map(&self, table: TableId, tier: usize, block: usize) -> Result<&RowMap> {
        let blocks = &self.tier(table, tier)?.blocks;
        let (index, count) = (block as u64, blocks.len() as u64);
        let found = blocks.get(block).ok_or(Error::NoSuch { kind: "column block", index, count });
        Ok(&found?.map)
    }

    /// The group that `rank` works in for a tier.
    ///
    /// # Errors
    /// A table, tier or rank that does not exist.
    pub fn group_of(&self, table: TableId, tier: usize, rank: Rank) -> Result<GroupId> {
        self.tier(table, tier)?.mesh.group_of(rank)
    }

    /// The ranks that hold copies of a shard, its own rank included, ascending.
    ///
    /// # Errors
    /// A shard of another plan.
    pub fn replicas_of(
        &self,
        shard: &Shard,
    ) -> Result<impl ExactSizeIterator<Item = Rank> + use<>> {
        self.tier(shard.table, shard.tier)?.mesh.replica_members(shard.replica_set)
    }

    /// Whether columns of a table are cut in any tier: then a row-wise update rule needs the
    /// statistic of the row summed over their owners.
    ///
    /// # Errors
    /// A table that does not exist.
    pub fn columns_cut(&self, table: TableId) -> Result<bool> {
        Ok(self.placed.get(table)?.tiers.iter().any(|tier| tier.blocks.len() > 1))
    }

    /// Bytes of weights and optimizer state that `rank` stores.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn bytes_of(&self, rank: Rank) -> Result<PartBytes> {
        self.check_rank(rank)?;
        Ok(self.rank_bytes(rank))
    }

    /// [`bytes_of`](Self::bytes_of) a rank that exists.
    pub(crate) fn rank_bytes(&self, rank: Rank) -> PartBytes {
        let parts = self.meshes.iter().map(|index| {
            let (_, set) = index.mesh.place_of(rank);
            index.bytes[set.get() as usize]
        });
        parts.fold(PartBytes::default(), PartBytes::plus)
    }

    fn check_rank(&self, rank: Rank) -> Result<()> {
        if rank.get() < self.world {
            return Ok(());
        }
        let (index, count) = (u64::from(rank.get()), u64::from(self.world));
        Err(Error::NoSuch { kind: "rank", index, count })
    }

    fn shard(&self, at: BlockRef, part: u32, group: GroupId, set: ReplicaId) -> Option<Shard> {
        let (tier, block, part) = (at.tier as usize, at.block as usize, part as usize);
        let in_tier = &self.placed[at.table].tiers[tier];
        let cut = &in_tier.blocks[block];
        let rows = cut.part_rows(part);
        let ranged = matches!(cut.map.kind(), RowMapKind::Range(_));
        (rows > 0).then(|| Shard {
            table: at.table,
            tier,
            block,
            part,
            rows,
            range: ranged.then(|| check::part_rows(in_tier, cut, part)),
            columns: cut.columns,
            group,
            replica_set: set,
        })
    }
}
