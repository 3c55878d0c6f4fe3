//! The published figures at 16 nodes of eight ranks, all tables reduction-based, `B = 1`, `w = 4`,
//! `r = 60`, widths of at least 32, recomputed from plans alone.

use crate::common::{
    DCNV2, T7, T180, T200, T510, machines, node_costs, planner, published, rank_bytes, task,
};
use emb_shard::{EmbarkClusters, EmbarkModel, EmbarkSearch, Exchange, Path, Plan, Planner};
use std::time::Instant;

const NODES: u32 = 16;

/// The most expensive node of a plan, after a look at what the figures ask of it.
fn checked_max(plan: &Plan) -> f64 {
    for placed in plan.placed().as_slice() {
        assert_eq!(placed.tiers[0].exchange, Exchange::Reduce { over: Path::Hierarchical });
        assert!(placed.tiers[0].blocks.iter().all(|block| block.columns.columns() >= 32));
        let whole_nodes = placed.tiers[0].blocks.iter().all(|block| block.owners.len() % 8 == 0);
        assert!(whole_nodes, "a node's part is cut over all its ranks");
    }
    assert!(rank_bytes(plan).into_iter().all(|bytes| bytes <= 60_000_000_000));
    node_costs(plan, 8, 4.0, 60.0).into_iter().fold(0.0, f64::max)
}

fn check(name: &str, published_max: f64, at_most: f64) {
    let Some(workload) = published(name) else { return };
    let topology = machines(NODES);
    let task = task(&workload, &topology);
    let original = planner(EmbarkSearch::Published, EmbarkClusters::Reduction);
    let converged = planner(EmbarkSearch::Converged, EmbarkClusters::Reduction);
    let first = checked_max(&original.plan(&task).expect("fits"));
    let begun = Instant::now();
    let plan = converged.plan(&task).expect("fits");
    let seconds = begun.elapsed().as_secs_f64();
    let max = checked_max(&plan);
    let bound = converged.lower_bound(&task).expect("fits");
    let blocks: usize = plan.placed().as_slice().iter().map(|t| t.tiers[0].blocks.len()).sum();
    eprintln!(
        "{name}: published search {first:.0} (published {published_max}), converged {max:.1}, \
         bound {bound:.1}, {blocks} blocks, {seconds:.3} s"
    );
    assert!((first / published_max - 1.0).abs() <= 0.01, "published search: {first}");
    assert!(max <= at_most, "converged: {max}");
    assert!(max >= bound - 1e-6, "{max} below the bound {bound}");
    let model = EmbarkModel::default().cost(&plan, &workload).expect("its workload");
    assert!((model.max() / max - 1.0).abs() < 1e-9, "model {} against {max}", model.max());
}

#[test]
fn dcnv2_costs_at_most_3264() {
    check(DCNV2, 3920.0, 3264.0);
}

#[test]
fn t180_costs_at_most_53300() {
    check(T180, 53_560.0, 53_300.0);
}

#[test]
fn t200_costs_at_most_35000() {
    check(T200, 35_344.0, 35_000.0);
}

#[test]
fn t510_costs_at_most_56800() {
    check(T510, 57_120.0, 56_800.0);
}

#[test]
fn t7_costs_half_of_the_published_3280() {
    check(T7, 3280.0, 1640.0);
}
