//! Workloads and machines of the tests, and sums over rows one by one.

use emb_shard::{
    Access, Batch, LevelSpec, Plan, Pooling, RowRange, StateBytes, TableId, TableSpec, Topology,
    TopologySpec, UnitRanks, Workload, WorkloadSpec,
};

/// Nodes of `ranks` ranks whose links are `ratio` times as fast inside as between them.
pub(crate) fn machines(nodes: u32, ranks: u32, ratio: f64, memory_bytes: u64) -> Topology {
    let level = |name: &str, ranks, bandwidth| LevelSpec {
        name: name.into(),
        ranks: UnitRanks::Equal(ranks),
        bandwidth,
        latency: 5e-6,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    };
    let mut levels = vec![level("node", ranks, ratio * 25e9)];
    if nodes > 1 {
        levels.push(level("cluster", nodes * ranks, 25e9));
    }
    Topology::new(TopologySpec {
        name: "machines".into(),
        ranks: nodes * ranks,
        memory_bytes,
        memory_bandwidth: 2e12,
        flops: 3e14,
        levels,
    })
    .expect("valid machines")
}

/// One table of sequence features under Zipf's law, `lookups` a rank and step, row-wise AdaGrad.
pub(crate) fn one_sequence(exponent: f64, rows: u64, dim: usize, lookups: u64) -> Workload {
    let mut spec = WorkloadSpec::new("one sequence", Batch::PerRank(lookups / 100));
    spec.access = Access::Zipf { exponent };
    spec.state = StateBytes { per_row: 4, per_element: 0 };
    let table = TableSpec { pooling: Pooling::None, ..TableSpec::new("seen", rows, dim) };
    spec.tables = vec![TableSpec { pooling_factor: 100.0, ..table }];
    Workload::new(spec).expect("valid workload")
}

/// `r^-exponent` of the rows `1..=rows`, divided by their sum.
pub(crate) fn zipf(exponent: f64, rows: u64) -> Vec<f64> {
    let powers: Vec<f64> = (1..=rows).map(|row| (row as f64).powf(-exponent)).collect();
    let sum: f64 = powers.iter().rev().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// Rows and group of every tier of the first table.
pub(crate) fn tiers(plan: &Plan) -> Vec<(RowRange, u32)> {
    let table = &plan.placed()[TableId::new(0)];
    table.tiers.iter().map(|tier| (tier.rows, tier.mesh.group_ranks())).collect()
}
