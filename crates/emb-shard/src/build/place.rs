//! One table with a placement becomes tiers: owners chosen, loads updated.

use super::loads::Loads;
use super::{DoesNotFit, PlaceOptions, Placement, RowCut};
use crate::{
    Block, Bytes, ColRange, Error, Exchange, Layout, Mesh, NodeSplit, Owners, Path, Per, Pooling,
    ReplicaSync, Result, RowMap, RowRange, Table, TablePlan, Tier,
};
use std::num::NonZeroU32;

/// Places one table in every group, and adds its parts to `loads`.
pub(super) fn place(
    table: &Table,
    options: PlaceOptions,
    builder_mesh: Mesh,
    node_ranks: u32,
    loads: &mut Loads,
) -> Result<TablePlan> {
    let mesh = mesh_of(options, builder_mesh)?;
    let mut placing = Placing { table, placement: options.placement, mesh, node_ranks, loads };
    let blocks = placing.blocks()?;
    let tier = Tier {
        rows: RowRange::new(0, table.rows())?,
        mesh,
        exchange: options.exchange.unwrap_or_else(|| usual_exchange(table, mesh)),
        sync: options.sync.unwrap_or_else(|| usual_sync(options.placement, mesh)),
        blocks,
    };
    Ok(TablePlan { table: table.name().to_owned(), order: None, tiers: vec![tier] })
}

/// The mesh that a placement uses.
pub(super) fn mesh_of(options: PlaceOptions, mesh: Mesh) -> Result<Mesh> {
    match (options.placement, options.group) {
        (Placement::DataParallel, _) => Mesh::new(mesh.world(), 1, Layout::Strided),
        (_, Some((ranks, layout))) => Mesh::new(mesh.world(), ranks, layout),
        (_, None) => Ok(mesh),
    }
}

/// Mean weights read by the whole table for a sample of the global batch, in one group.
pub(super) fn cost(table: &Table, mesh: Mesh) -> f64 {
    let served = f64::from(mesh.group_ranks()) / f64::from(mesh.world());
    served * table.lookups() * table.dim() as f64
}

pub(crate) fn usual_exchange(table: &Table, mesh: Mesh) -> Exchange {
    match table.pooling() {
        _ if mesh.group_ranks() == 1 => Exchange::Local,
        Pooling::Sum | Pooling::Mean => Exchange::Reduce { over: Path::Flat },
        Pooling::None => Exchange::Unique { per: Per::Rank },
    }
}

pub(crate) fn usual_sync(placement: Placement, mesh: Mesh) -> ReplicaSync {
    match placement {
        _ if mesh.replicas() == 1 => ReplicaSync::None,
        Placement::DataParallel => ReplicaSync::Gradients,
        _ => ReplicaSync::Weights { every: NonZeroU32::MIN },
    }
}

struct Placing<'a> {
    table: &'a Table,
    placement: Placement,
    mesh: Mesh,
    node_ranks: u32,
    loads: &'a mut Loads,
}

impl Placing<'_> {
    fn blocks(&mut self) -> Result<Vec<Block>> {
        let group = self.mesh.group_ranks();
        match self.placement {
            Placement::TableWise { owner } => {
                let chosen = owner.map(|owner| vec![owner]);
                self.cut(RowCut::Ceil, 1, group, 1, chosen)
            }
            Placement::RowWise { cut } => self.cut(cut, group, 1, 1, Some(vec![0])),
            Placement::ColumnWise { parts } => {
                self.cut(RowCut::Ceil, 1, group, parts.unwrap_or(group), None)
            }
            Placement::DataParallel => self.cut(RowCut::Ceil, 1, 1, 1, Some(vec![0])),
            Placement::TableRowWise { cut, node } => {
                let split = self.split()?;
                let chosen = node.map(|node| vec![node]);
                self.cut(cut, split.part_ranks(), split.parts(), 1, chosen)
            }
            Placement::Grid { cut, parts } => {
                let split = self.split()?;
                let parts = parts.unwrap_or(split.parts());
                self.cut(cut, split.part_ranks(), split.parts(), parts, None)
            }
        }
    }

    /// `parts` column blocks, each on one run of `width` positions of the group's `runs`, its rows
    /// cut over them.
    fn cut(
        &mut self,
        cut: RowCut,
        width: u32,
        runs: u32,
        parts: u32,
        chosen: Option<Vec<u32>>,
    ) -> Result<Vec<Block>> {
        if parts == 0 || parts > runs {
            let what =
                format!("{parts} column blocks: must be 1..={runs}, each on ranks of its own");
            return Err(self.refuse(what));
        }
        if let Some(&run) = chosen.iter().flatten().find(|&&run| run >= runs) {
            return Err(
                self.refuse(format!("place {run} of its group does not exist: there are {runs}"))
            );
        }
        let parts = parts.min(u32::try_from(self.table.dim()).unwrap_or(u32::MAX));
        let map = cut.map(self.table.rows(), width)?;
        // The widest block and the longest part come first.
        let widest = self.table.dim().div_ceil(parts as usize);
        let needs = self.table.part_bytes(map.rows_of(0)?, widest).total();
        let chosen = match chosen {
            Some(chosen) => chosen,
            None => self
                .loads
                .least(self.mesh, width, parts, needs)
                .map_err(|has| self.does_not_fit(needs, has))?,
        };
        let starts = RowMap::even(self.table.dim() as u64, parts as usize)?;
        let mut blocks = Vec::with_capacity(parts as usize);
        let mut first = 0;
        for (block, &run) in chosen.iter().enumerate() {
            let columns = starts.rows_of(block)? as usize;
            let columns = ColRange::new(first, first + columns)?;
            first = columns.end();
            let owners = Owners::span(run * width, width);
            self.add(&map, columns.columns(), &owners)?;
            blocks.push(Block { columns, map: map.clone(), owners });
        }
        Ok(blocks)
    }

    /// Adds a column block to the loads.
    fn add(&mut self, map: &RowMap, columns: usize, owners: &Owners) -> Result<()> {
        let width_cost = cost(self.table, self.mesh) * columns as f64 / self.table.dim() as f64;
        for (part, owner) in owners.iter().enumerate() {
            let rows = map.rows_of(part)?;
            let needs = self.table.part_bytes(rows, columns).total();
            let has = self.loads.room(self.mesh, owner);
            if needs > has {
                return Err(self.does_not_fit(needs, has));
            }
            let cost = width_cost * rows as f64 / self.table.rows() as f64;
            self.loads.add(self.mesh, owner, cost, needs);
        }
        Ok(())
    }

    fn split(&self) -> Result<NodeSplit> {
        NodeSplit::new(self.mesh, self.node_ranks)?.ok_or_else(|| {
            let (nodes, group) = (self.node_ranks, self.mesh.group_ranks());
            self.refuse(format!("nodes of {nodes} cut groups of {group} unevenly"))
        })
    }

    fn refuse(&self, what: String) -> Error {
        let (table, placement) = (self.table.name().to_owned(), self.placement.name());
        Error::Placement { table, placement, what }
    }

    fn does_not_fit(&self, needs: Bytes, has: Bytes) -> Error {
        let budget = self.loads.budget();
        Error::DoesNotFit(Box::new(DoesNotFit::new(
            self.table,
            self.placement.name(),
            self.mesh,
            needs,
            has,
            budget,
        )))
    }
}
