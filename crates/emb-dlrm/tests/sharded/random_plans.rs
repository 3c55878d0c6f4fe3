//! Plans written down anywhere in the lattice, not only where builders put them.

use crate::replicas::{touched_rows, weights};
use crate::support::{Model, Random};
use emb_kernels::{Pooling, TableSpec};
use emb_optim::RuleKind;
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, NodeSplit, Owners, Path, Per, PlanSpec, ReplicaSync,
    RowMap, RowOrder, RowRange, TablePlan, Tier,
};

/// Most ranks, and most nodes.
const MOST: (u32, u32) = (16, 4);

/// Ranks of a world and of its nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) world: u32,
    pub(crate) node_ranks: u32,
}

impl Shape {
    pub(crate) fn new(random: &mut Random) -> Self {
        let any = 1 + random.below(MOST.0 as usize) as u32;
        // Primes have few groups.
        let world = if random.below(2) == 0 { any } else { random.pick(&[4, 6, 8, 12, 16]) };
        let nodes: Vec<u32> =
            divisors(world).into_iter().filter(|&nodes| nodes <= MOST.1).collect();
        Self { world, node_ranks: world / random.pick(&nodes) }
    }

    /// A plan of the tables of `model` whose result is that of one process.
    pub(crate) fn plan(self, random: &mut Random, model: &Model) -> PlanSpec {
        let Self { world, node_ranks } = self;
        let mut tables = Vec::new();
        for (t, spec) in model.specs.iter().enumerate() {
            let mut features = model.features.iter().filter(|feature| feature.table == t);
            let sequence = features.any(|feature| feature.pooling == Pooling::None);
            tables.push(self.table(random, spec, sequence));
        }
        PlanSpec { world, node_ranks, tables }
    }

    fn table(self, random: &mut Random, spec: &TableSpec, sequence: bool) -> TablePlan {
        let order = (random.below(2) == 0)
            .then(|| RowOrder::new(permutation(random, spec.rows)).expect("a permutation"));
        let most = random.below(3).min(spec.rows as usize - 1);
        let mut starts: Vec<u64> =
            (0..most).map(|_| 1 + random.below(spec.rows as usize - 1) as u64).collect();
        starts.extend([0, spec.rows]);
        starts.sort_unstable();
        starts.dedup();
        let tiers = starts.windows(2).map(|pair| {
            let rows = RowRange::new(pair[0], pair[1]).expect("rows");
            self.tier(random, spec, rows, sequence)
        });
        TablePlan { table: spec.name.clone(), order, tiers: tiers.collect() }
    }

    fn tier(self, random: &mut Random, spec: &TableSpec, rows: RowRange, sequence: bool) -> Tier {
        let group = random.pick(&divisors(self.world));
        let layout = random.pick(&[Layout::Strided, Layout::Contiguous]);
        let mesh = Mesh::new(self.world, group, layout).expect("a mesh");
        let exchange = random.pick(&exchanges(mesh, self.node_ranks, sequence));
        let sync = match mesh.replicas() {
            1 => ReplicaSync::None,
            _ => random.pick(exact_syncs(spec)),
        };
        let blocks = columns(random, spec.dim)
            .into_iter()
            .map(|columns| block(random, columns, rows.rows(), group));
        Tier { rows, mesh, exchange, sync, blocks: blocks.collect() }
    }
}

/// Every exchange that the checks of plans allow.
pub(crate) fn exchanges(mesh: Mesh, node_ranks: u32, sequence: bool) -> Vec<Exchange> {
    if mesh.group_ranks() == 1 {
        return vec![Exchange::Local];
    }
    let mut all = vec![Exchange::Unique { per: Per::Rank }];
    all.push(if sequence { Exchange::Rows } else { Exchange::Reduce { over: Path::Flat } });
    if NodeSplit::new(mesh, node_ranks).expect("nodes").is_some() {
        all.push(Exchange::Unique { per: Per::Node });
        if !sequence {
            all.push(Exchange::Reduce { over: Path::Hierarchical });
        }
    }
    all
}

/// The syncs of replicas under which a step is that of one process.
fn exact_syncs(spec: &TableSpec) -> &'static [ReplicaSync] {
    use std::sync::OnceLock;
    static AVERAGED: OnceLock<[ReplicaSync; 3]> = OnceLock::new();
    let config = spec.optimizer.config();
    // The mean of steps is the step of the mean where steps are linear in gradients.
    let linear = config.kind == RuleKind::Sgd
        && config.weight_decay.is_none()
        && config.max_gradient.is_none();
    if !linear {
        return &[ReplicaSync::Gradients];
    }
    AVERAGED.get_or_init(|| [ReplicaSync::Gradients, weights(1), touched_rows(1)])
}

/// One to three column blocks of any width.
fn columns(random: &mut Random, dim: usize) -> Vec<ColRange> {
    let mut starts: Vec<usize> = vec![0, dim];
    if dim > 1 {
        starts.extend((0..random.below(3)).map(|_| 1 + random.below(dim - 1)));
    }
    starts.sort_unstable();
    starts.dedup();
    let range = |pair: &[usize]| ColRange::new(pair[0], pair[1]).expect("columns");
    starts.windows(2).map(range).collect()
}

/// A column block with any map of its rows, over any owners.
fn block(random: &mut Random, columns: ColRange, rows: u64, group: u32) -> Block {
    let parts = 1 + random.below(group as usize);
    let mut owners: Vec<u32> =
        permutation(random, group.into()).iter().map(|&p| p as u32).collect();
    owners.truncate(parts);
    if random.below(3) == 0 {
        owners.sort_unstable();
    }
    let map = map(random, rows, parts);
    Block { columns, map, owners: Owners::list(&owners) }
}

fn map(random: &mut Random, rows: u64, parts: usize) -> RowMap {
    let map = match random.below(5) {
        0 => RowMap::even(rows, parts),
        1 => RowMap::ceil(rows, parts),
        2 => RowMap::modulo(rows, parts),
        // Unequal parts, some of them empty.
        3 => {
            let mut starts: Vec<u64> =
                (1..parts).map(|_| random.below(rows as usize + 1) as u64).collect();
            starts.extend([0, rows]);
            starts.sort_unstable();
            RowMap::range(starts)
        }
        _ => {
            let then = if random.below(2) == 0 { RowMap::modulo } else { RowMap::even };
            let then = then(rows, parts).expect("a map");
            RowMap::permuted(permutation(random, rows), then)
        }
    };
    map.expect("a map")
}

/// `0..count` in any order.
pub(crate) fn permutation(random: &mut Random, count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    for end in (1..order.len()).rev() {
        order.swap(end, random.below(end + 1));
    }
    order
}

pub(crate) fn divisors(of: u32) -> Vec<u32> {
    (1..=of).filter(|&ranks| of.is_multiple_of(ranks)).collect()
}
