//! What the shards of one tier add to the loads of a group: [`add_tier`].

use super::demand::{Askers, Demand, Demands, Part};
use super::load::{Channel, Load};
use super::options::{LEAST_ROW_BYTES, POSITION_BYTES, SORT_BITS};
use super::shape::MeshShape;
use super::statistics::{STATISTIC_BYTES, Statistics};
use super::{CostOptions, ReplicaWay};
use crate::{
    Block, Exchange, Path, Per, ReplicaSync, Result, RowMapKind, RowRange, Table, TableId, Tier,
    Workload,
};
use std::ops::Range;

/// Loads of the positions of a group, and of every rank alike.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    /// `[S]`
    pub(super) positions: Vec<Load>,
    /// Of every rank, whatever it owns: rows that arrive are pooled, gradients that leave are
    /// summed.
    pub(super) each: Load,
    /// Between owners of columns of the same rows.
    pub(super) statistics: Statistics,
}

impl Loads {
    /// Nothing is loaded any more.
    pub(super) fn clear(&mut self) {
        self.positions.fill(Load::default());
        (self.each, self.statistics) = (Load::default(), Statistics::default());
    }
}

/// A tier on its way into the loads.
pub(super) struct Adding<'a> {
    pub(super) workload: &'a Workload,
    pub(super) shape: &'a MeshShape,
    pub(super) table: TableId,
    pub(super) tier: &'a Tier,
    /// Whether rows are in the order of their frequency.
    pub(super) ordered: bool,
    /// Samples of a rank.
    pub(super) samples: f64,
    pub(super) options: &'a CostOptions,
    /// 1 to add, -1 to take away.
    pub(super) sign: f64,
}

/// What one rank of a group asks of one shard.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// Bags, in every one of which the shard may have rows.
    bags: f64,
    lookups: f64,
    of_rank: f64,
    of_node: f64,
    pub(super) of_group: f64,
    pub(super) of_world: f64,
    pub(super) of_group_since: f64,
    pub(super) of_world_since: f64,
}

impl Adding<'_> {
    /// Adds the tier to `loads`.
    pub(super) fn run(&self, demands: &mut Demands, loads: &mut Loads) -> Result<()> {
        let askers = Askers::of(self.shape, self.tier.sync);
        let (workload, rows) = (self.workload, self.tier.rows);
        let demand = demands.of(workload, self.table, rows, self.samples, askers)?;
        let mut by_block = Vec::with_capacity(self.tier.blocks.len());
        for block in &self.tier.blocks {
            let width = block.columns.columns();
            let asked = self.asked(demands, askers, demand, block)?;
            for &(owner, rows, asked) in &asked {
                let load = self.shard(width, rows, asked);
                loads.positions[owner as usize] += load.times(self.sign);
            }
            self.block(width, &asked, demand, loads);
            by_block.push(asked);
        }
        if shares_statistics(self.shape_of_table(), self.tier) {
            self.statistics(&by_block, &mut loads.statistics);
        }
        Ok(())
    }

    /// Every owner tells the owners of the other columns the statistics of its touched rows.
    fn statistics(&self, by_block: &[Vec<(u32, u64, Asked)>], statistics: &mut Statistics) {
        let blocks = self.tier.blocks.iter().zip(by_block);
        for (number, (block, asked)) in blocks.enumerate() {
            let others = self.tier.blocks.iter().zip(by_block).enumerate();
            for (_, (other, told)) in others.filter(|(other, _)| *other != number) {
                for (part, (owner, _, asked)) in asked.iter().enumerate() {
                    let bytes = self.sign * self.touched(*asked) * STATISTIC_BYTES;
                    if other.map == block.map {
                        statistics.add(self.shape, (*owner, told[part].0), bytes);
                        continue;
                    }
                    // Rows that are cut in another way are with all owners.
                    for (to, rows, _) in told {
                        let some = bytes * *rows as f64 / self.tier.rows.rows() as f64;
                        statistics.add(self.shape, (*owner, *to), some);
                    }
                }
            }
        }
    }

    /// Rows that an owner updates.
    fn touched(&self, asked: Asked) -> f64 {
        match self.tier.sync {
            ReplicaSync::Gradients => asked.of_world,
            _ => asked.of_group,
        }
    }

    /// Owner, rows and what is asked of every part of a column block that has rows.
    fn asked(
        &self,
        demands: &mut Demands,
        askers: Askers,
        demand: Demand,
        block: &Block,
    ) -> Result<Vec<(u32, u64, Asked)>> {
        let (workload, table, rows) = (self.workload, self.table, self.tier.rows);
        let mut asked = Vec::with_capacity(block.owners.len());
        if let RowMapKind::Range(starts) = block.map.kind()
            && self.ordered
        {
            // The first part has the hottest rows, and so on: each is a tier of its own.
            for (owner, pair) in block.owners.iter().zip(starts.windows(2)) {
                if pair[0] < pair[1] {
                    let part = RowRange::new(rows.start() + pair[0], rows.start() + pair[1])?;
                    let demand = demands.of(workload, table, part, self.samples, askers)?;
                    let whole = Part { rows: part.rows(), lookups: 1.0, distinct: 1.0 };
                    asked.push((owner, part.rows(), Asked::of(demand, &whole)));
                }
            }
            return Ok(asked);
        }
        let parts = demands.parts(workload, table, rows, self.ordered, &block.map)?;
        for (owner, part) in block.owners.iter().zip(&*parts).filter(|(_, part)| part.rows > 0) {
            asked.push((owner, part.rows, Asked::of(demand, part)));
        }
        Ok(asked)
    }

    /// What a column block adds beyond its owners.
    fn block(&self, width: usize, asked: &[(u32, u64, Asked)], demand: Demand, loads: &mut Loads) {
        match self.tier.exchange {
            Exchange::Reduce { over: Path::Hierarchical } => {
                let owners = asked.iter().map(|(owner, ..)| *owner);
                self.sums_of_nodes(width, demand.bags, owners, loads);
            }
            Exchange::Unique { per: Per::Node } => {
                let asked = asked.iter().map(|(owner, _, asked)| (*owner, asked.of_rank));
                self.rows_of_rails(width, asked, loads);
                loads.each += self.arrived(width, demand).times(self.sign);
            }
            Exchange::Unique { per: Per::Rank } | Exchange::Rows => {
                loads.each += self.arrived(width, demand).times(self.sign);
            }
            Exchange::Local | Exchange::Reduce { over: Path::Flat } => {}
        }
    }

    /// What a shard asks of its owner, and the channels that belong to the owner alone.
    pub(super) fn shard(&self, width: usize, rows: u64, asked: Asked) -> Load {
        let group = f64::from(self.shape.mesh.group_ranks());
        let id = f64::from(self.workload.ids().bytes());
        let lengths = asked.bags * f64::from(self.workload.length_bytes());
        // Of the list of rows that a peer asks for.
        let length = f64::from(self.options.count_bytes);
        let sent = self.workload.outputs().row_bytes(width) as f64;
        let back = self.workload.gradients().row_bytes(width) as f64;
        let channel = |ids, rows| Channel { ids, outputs: rows * sent, gradients: rows * back };
        let mut load = self.stored(width, rows, asked);
        // Ids that arrive at the owner, and the rows or sums that leave it.
        let (ids, outputs) = match self.tier.exchange {
            Exchange::Local => (asked.lookups, asked.bags),
            Exchange::Reduce { over: Path::Flat } => {
                load.flat = channel(asked.lookups * id + lengths, asked.bags);
                (group * asked.lookups, group * asked.bags)
            }
            Exchange::Reduce { over: Path::Hierarchical } => {
                load.flat = channel(asked.lookups * id + lengths, 0.0);
                load.node = channel(0.0, f64::from(self.shape.parts()) * asked.bags);
                (group * asked.lookups, group * asked.bags)
            }
            Exchange::Unique { per: Per::Rank } => {
                let ids = asked.of_rank * id + length;
                load.flat = channel(ids, asked.of_rank);
                (group * asked.of_rank, group * asked.of_rank)
            }
            Exchange::Unique { per: Per::Node } => {
                let ids = asked.of_node * id + length;
                load.rail = channel(ids, asked.of_node);
                let nodes = f64::from(self.shape.parts());
                (nodes * asked.of_node, nodes * asked.of_node)
            }
            Exchange::Rows => {
                let ids = asked.lookups * id + length;
                load.flat = channel(ids, asked.lookups);
                (group * asked.lookups, group * asked.lookups)
            }
        };
        let row = (width as f64 * f64::from(self.workload.rows().bytes())).max(LEAST_ROW_BYTES);
        load.lookup = ids * (row + id) + outputs * sent;
        load.update += sort_bytes(ids, rows, id) + ids * width as f64 * 4.0;
        load
    }

    /// Memory, updates of touched rows, and what replicas tell each other.
    fn stored(&self, width: usize, rows: u64, asked: Asked) -> Load {
        let table = self.shape_of_table();
        let bytes = table.part_bytes(rows, width);
        let weight_row = width as f64 * f64::from(table.element_bytes());
        let state = table.state();
        let state_row = f64::from(state.per_row) + width as f64 * f64::from(state.per_element);
        let touched = self.touched(asked);
        let averaged_row = state_row
            + match self.options.replica_way {
                ReplicaWay::Rings => weight_row,
                ReplicaWay::Direct => self.workload.synced().row_bytes(width) as f64,
            };
        let synced = self.synced(width, rows, asked, averaged_row);
        Load {
            weights: bytes.weights.get() as f64,
            state: bytes.state.get() as f64,
            update: 2.0 * touched * (weight_row.max(LEAST_ROW_BYTES) + state_row),
            reduced: synced.reduced,
            gathered: synced.gathered,
            staged: self.staged(synced),
            ..Load::default()
        }
    }

    /// Partial sums of a node meet on the rank that has the destination's index and leave from
    /// there (`HugeCTR`, `HierModelParallelEmbedding`): one sum a bag for every node with owners.
    fn sums_of_nodes(
        &self,
        width: usize,
        bags: f64,
        owners: impl Iterator<Item = u32>,
        loads: &mut Loads,
    ) {
        let part = self.shape.part;
        let mut nodes: Vec<u32> = owners.map(|owner| owner / part).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let outputs = bags * self.workload.outputs().row_bytes(width) as f64 * self.sign;
        let gradients = bags * self.workload.gradients().row_bytes(width) as f64 * self.sign;
        for node in nodes {
            for load in &mut loads.positions[node_range(node, part)] {
                load.rail.outputs += outputs;
                load.rail.gradients += gradients;
            }
        }
    }

    /// Ids for owners on one rail, and the rows that come back, pass the rank of the node that is
    /// on this rail.
    fn rows_of_rails(
        &self,
        width: usize,
        asked: impl Iterator<Item = (u32, f64)>,
        loads: &mut Loads,
    ) {
        let part = self.shape.part;
        let mut by_rail = vec![(0.0, 0.0); part as usize];
        for (owner, rows) in asked {
            let (all, lists) = &mut by_rail[(owner % part) as usize];
            *all += rows * self.sign;
            *lists += self.sign;
        }
        let id = f64::from(self.workload.ids().bytes());
        let length = f64::from(self.options.count_bytes);
        let sent = self.workload.outputs().row_bytes(width) as f64;
        let back = self.workload.gradients().row_bytes(width) as f64;
        for node in loads.positions.chunks_mut(part as usize) {
            for (load, &(rows, lists)) in node.iter_mut().zip(&by_rail) {
                let ids = rows * id + lists * length;
                load.node += Channel { ids, outputs: rows * sent, gradients: rows * back };
            }
        }
    }

    /// Rows that arrived are pooled, and gradients of bags are summed by row before they leave.
    pub(super) fn arrived(&self, width: usize, demand: Demand) -> Load {
        let row = width as f64 * 4.0;
        let sent = self.workload.outputs().row_bytes(width) as f64;
        let back = self.workload.gradients().row_bytes(width) as f64;
        let rows = match self.tier.exchange {
            Exchange::Rows => demand.lookups,
            _ => demand.of_rank,
        };
        let id = f64::from(self.workload.ids().bytes());
        let sorted = match self.tier.exchange {
            Exchange::Rows => 0.0,
            _ => sort_bytes(demand.lookups, self.tier.rows.rows(), id),
        };
        Load {
            lookup: demand.lookups * sent + demand.bags * row,
            update: sorted + demand.lookups * row + rows * back,
            ..Load::default()
        }
    }

    fn shape_of_table(&self) -> &Table {
        &self.workload.tables().tables()[self.table]
    }
}

impl Askers {
    /// Those of a tier over groups of this shape.
    pub(super) fn of(shape: &MeshShape, sync: ReplicaSync) -> Self {
        let steps = match sync {
            ReplicaSync::TouchedRows { every } => every.get(),
            _ => 1,
        };
        Self { node: shape.part, group: shape.mesh.group_ranks(), world: shape.mesh.world(), steps }
    }
}

impl Asked {
    pub(super) fn of(demand: Demand, part: &Part) -> Self {
        // No part can be asked for more distinct rows than it has.
        let distinct = |all: f64| (all * part.distinct).min(part.rows as f64);
        Self {
            bags: demand.bags,
            lookups: demand.lookups * part.lookups,
            of_rank: distinct(demand.of_rank),
            of_node: distinct(demand.of_node),
            of_group: distinct(demand.of_group),
            of_world: distinct(demand.of_world),
            of_group_since: distinct(demand.of_group_since),
            of_world_since: distinct(demand.of_world_since),
        }
    }
}

/// Whether owners of columns tell each other statistics: where the rule keeps state by row, which
/// only rules do that need the whole row.
pub(super) fn shares_statistics(table: &Table, tier: &Tier) -> bool {
    tier.blocks.len() > 1 && table.state().per_row > 0
}

/// Bytes that a radix sort of `ids` ids of `rows` rows moves: every pass reads and writes each id
/// and its position.
fn sort_bytes(ids: f64, rows: u64, id_bytes: f64) -> f64 {
    let bits = u64::BITS - rows.saturating_sub(1).leading_zeros();
    2.0 * ids * (id_bytes + POSITION_BYTES) * f64::from(bits.div_ceil(SORT_BITS).max(1))
}

fn node_range(node: u32, part: u32) -> Range<usize> {
    (node * part) as usize..((node + 1) * part) as usize
}
