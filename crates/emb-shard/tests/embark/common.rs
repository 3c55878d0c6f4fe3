//! The published workloads, and an oracle of cost and bytes that shares no code with the library.

pub(crate) use crate::published::{DCNV2, T7, T180, T200, T510, published};

use emb_shard::{
    Bytes, Constraints, EmbarkClusters, EmbarkOptions, EmbarkPlanner, EmbarkSearch, Objective,
    Plan, Task, Topology, Workload,
};
use std::collections::BTreeSet;

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
