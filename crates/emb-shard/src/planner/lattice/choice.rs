//! How a table may be cut, before it is said where its parts go: [`Choice`].

use crate::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, ReplicaSync, Result, RowMap, RowRange, Table,
    TablePlan, Tier,
};

/// A way to cut a table over units of a group.
///
/// A unit is one position, or all positions of a group on one node. Every column block has its
/// rows over `row_units` units; no unit has parts of two blocks. Everything between a whole table
/// and a cut over all ranks is such a choice: `EMBark`'s table x row x column scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Choice {
    pub(super) mesh: Mesh,
    pub(super) exchange: Exchange,
    pub(super) sync: ReplicaSync,
    /// Positions of a unit.
    pub(super) unit: u32,
    /// Units that a block's rows are cut over.
    pub(super) row_units: u32,
    /// Column blocks.
    pub(super) blocks: u32,
    /// Hottest rows that every rank has: a tier of their own where not 0.
    pub(super) hot: u64,
}

impl Choice {
    /// Units that the table needs.
    pub(super) fn units(&self) -> u32 {
        self.row_units * self.blocks
    }

    /// Units of a group.
    pub(super) fn of_group(&self) -> u32 {
        self.mesh.group_ranks() / self.unit
    }

    /// Positions that own a part.
    pub(super) fn owners(&self) -> u32 {
        self.units() * self.unit
    }

    /// Whether every unit has a part, so that there is nothing to choose.
    pub(super) fn is_everywhere(&self) -> bool {
        self.units() == self.of_group()
    }

    /// The table over `units`, block by block.
    pub(super) fn plan(&self, table: &Table, units: &[u32]) -> Result<TablePlan> {
        let mut tiers = Vec::with_capacity(2);
        if self.hot > 0 {
            let mesh = Mesh::new(self.mesh.world(), 1, Layout::Strided)?;
            let columns = ColRange::new(0, table.dim())?;
            let map = RowMap::modulo(self.hot, 1)?;
            tiers.push(Tier {
                rows: RowRange::new(0, self.hot)?,
                mesh,
                exchange: Exchange::Local,
                sync: ReplicaSync::Gradients,
                blocks: vec![Block { columns, map, owners: Owners::span(0, 1) }],
            });
        }
        let rows = RowRange::new(self.hot, table.rows())?;
        // Rows are dealt out in turn, so that hot rows do not meet on one owner.
        let map = RowMap::modulo(rows.rows(), (self.row_units * self.unit) as usize)?;
        let widths = RowMap::even(table.dim() as u64, self.blocks as usize)?;
        let mut blocks = Vec::with_capacity(self.blocks as usize);
        let mut first = 0;
        for (block, units) in units.chunks(self.row_units as usize).enumerate() {
            let end = first + widths.rows_of(block)? as usize;
            let positions = |&unit: &u32| unit * self.unit..(unit + 1) * self.unit;
            let owners: Vec<u32> = units.iter().flat_map(positions).collect();
            blocks.push(Block {
                columns: ColRange::new(first, end)?,
                map: map.clone(),
                owners: Owners::list(&owners),
            });
            first = end;
        }
        let (mesh, exchange, sync) = (self.mesh, self.exchange, self.sync);
        tiers.push(Tier { rows, mesh, exchange, sync, blocks });
        Ok(TablePlan { table: table.name().to_owned(), order: None, tiers })
    }
}
