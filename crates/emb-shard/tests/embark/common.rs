//! The published workloads, and an oracle of cost and bytes that shares no code with the library.

use emb_shard::{
    Access, Batch, Bytes, Constraints, EmbarkClusters, EmbarkOptions, EmbarkPlanner, EmbarkSearch,
    IdType, Objective, Plan, StateBytes, Task, Topology, ValueType, Workload, WorkloadRow,
    WorkloadSpec,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names of the published workloads, in the order of the facts about them.
pub(crate) const DCNV2: &str = "dcnv2_mlperf";
pub(crate) const T180: &str = "t180_70B_hot80";
pub(crate) const T200: &str = "t200_100B_hot20";
pub(crate) const T510: &str = "t510_110B_hot5";
pub(crate) const T7: &str = "t7_470B_hot20";

/// The published workload `name`; `None`, with the reason printed, where the list is absent.
///
/// AdaGrad's 4 bytes of state for dcnv2, SGD else; 16-bit rows and 4-byte ids on the wire, Zipf 1.1,
/// a batch of 65,536, lengths not counted.
pub(crate) fn published(name: &str) -> Option<Workload> {
    let folder = std::env::var_os("EMB_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join("embark_hugectr_tables.csv");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is absent; set EMB_DATA to its folder", path.display());
        return None;
    };
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let [workload, table, rows, dim, pooling] = fields[..] else { panic!("line {line:?}") };
        WorkloadRow {
            workload: workload.to_owned(),
            table: table.to_owned(),
            rows: rows.parse().expect("whole"),
            dim: dim.parse().expect("whole"),
            pooling: pooling.parse().expect("a number"),
        }
    });
    let mut spec = WorkloadSpec::from_rows(name, Batch::Global(65_536), rows).expect("is listed");
    if name == DCNV2 {
        spec.state = StateBytes { per_row: 0, per_element: 4 };
    }
    (spec.outputs, spec.ids, spec.length_bytes) = (ValueType::F16, IdType::I32, 0);
    spec.access = Access::Zipf { exponent: 1.1 };
    Some(Workload::new(spec).expect("valid"))
}

/// `nodes` nodes of eight ranks with 60 GB for tables each.
pub(crate) fn machines(nodes: u32) -> Topology {
    Topology::preset(&format!("dgx-h100:{nodes}")).expect("known")
}

pub(crate) fn task<'a>(workload: &'a Workload, topology: &'a Topology) -> Task<'a> {
    let reserved = Bytes::new(topology.memory().get() - 60_000_000_000);
    let constraints = Constraints { reserved, ..Constraints::default() };
    Task { workload, topology, constraints, objective: Objective::default() }
}

pub(crate) fn planner(search: EmbarkSearch, clusters: EmbarkClusters) -> EmbarkPlanner {
    EmbarkPlanner { options: EmbarkOptions { model: None, search, clusters } }
}

/// Bytes of every rank, by adding up the parts of all blocks.
pub(crate) fn rank_bytes(plan: &Plan) -> Vec<u64> {
    let mut bytes = vec![0; plan.world() as usize];
    for (table, placed) in plan.tables().tables().as_slice().iter().zip(plan.placed().as_slice()) {
        for tier in &placed.tiers {
            for block in &tier.blocks {
                for (part, owner) in block.owners.iter().enumerate() {
                    let rows = block.map.rows_of(part).expect("a part");
                    let cell =
                        u64::from(table.element_bytes()) + u64::from(table.state().per_element);
                    let cells = rows * block.columns.columns() as u64;
                    let own = cells * cell + rows * u64::from(table.state().per_row);
                    for group in 0..tier.mesh.replicas() {
                        let (group, set) =
                            (emb_shard::GroupId::new(group), emb_shard::ReplicaId::new(owner));
                        let rank = tier.mesh.rank_of(group, set).expect("exists");
                        bytes[rank.get() as usize] += own;
                    }
                }
            }
        }
    }
    bytes
}

/// Cost of every node of `ranks` ranks for one sample, one group, by the formula of the source: for
/// each block on the nodes of its owners, `w h d / (s L)` and `r d / L * 3/2`.
pub(crate) fn node_costs(plan: &Plan, ranks: u32, w: f64, r: f64) -> Vec<f64> {
    let (nodes, local) = (plan.world() / ranks, f64::from(ranks));
    let mut costs = vec![0.0; nodes as usize];
    for (table, placed) in plan.tables().tables().as_slice().iter().zip(plan.placed().as_slice()) {
        let [tier] = &placed.tiers[..] else { panic!("one tier") };
        if tier.mesh.group_ranks() == 1 {
            continue;
        }
        assert_eq!(tier.mesh.replicas(), 1);
        for block in &tier.blocks {
            let has_rows = |part: &usize| block.map.rows_of(*part).expect("a part") > 0;
            let parts = (0..block.owners.len()).filter(has_rows);
            let on: BTreeSet<u32> =
                parts.map(|part| block.owners.get(part).expect("owned") / ranks).collect();
            let d = block.columns.columns() as f64;
            for &node in &on {
                let hot = w * table.lookups() * d / on.len() as f64 / local;
                costs[node as usize] += hot + r * d / local * 3.0 / 2.0;
            }
        }
    }
    costs
}
