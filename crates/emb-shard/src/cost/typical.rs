//! What a table costs the mean rank, cut evenly, wherever its owners are: [`Typical`].

use super::demand::{Askers, Part};
use super::ledger::Ledger;
use super::load::{Channel, Load};
use super::shape::MeshShape;
use super::shard::{Adding, Asked};
use super::volume::{SCOPES, Scope};
use crate::{Exchange, Mesh, Path, Per, ReplicaSync, Result, RowRange, TableId, Tier, Topology};

/// A tier cut into parts of equal rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvenCut {
    pub(crate) rows: RowRange,
    pub(crate) mesh: Mesh,
    pub(crate) exchange: Exchange,
    pub(crate) sync: ReplicaSync,
    pub(crate) row_parts: u32,
    pub(crate) blocks: u32,
    /// Nodes that have owners of a block.
    pub(crate) nodes: u32,
}

/// What a cut costs, as means over the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Typical {
    /// Seconds of the exchange of ids.
    pub(crate) ids: f64,
    /// Seconds of all else.
    pub(crate) rest: f64,
    /// Bytes that leave the node.
    pub(crate) inter_node: f64,
    /// Bytes of weights and optimizer state.
    pub(crate) stored: f64,
    /// Bytes of buffers.
    pub(crate) buffers: f64,
}

impl Typical {
    /// Adds another tier of the same table.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ids += other.ids;
        self.rest += other.rest;
        self.inter_node += other.inter_node;
        self.stored += other.stored;
        self.buffers += other.buffers;
    }
}

/// What a byte between an owner and each of its peers takes, as means over the ranks.
#[derive(Clone, Debug)]
pub(super) struct MeshRates {
    pub(super) mesh: Mesh,
    shape: MeshShape,
    /// By scope: seconds, bytes that leave the node, ranks.
    scopes: [Reach; 3],
    /// Seconds and bytes outside the node of a byte that replicas sum.
    reduced: (f64, f64),
    /// Of a byte that every replica tells the others.
    gathered: (f64, f64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    seconds: f64,
    outside: f64,
    ranks: f64,
}

impl MeshRates {
    fn new(ledger: &Ledger<'_>, mesh: Mesh) -> Result<Self> {
        let topology = ledger.topology;
        let shape = MeshShape::new(mesh, ledger.node_ranks(), topology)?;
        let world = f64::from(mesh.world());
        let mut rates = Self {
            mesh,
            shape,
            scopes: [Reach::default(); 3],
            reduced: (0.0, 0.0),
            gathered: (0.0, 0.0),
        };
        let links = ledger.model.options.link_efficiency;
        for place in 0..mesh.world() as usize {
            for (reach, scope) in rates.scopes.iter_mut().zip(SCOPES) {
                reach.add(&rates.shape, topology, scope, place, world, links);
            }
            for (number, level) in topology.levels().iter().enumerate() {
                let copies = rates.shape.copies(number, place);
                let by = 1.0 / (level.best_bandwidth_at() * links * world);
                let sum = ledger.model.options.replica_way.part(copies, mesh.replicas());
                let told = f64::from(copies.others());
                rates.reduced.0 += sum * by;
                rates.gathered.0 += told * by;
                if number > 0 {
                    rates.reduced.1 += sum / world;
                    rates.gathered.1 += told / world;
                }
            }
        }
        Ok(rates)
    }
}

impl Reach {
    fn add(
        &mut self,
        shape: &MeshShape,
        topology: &Topology,
        scope: Scope,
        place: usize,
        world: f64,
        links: f64,
    ) {
        let mut inside = 1;
        for (number, level) in topology.levels().iter().enumerate() {
            let here = super::volume::run(shape, scope, number, place).count();
            if here > inside {
                let peers = here - inside;
                let bandwidth = level.best_bandwidth(peers) * links;
                self.seconds += f64::from(peers) / bandwidth / world;
                if number > 0 {
                    self.outside += f64::from(peers) / world;
                }
                inside = here;
            }
        }
        self.ranks += f64::from(inside) / world;
    }
}

impl Ledger<'_> {
    /// What `table` costs the mean rank, cut as `cut` says; what was added before does not matter.
    pub(crate) fn typical(&mut self, table: TableId, cut: &EvenCut) -> Result<Typical> {
        let known = self.rates.iter().position(|rates| rates.mesh == cut.mesh);
        let at = if let Some(at) = known {
            at
        } else {
            let rates = MeshRates::new(self, cut.mesh)?;
            self.rates.push(rates);
            self.rates.len() - 1
        };
        let total = self.total(table, cut, at)?;
        let rates = &self.rates[at];
        let options = &self.model.options;
        let memory = self.topology.memory_bandwidth() * options.memory_efficiency
            / options.slowest(self.topology.world());
        let group = f64::from(cut.mesh.group_ranks());
        let mut typical = Typical {
            rest: (total.lookup + total.update) / group / memory,
            stored: (total.weights + total.state) / group,
            ..Typical::default()
        };
        for (reach, scope) in rates.scopes.iter().zip(SCOPES) {
            let channel: Channel = scope.channel(&total);
            let (ids, outputs) =
                (channel.ids / group, (channel.outputs + channel.gradients) / group);
            typical.ids += ids * reach.seconds;
            typical.rest += outputs * reach.seconds;
            typical.inter_node += (ids + outputs) * reach.outside;
            typical.buffers += 2.0 * (ids + outputs) * reach.ranks;
        }
        typical.buffers += total.staged / group;
        let (reduced, gathered) = (total.reduced / group, total.gathered / group);
        typical.rest += reduced * rates.reduced.0 + gathered * rates.gathered.0;
        typical.inter_node += reduced * rates.reduced.1 + gathered * rates.gathered.1;
        Ok(typical)
    }

    /// The loads of all positions of a group together.
    fn total(&mut self, table: TableId, cut: &EvenCut, at: usize) -> Result<Load> {
        let workload = self.workload;
        let shape = &self.rates[at].shape;
        let askers = Askers::of(shape, cut.sync);
        let demand = self.demands.of(workload, table, cut.rows, self.samples, askers)?;
        let tier = Tier {
            rows: cut.rows,
            mesh: cut.mesh,
            exchange: cut.exchange,
            sync: cut.sync,
            blocks: Vec::new(),
        };
        let adding = Adding {
            workload,
            shape,
            table,
            tier: &tier,
            ordered: false,
            samples: self.samples,
            options: &self.model.options,
            sign: 1.0,
        };
        let dim = workload.tables().tables()[table].dim();
        let width = dim.div_ceil(cut.blocks as usize);
        let (row_parts, blocks) = (f64::from(cut.row_parts), f64::from(cut.blocks));
        let even = 1.0 / row_parts;
        let rows = cut.rows.rows().div_ceil(u64::from(cut.row_parts));
        let part = Part { rows, lookups: even, distinct: even };
        let mut total =
            adding.shard(width, rows, Asked::of(demand, &part)).times(row_parts * blocks);
        let group = f64::from(cut.mesh.group_ranks());
        let sent = workload.outputs().row_bytes(width) as f64;
        let back = workload.gradients().row_bytes(width) as f64;
        match cut.exchange {
            Exchange::Reduce { over: Path::Hierarchical } => {
                let sums = f64::from(cut.nodes) * f64::from(shape.part);
                total.rail.outputs += demand.bags * sent * blocks * sums;
                total.rail.gradients += demand.bags * back * blocks * sums;
            }
            Exchange::Unique { per: Per::Node } => {
                let id = f64::from(workload.ids().bytes());
                let rows = demand.of_rank * blocks * f64::from(shape.parts());
                total.node +=
                    Channel { ids: rows * id, outputs: rows * sent, gradients: rows * back };
                total += adding.arrived(width, demand).times(blocks * group);
            }
            Exchange::Unique { per: Per::Rank } | Exchange::Rows => {
                total += adding.arrived(width, demand).times(blocks * group);
            }
            Exchange::Local | Exchange::Reduce { over: Path::Flat } => {}
        }
        Ok(total)
    }
}
