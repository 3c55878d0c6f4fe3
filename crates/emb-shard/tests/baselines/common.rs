//! Machines, workloads and a count of bytes that no planner knows of.

use emb_shard::{
    Batch, LevelSpec, Plan, Pooling, Rank, StateBytes, TableSpec, Topology, TopologySpec,
    UnitRanks, Workload, WorkloadSpec, baselines,
};

/// Nodes of so many ranks each, with `memory_bytes` a rank.
pub(crate) fn machines(nodes: &[u32], memory_bytes: u64) -> Topology {
    let ranks = nodes.iter().sum();
    let level = |name: &str, ranks, bandwidth| LevelSpec {
        name: name.into(),
        ranks,
        bandwidth,
        latency: 1e-6,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    };
    Topology::new(TopologySpec {
        name: "machines".into(),
        ranks,
        memory_bytes,
        memory_bandwidth: 1e12,
        flops: 1e14,
        levels: vec![
            level("node", UnitRanks::Each(nodes.to_vec()), 3e11),
            level("cluster", UnitRanks::Equal(ranks), 25e9),
        ],
    })
    .expect("valid machines")
}

/// Rows, columns, ids a bag, and whether bags are pooled.
pub(crate) type Shape = (u64, usize, f64, bool);

/// Tables `t0`, `t1`, ... with row-wise optimizer state.
pub(crate) fn workload(shapes: &[Shape]) -> Workload {
    let mut spec = WorkloadSpec::new("shapes", Batch::PerRank(64));
    spec.state = StateBytes { per_row: 4, per_element: 0 };
    for (number, &(rows, dim, pooling_factor, pooled)) in shapes.iter().enumerate() {
        let pooling = if pooled { Pooling::Sum } else { Pooling::None };
        let table = TableSpec::new(format!("t{number}"), rows, dim);
        spec.tables.push(TableSpec { pooling_factor, pooling, ..table });
    }
    Workload::new(spec).expect("valid workload")
}

/// Bytes of weights and row-wise state of every rank, counted cell by cell from the shards.
pub(crate) fn bytes_by_rank(plan: &Plan) -> Vec<u64> {
    let of = |rank| {
        let shards = plan.shards_of(Rank::new(rank)).expect("in range");
        shards.map(|shard| shard.rows * (shard.columns.columns() as u64 * 4 + 4)).sum()
    };
    (0..plan.world()).map(of).collect()
}

/// The planner of that name.
pub(crate) fn named(name: &str) -> Box<dyn emb_shard::Planner> {
    baselines().into_iter().find(|planner| planner.name() == name).expect("a baseline")
}

/// The kinds of all tables, in table order.
pub(crate) fn kinds(plan: &Plan) -> Vec<&'static str> {
    plan.placed().iter().map(|(_, table)| table.tiers[0].kind()).collect()
}

/// The positions of a table's blocks, in order.
pub(crate) fn positions(plan: &Plan, table: usize) -> Vec<Vec<u32>> {
    let blocks = &plan.placed().as_slice()[table].tiers[0].blocks;
    blocks.iter().map(|block| block.owners.iter().collect()).collect()
}
