//! The reference: every pair of ranks, every tier, block and part, one after the other.

use crate::case::Case;
use crate::formulas::{message, sort};
use crate::pairs::{Pairs, Scope, both, buffers};
use crate::parts::{Asked, Asking};
use emb_shard::{
    Block, Exchange, GradientSum, LevelBytes, LevelId, Mesh, NodeSplit, Parts, Path, PeakBytes,
    Per, Rank, RankEstimate, ReplicaSync, ReplicaWay, TableId, TablePlan, Tier,
};

pub(crate) struct Reference<'a> {
    case: &'a Case,
    world: usize,
    pairs: Vec<Pairs>,
    /// By mesh: statistics of rows from rank to rank, and of which exchanges.
    statistics: Vec<(Mesh, Vec<Vec<f64>>, Vec<Exchange>)>,
    syncs: Vec<(Mesh, ReplicaSync)>,
    /// By mesh and rank: bytes to be summed, bytes told to every other replica.
    replicas: Vec<(Mesh, Vec<(f64, f64)>)>,
    pub(crate) ranks: Vec<RankEstimate>,
}

pub(crate) fn reference(case: &Case) -> Vec<RankEstimate> {
    let (world, levels) = (case.topology.world(), case.topology.levels().len());
    let rank = |rank| RankEstimate {
        rank,
        exchanged: vec![LevelBytes::default(); levels],
        synced: vec![LevelBytes::default(); levels],
        ..RankEstimate::default()
    };
    let mut reference = Reference {
        case,
        world: world as usize,
        pairs: Vec::new(),
        statistics: Vec::new(),
        syncs: Vec::new(),
        replicas: Vec::new(),
        ranks: (0..world).map(rank).collect(),
    };
    for (table, plan) in case.plan.placed().iter() {
        for tier in &plan.tiers {
            reference.tier(table, plan, tier);
        }
    }
    reference.travel();
    reference.tell();
    reference.agree();
    reference.dense();
    reference.ranks
}

fn number(rank: Rank) -> usize {
    rank.get() as usize
}

impl Reference<'_> {
    fn split(&self, mesh: Mesh) -> Option<NodeSplit> {
        NodeSplit::new(mesh, self.case.plan.node_ranks()).expect("nodes")
    }

    /// The ranks with which `rank` shares a scope, itself included.
    fn peers(&self, mesh: Mesh, scope: Scope, rank: usize) -> Vec<usize> {
        let rank = Rank::new(rank as u32);
        let split = || self.split(mesh).expect("exchanges by node have even nodes");
        let ranks: Vec<Rank> = match scope {
            Scope::Group => {
                mesh.group_members(mesh.group_of(rank).expect("so")).expect("so").collect()
            }
            Scope::Node => split().node_of(rank).expect("so").collect(),
            Scope::Rail => split().rail_of(rank).expect("so").collect(),
        };
        ranks.into_iter().map(number).collect()
    }

    fn pairs(&mut self, mesh: Mesh, scope: Scope, exchange: Exchange) -> &mut Pairs {
        let found = self.pairs.iter().position(|pairs| pairs.mesh == mesh && pairs.scope == scope);
        let at = found.unwrap_or_else(|| {
            let zeros = vec![vec![0.0; self.world]; self.world];
            let [ids, outputs, gradients] = [zeros.clone(), zeros.clone(), zeros];
            let exchanges = Vec::new();
            self.pairs.push(Pairs { mesh, scope, ids, outputs, gradients, exchanges });
            self.pairs.len() - 1
        });
        let pairs = &mut self.pairs[at];
        if !pairs.exchanges.contains(&exchange) {
            pairs.exchanges.push(exchange);
        }
        pairs
    }

    fn tier(&mut self, table: TableId, plan: &TablePlan, tier: &Tier) {
        let mesh = tier.mesh;
        let node = self.split(mesh).map_or(mesh.group_ranks(), |split| split.part_ranks());
        let asking = Asking { case: self.case, table, plan, tier, node };
        if !self.syncs.contains(&(mesh, tier.sync)) {
            self.syncs.push((mesh, tier.sync));
        }
        for block in &tier.blocks {
            let width = block.columns.columns();
            let parts = asking.parts(block);
            for group in 0..mesh.replicas() {
                let members: Vec<usize> = mesh
                    .group_members(emb_shard::GroupId::new(group))
                    .expect("a group")
                    .map(number)
                    .collect();
                for (position, asked) in &parts {
                    let owner = members[*position as usize];
                    self.part(tier, width, owner, &members, asked);
                    self.owner(table, tier, width, owner, asked);
                }
                self.sums_of_nodes(&asking, width, &members, &parts);
                self.statistics(&asking, block, &members, &parts);
                self.arrived(&asking, width, &members);
            }
        }
    }

    /// The ways between one owner and those who ask it.
    fn part(&mut self, tier: &Tier, width: usize, owner: usize, members: &[usize], asked: &Asked) {
        let (mesh, exchange) = (tier.mesh, tier.exchange);
        let workload = &self.case.workload;
        let id = f64::from(workload.ids().bytes());
        let sent = both(workload, width);
        let bags = asked.lookups * id + asked.bags * f64::from(workload.length_bytes());
        let length = f64::from(self.case.model.options.count_bytes);
        match exchange {
            Exchange::Local => {}
            Exchange::Reduce { over: Path::Flat } => {
                let pairs = self.pairs(mesh, Scope::Group, exchange);
                for &asker in members {
                    pairs.ids[asker][owner] += bags;
                    pairs.add(owner, asker, asked.bags, sent);
                }
            }
            Exchange::Reduce { over: Path::Hierarchical } => {
                let pairs = self.pairs(mesh, Scope::Group, exchange);
                for &asker in members {
                    pairs.ids[asker][owner] += bags;
                }
                // A rank of the node gets the sums for all ranks on its rail.
                for near in self.peers(mesh, Scope::Node, owner) {
                    let rail = self.peers(mesh, Scope::Rail, near).len() as f64;
                    let pairs = self.pairs(mesh, Scope::Node, exchange);
                    pairs.add(owner, near, rail * asked.bags, sent);
                }
            }
            Exchange::Unique { per: Per::Rank } => {
                let pairs = self.pairs(mesh, Scope::Group, exchange);
                for &asker in members {
                    pairs.ids[asker][owner] += asked.of_rank * id + length;
                    pairs.add(owner, asker, asked.of_rank, sent);
                }
            }
            Exchange::Unique { per: Per::Node } => {
                let rail = self.peers(mesh, Scope::Rail, owner);
                for &asker in members {
                    let near = self.peers(mesh, Scope::Node, asker);
                    let between = near.into_iter().find(|rank| rail.contains(rank)).expect("one");
                    let pairs = self.pairs(mesh, Scope::Node, exchange);
                    pairs.ids[asker][between] += asked.of_rank * id + length;
                    pairs.add(between, asker, asked.of_rank, sent);
                }
                let pairs = self.pairs(mesh, Scope::Rail, exchange);
                for between in rail {
                    pairs.ids[between][owner] += asked.of_node * id + length;
                    pairs.add(owner, between, asked.of_node, sent);
                }
            }
            Exchange::Rows => {
                let pairs = self.pairs(mesh, Scope::Group, exchange);
                for &asker in members {
                    pairs.ids[asker][owner] += asked.lookups * id + length;
                    pairs.add(owner, asker, asked.lookups, sent);
                }
            }
        }
    }

    /// Owners of other columns of the same rows are told 8 bytes for each touched row.
    fn statistics(
        &mut self,
        asking: &Asking<'_>,
        block: &Block,
        members: &[usize],
        parts: &[(u32, Asked)],
    ) {
        let (mesh, exchange) = (asking.tier.mesh, asking.tier.exchange);
        let table = &self.case.workload.tables().tables()[asking.table];
        if asking.tier.blocks.len() == 1 || table.state().per_row == 0 {
            return;
        }
        let found = self.statistics.iter().position(|(of, ..)| *of == mesh);
        let at = found.unwrap_or_else(|| {
            self.statistics.push((mesh, vec![vec![0.0; self.world]; self.world], Vec::new()));
            self.statistics.len() - 1
        });
        let (_, bytes, exchanges) = &mut self.statistics[at];
        if !exchanges.contains(&exchange) {
            exchanges.push(exchange);
        }
        for other in asking.tier.blocks.iter().filter(|other| other.columns != block.columns) {
            let told = asking.parts(other);
            for (part, (position, asked)) in parts.iter().enumerate() {
                let touched = match asking.tier.sync {
                    ReplicaSync::Gradients => asked.of_world,
                    _ => asked.of_group,
                };
                for (number, (to, theirs)) in told.iter().enumerate() {
                    let same = other.map == block.map;
                    let some = if same {
                        f64::from(u8::from(number == part))
                    } else {
                        theirs.rows as f64 / asking.tier.rows.rows() as f64
                    };
                    bytes[members[*position as usize]][members[*to as usize]] +=
                        8.0 * touched * some;
                }
            }
        }
    }

    /// One sum a bag leaves a node that has owners, to the ranks on the rail.
    fn sums_of_nodes(
        &mut self,
        asking: &Asking<'_>,
        width: usize,
        members: &[usize],
        parts: &[(u32, Asked)],
    ) {
        let (mesh, exchange) = (asking.tier.mesh, asking.tier.exchange);
        if exchange != (Exchange::Reduce { over: Path::Hierarchical }) {
            return;
        }
        let sent = both(&self.case.workload, width);
        for &rank in members {
            let near = self.peers(mesh, Scope::Node, rank);
            let owns = |(position, _): &&(u32, Asked)| near.contains(&members[*position as usize]);
            let Some((_, asked)) = parts.iter().find(owns) else { continue };
            for far in self.peers(mesh, Scope::Rail, rank) {
                let pairs = self.pairs(mesh, Scope::Rail, exchange);
                pairs.add(rank, far, asked.bags, sent);
            }
        }
    }

    /// Memory of an owner, its work, and what its replicas tell each other.
    fn owner(&mut self, table: TableId, tier: &Tier, width: usize, owner: usize, asked: &Asked) {
        let workload = &self.case.workload;
        let shape = &workload.tables().tables()[table];
        let (columns, rows) = (width as f64, asked.rows as f64);
        let id = f64::from(workload.ids().bytes());
        let sent = workload.outputs().row_bytes(width) as f64;
        let weights = columns * f64::from(workload.rows().bytes());
        let state =
            columns * f64::from(shape.state().per_element) + f64::from(shape.state().per_row);
        let ranks = self.peers_of(tier.mesh, owner) as f64;
        let nodes = self.split(tier.mesh).map_or(1.0, |split| f64::from(split.parts()));
        let (ids, outputs) = match tier.exchange {
            Exchange::Local => (asked.lookups, asked.bags),
            Exchange::Reduce { .. } => (ranks * asked.lookups, ranks * asked.bags),
            Exchange::Unique { per: Per::Rank } => (ranks * asked.of_rank, ranks * asked.of_rank),
            Exchange::Unique { per: Per::Node } => (nodes * asked.of_node, nodes * asked.of_node),
            Exchange::Rows => (ranks * asked.lookups, ranks * asked.lookups),
        };
        let touched = match tier.sync {
            ReplicaSync::Gradients => asked.of_world,
            _ => asked.of_group,
        };
        let memory = self.memory_bandwidth();
        let rank = &mut self.ranks[owner];
        rank.peak.weights += rows * weights;
        rank.peak.state += rows * state;
        rank.parts.lookup += (ids * (weights.max(128.0) + id) + outputs * sent) / memory;
        let update = 2.0 * touched * (weights.max(128.0) + state) + ids * columns * 4.0;
        rank.parts.update += (update + sort(ids, asked.rows, id)) / memory;
        let synced = self.synced(tier, columns, weights + state, state, asked);
        let found = self.replicas.iter().position(|(mesh, _)| *mesh == tier.mesh);
        let at = found.unwrap_or_else(|| {
            self.replicas.push((tier.mesh, vec![(0.0, 0.0); self.world]));
            self.replicas.len() - 1
        });
        // Copies of what is summed, and what every replica told, until they agree.
        let told = synced.1 * f64::from(tier.mesh.replicas());
        self.ranks[owner].peak.buffers += match tier.sync {
            ReplicaSync::Gradients => synced.0 + told,
            ReplicaSync::TouchedRows { every } => (synced.0 + told) * f64::from(every.get()),
            _ => 0.0,
        };
        let bytes = &mut self.replicas[at].1[owner];
        *bytes = (bytes.0 + synced.0, bytes.1 + synced.1);
    }

    fn peers_of(&self, mesh: Mesh, rank: usize) -> usize {
        self.peers(mesh, Scope::Group, rank).len()
    }

    /// Bytes to be summed and bytes told to every other replica.
    fn synced(
        &self,
        tier: &Tier,
        columns: f64,
        stored_row: f64,
        state: f64,
        asked: &Asked,
    ) -> (f64, f64) {
        let (workload, options) = (&self.case.workload, &self.case.model.options);
        let id = f64::from(workload.ids().bytes());
        let of = match options.replica_way {
            ReplicaWay::Rings => workload.gradients(),
            ReplicaWay::Direct => workload.synced(),
        };
        let sent = of.row_bytes(columns as usize) as f64;
        let count = f64::from(options.count_bytes);
        let row = match options.replica_way {
            ReplicaWay::Rings => stored_row,
            ReplicaWay::Direct => columns * f64::from(workload.synced().bytes()) + state,
        };
        let rows = asked.rows as f64;
        match tier.sync {
            ReplicaSync::None => (0.0, 0.0),
            ReplicaSync::Weights { every } => (rows * row / f64::from(every.get()), 0.0),
            ReplicaSync::TouchedRows { every } => {
                let every = f64::from(every.get());
                (asked.of_world_since * row / every, (asked.of_group_since * id + count) / every)
            }
            ReplicaSync::FullyShardedReplicas => (rows * row, 0.0),
            ReplicaSync::Gradients => {
                let row = id + sent;
                let gathered = (0.0, asked.of_group * row + count);
                let scattered = (f64::midpoint(asked.of_group, asked.of_world) * row, 3.0 * count);
                let ways = match options.gradient_sum {
                    GradientSum::Gathered => vec![gathered],
                    GradientSum::Cheapest => vec![gathered, scattered, (rows * sent, count)],
                };
                // Bytes from each other replica.
                let shares = f64::from(tier.mesh.replicas());
                let bytes = |(sum, told): &(f64, f64)| 2.0 * sum / shares + told;
                let fewest = ways.into_iter().min_by(|a, b| bytes(a).total_cmp(&bytes(b)));
                fewest.expect("a way")
            }
        }
    }

    /// Rows that arrived are pooled by who asked for them.
    fn arrived(&mut self, asking: &Asking<'_>, width: usize, members: &[usize]) {
        let exchange = asking.tier.exchange;
        if matches!(exchange, Exchange::Local | Exchange::Reduce { .. }) {
            return;
        }
        let workload = &self.case.workload;
        let (row, (sent, back)) = (width as f64 * 4.0, both(workload, width));
        let id = f64::from(workload.ids().bytes());
        let rows = asking.tier.rows;
        let asked = asking.rows(rows.start(), rows.end());
        let (sorted, gradients) = match exchange {
            Exchange::Rows => (0.0, asked.lookups),
            _ => (sort(asked.lookups, asked.rows, id), asked.of_rank),
        };
        let memory = self.memory_bandwidth();
        for &member in members {
            let parts = &mut self.ranks[member].parts;
            parts.lookup += (asked.lookups * sent + asked.bags * row) / memory;
            parts.update += (sorted + asked.lookups * row + gradients * back) / memory;
        }
    }

    fn level(&self, a: usize, b: usize) -> Option<LevelId> {
        let level = self.case.topology.level_of(Rank::new(a as u32), Rank::new(b as u32));
        level.expect("ranks")
    }

    /// Bytes and seconds of every rank over every level in all exchanges.
    fn travel(&mut self) {
        let all = std::mem::take(&mut self.pairs);
        for pairs in &all {
            for rank in 0..self.world {
                let peers = self.peers(pairs.mesh, pairs.scope, rank);
                self.ranks[rank].peak.buffers += buffers(pairs, rank);
                self.travel_of(pairs, rank, &peers);
            }
        }
    }

    fn tell(&mut self) {
        let (topology, options) = (&self.case.topology, &self.case.model.options);
        for (mesh, pairs, exchanges) in std::mem::take(&mut self.statistics) {
            for (rank, row) in pairs.iter().enumerate() {
                let peers = self.peers(mesh, Scope::Group, rank);
                let mut last = 0.0;
                for (number, level) in topology.levels().iter().enumerate() {
                    let over = Some(LevelId::new(number as u32));
                    let near = peers.iter().filter(|&&peer| self.level(rank, peer) == over);
                    let near: Vec<usize> = near.copied().collect();
                    if near.is_empty() {
                        continue;
                    }
                    let sent: f64 = near.iter().map(|&peer| row[peer]).sum();
                    let received: f64 = near.iter().map(|&peer| pairs[peer][rank]).sum();
                    let left = level.all_to_all_bandwidth(near.len() as u32) / level.bandwidth();
                    let rank = &mut self.ranks[rank];
                    rank.parts.backward_exchange +=
                        message(level, sent.max(received)) / (left * options.link_efficiency);
                    rank.exchanged[number].sent += sent;
                    rank.exchanged[number].received += received;
                    last = level.latency();
                }
                self.ranks[rank].parts.backward_exchange += last * exchanges.len() as f64;
            }
        }
    }

    fn travel_of(&mut self, pairs: &Pairs, rank: usize, peers: &[usize]) {
        let (topology, options) = (&self.case.topology, &self.case.model.options);
        // Collectives, and the counts that some of them are led by.
        let (mut runs, mut told) = ((0.0, 0.0), 0.0);
        for exchange in &pairs.exchanges {
            let hierarchical = *exchange == Exchange::Reduce { over: Path::Hierarchical };
            let (brings_ids, brings_outputs) = if hierarchical {
                (pairs.scope == Scope::Group, pairs.scope != Scope::Group)
            } else {
                (true, true)
            };
            if brings_ids {
                runs.0 += 2.0;
                let counts = if matches!(exchange, Exchange::Reduce { .. }) { 3.0 } else { 1.0 };
                told += counts * f64::from(options.count_bytes);
            }
            if brings_outputs {
                runs.1 += 1.0;
            }
        }
        let (mut seconds, mut latency) = ([0.0; 3], 0.0);
        for (number, level) in topology.levels().iter().enumerate() {
            let over = LevelId::new(number as u32);
            let (mut to, mut from, mut many) = ([0.0; 3], [0.0; 3], 0);
            let all = [&pairs.ids, &pairs.outputs, &pairs.gradients];
            for &peer in peers.iter().filter(|&&peer| self.level(rank, peer) == Some(over)) {
                for (kind, bytes) in all.iter().enumerate() {
                    to[kind] += bytes[rank][peer];
                    from[kind] += bytes[peer][rank];
                }
                many += 1;
            }
            if many == 0 {
                continue;
            }
            latency = level.latency();
            for (kind, seconds) in seconds.iter_mut().enumerate() {
                let bytes = f64::max(to[kind], from[kind]);
                let left = level.all_to_all_bandwidth(many) / level.bandwidth();
                *seconds += message(level, bytes) / (left * options.link_efficiency);
            }
            let bytes = &mut self.ranks[rank].exchanged[number];
            let counts = told * f64::from(many);
            bytes.sent += to.iter().sum::<f64>() + counts;
            bytes.received += from.iter().sum::<f64>() + counts;
        }
        let parts = &mut self.ranks[rank].parts;
        parts.id_exchange += seconds[0] + runs.0 * latency;
        parts.output_exchange += seconds[1] + runs.1 * latency;
        parts.backward_exchange += seconds[2] + runs.1 * latency;
    }

    /// Bytes and seconds of replicas.
    fn agree(&mut self) {
        for (mesh, bytes) in std::mem::take(&mut self.replicas) {
            let (mut sums, mut syncs) = (0.0, 0.0);
            for (_, sync) in self.syncs.iter().filter(|(of, _)| *of == mesh) {
                sums += match sync {
                    ReplicaSync::None => 0.0,
                    ReplicaSync::Weights { every } => 1.0 / f64::from(every.get()),
                    ReplicaSync::TouchedRows { every } => 2.0 / f64::from(every.get()),
                    ReplicaSync::Gradients => 2.0,
                    ReplicaSync::FullyShardedReplicas => 1.0,
                };
                syncs += match sync {
                    ReplicaSync::None => 0.0,
                    ReplicaSync::Weights { every } | ReplicaSync::TouchedRows { every } => {
                        1.0 / f64::from(every.get())
                    }
                    ReplicaSync::Gradients | ReplicaSync::FullyShardedReplicas => 1.0,
                };
            }
            for (rank, &(reduced, gathered)) in bytes.iter().enumerate() {
                let set = mesh.replica_set_of(Rank::new(rank as u32)).expect("a rank");
                let all: Vec<usize> =
                    mesh.replica_members(set).expect("a set").map(number).collect();
                self.agree_of(rank, &all, (reduced, gathered), (sums, syncs));
            }
        }
    }

    fn agree_of(
        &mut self,
        rank: usize,
        all: &[usize],
        bytes: (f64, f64),
        (sums, syncs): (f64, f64),
    ) {
        let (topology, options) = (&self.case.topology, &self.case.model.options);
        let mut left = 1.0;
        for (number, level) in topology.levels().iter().enumerate() {
            let over = LevelId::new(number as u32);
            let others = all.iter().filter(|&&other| self.level(rank, other) == Some(over)).count();
            let units = self.units(rank, all, number);
            let sum = match options.replica_way {
                ReplicaWay::Rings => 2.0 * (units - 1.0) / units * left,
                ReplicaWay::Direct => 2.0 * others as f64 / all.len() as f64,
            };
            left /= units;
            let moved = sum * bytes.0 + others as f64 * bytes.1;
            let synced = &mut self.ranks[rank].synced[number];
            synced.sent += moved;
            synced.received += moved;
            if others > 0 && sums > 0.0 {
                // A ring goes around twice, a hop at a time; else there and back.
                let steps = match options.replica_way {
                    ReplicaWay::Rings => 2.0 * (units - 1.0),
                    ReplicaWay::Direct => 2.0,
                };
                let of_sync = steps * message(level, sum * bytes.0 / steps / syncs)
                    + message(level, others as f64 * bytes.1 / syncs);
                let hops = 2.0 * units.log2().ceil() * sums;
                self.ranks[rank].parts.replica_sync +=
                    syncs * of_sync / options.link_efficiency + hops * level.latency();
            }
        }
    }

    /// Units of the level inside that have ranks of `all` in the unit of `level` of `rank`.
    fn units(&self, rank: usize, all: &[usize], level: usize) -> f64 {
        let levels = self.case.topology.levels();
        let unit = |level: usize, rank: usize| {
            levels[level].unit_of(Rank::new(rank as u32)).expect("a rank")
        };
        let near = all.iter().filter(|&&other| unit(level, other) == unit(level, rank));
        let mut inner: Vec<u32> = near
            .map(|&other| if level == 0 { other as u32 } else { unit(level - 1, other) })
            .collect();
        inner.sort_unstable();
        inner.dedup();
        inner.len() as f64
    }

    /// Of the slowest rank: it computes as long as the slowest of all normal times may take.
    fn memory_bandwidth(&self) -> f64 {
        let efficiency = self.case.model.options.memory_efficiency;
        self.case.topology.memory_bandwidth() * efficiency / self.slowest()
    }

    fn slowest(&self) -> f64 {
        let deviations = (2.0 * (self.world as f64).ln()).sqrt();
        1.0 + deviations * self.case.model.options.straggling
    }

    fn dense(&mut self) {
        let (workload, topology) = (&self.case.workload, &self.case.topology);
        let world = topology.world();
        let samples = workload.batch().global(world).expect("a batch") as f64 / f64::from(world);
        let model = workload.dense_model();
        let all: Vec<usize> = (0..self.world).collect();
        for rank in 0..self.world {
            let flops = topology.flops() * self.case.model.options.compute_efficiency;
            let dense = workload.dense().seconds_of(samples, flops) * self.slowest();
            let mut parts = Parts { dense, ..Parts::default() };
            let options = &self.case.model.options;
            let gradients = model.gradient_bytes as f64;
            let (mut left, mut over) = (1.0, Vec::new());
            for (number, level) in topology.levels().iter().enumerate() {
                let units = self.units(rank, &all, number);
                let id = Some(LevelId::new(number as u32));
                let others = all.iter().filter(|&&other| self.level(rank, other) == id).count();
                let (moved, steps) = match options.replica_way {
                    ReplicaWay::Rings => (2.0 * (units - 1.0) / units * left, 2.0 * (units - 1.0)),
                    ReplicaWay::Direct => (2.0 * others as f64 / self.world as f64, 2.0),
                };
                let moved = moved * gradients;
                left /= units;
                over.push(LevelBytes { sent: moved, received: moved });
                if gradients > 0.0 && others > 0 {
                    let seconds = steps * message(level, moved / steps);
                    parts.dense_sync += seconds / options.link_efficiency;
                    parts.dense_sync += 2.0 * units.log2().ceil() * level.latency();
                }
            }
            let own = &mut self.ranks[rank];
            own.parts.dense = parts.dense;
            own.parts.dense_sync = parts.dense_sync;
            own.dense = over;
            let activations = model.memory_bytes_per_sample as f64 * samples;
            own.peak = PeakBytes { dense: model.memory_bytes as f64 + activations, ..own.peak };
        }
    }
}
