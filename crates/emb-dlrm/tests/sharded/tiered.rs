//! Plans whose tables are all cut into the same tiers.

use crate::support::Model;
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, Path, Per, Plan, PlanSpec, ReplicaSync,
    RowMap, RowOrder, RowRange, TablePlan, Tier,
};

pub(crate) const REDUCE: Exchange = Exchange::Reduce { over: Path::Flat };
pub(crate) const REDUCE_BY_NODE: Exchange = Exchange::Reduce { over: Path::Hierarchical };
pub(crate) const UNIQUE: Exchange = Exchange::Unique { per: Per::Rank };
pub(crate) const UNIQUE_BY_NODE: Exchange = Exchange::Unique { per: Per::Node };

/// Exchanges that serve pooled features in groups of several ranks.
pub(crate) const POOLED: [Exchange; 4] = [REDUCE, REDUCE_BY_NODE, UNIQUE, UNIQUE_BY_NODE];

/// How a row block lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives {
    /// Ranks of a group.
    pub(crate) group: u32,
    /// In groups of several ranks.
    pub(crate) exchange: Exchange,
    /// Of several replicas.
    pub(crate) sync: ReplicaSync,
    /// Column blocks, as many as there are columns at most.
    pub(crate) blocks: usize,
}

/// Ranks, nodes, and how tables are cut.
#[derive(Clone, Debug)]
pub(crate) struct Tiers {
    pub(crate) world: u32,
    pub(crate) node_ranks: u32,
    /// The place of each row, of all tables.
    pub(crate) order: Option<Vec<u64>>,
    /// How many rows live how; the last have all that are left.
    pub(crate) rows: Vec<(u64, Lives)>,
}

impl Lives {
    /// Once in every `group` ranks, rows whole, replicas exact.
    pub(crate) fn new(group: u32, exchange: Exchange) -> Self {
        Self { group, exchange, sync: ReplicaSync::Gradients, blocks: 1 }
    }

    fn tier(self, world: u32, rows: RowRange, dim: usize) -> Tier {
        let mesh = Mesh::new(world, self.group, Layout::Contiguous).expect("a mesh");
        let columns = RowMap::even(dim as u64, self.blocks.min(dim)).expect("columns");
        let mut blocks: Vec<Block> = Vec::new();
        for block in 0..columns.owners() {
            let first = blocks.last().map_or(0, |block| block.columns.end());
            let width = columns.rows_of(block).expect("a block") as usize;
            blocks.push(Block {
                columns: ColRange::new(first, first + width).expect("columns"),
                map: RowMap::modulo(rows.rows(), self.group as usize).expect("a map"),
                owners: Owners::span(0, self.group),
            });
        }
        let exchange = if self.group == 1 { Exchange::Local } else { self.exchange };
        let sync = if mesh.replicas() == 1 { ReplicaSync::None } else { self.sync };
        Tier { rows, mesh, exchange, sync, blocks }
    }
}

impl Tiers {
    /// Four ranks on two nodes, all tables alike.
    pub(crate) fn of_four(lives: Lives) -> Self {
        Self { world: 4, node_ranks: 2, order: None, rows: vec![(0, lives)] }
    }

    /// The first `rows` rows on every rank, the others as they are.
    pub(crate) fn with_hot(mut self, rows: u64) -> Self {
        if rows > 0 {
            let sync = self.rows[0].1.sync;
            self.rows.insert(0, (rows, Lives { sync, ..Lives::new(1, Exchange::Local) }));
        }
        self
    }

    pub(crate) fn plan(&self, model: &Model) -> Plan {
        let tables = model.specs.iter().map(|spec| {
            let (mut first, mut tiers) = (0, Vec::new());
            for (number, &(rows, lives)) in self.rows.iter().enumerate() {
                let last = number + 1 == self.rows.len();
                let end = if last { spec.rows } else { spec.rows.min(first + rows) };
                if first < end {
                    let rows = RowRange::new(first, end).expect("rows");
                    tiers.push(lives.tier(self.world, rows, spec.dim));
                }
                first = end;
            }
            let order =
                self.order.clone().map(|places| RowOrder::new(places).expect("a permutation"));
            TablePlan { table: spec.name.clone(), order, tiers }
        });
        let spec =
            PlanSpec { world: self.world, node_ranks: self.node_ranks, tables: tables.collect() };
        Plan::new(&model.tables(), spec).expect("a plan")
    }
}
