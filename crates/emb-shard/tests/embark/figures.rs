//! The published figures at 16 nodes of eight ranks, all tables reduction-based, `B = 1`, `w = 4`,
//! `r = 60`, widths of at least 32, recomputed from plans alone.

use crate::common::{
    DCNV2, T7, T180, T200, T510, machines, node_costs, planner, published, rank_bytes, task,
};
use emb_shard::{
    Bytes, EmbarkBuckets, EmbarkClusters, EmbarkModel, EmbarkSearch, Exchange, Path, Plan, Planner,
};
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
    let workload = published(name);
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

/// Largest cost of the published search over `nodes` nodes, by node or by rank.
fn published_max(name: &str, nodes: u32, buckets: EmbarkBuckets) -> f64 {
    let workload = published(name);
    let topology = machines(nodes);
    let model = EmbarkModel { buckets, ..EmbarkModel::default() };
    let mut planner = planner(EmbarkSearch::Published, EmbarkClusters::Reduction);
    planner.options.model = Some(model);
    let mut task = task(&workload, &topology);
    // The source counts its 60 GB in units of 2^30 bytes.
    task.constraints.reserved = Bytes::new(topology.memory().get() - (60 << 30));
    let plan = planner.plan(&task).expect("fits");
    model.cost(&plan, &workload).expect("its workload").max()
}

#[test]
fn the_published_search_reaches_its_published_costs_at_four_and_eight_nodes() {
    let expected = [
        (DCNV2, [12_792.0, 6640.0]),
        (T180, [212_280.0, 106_400.0]),
        (T200, [139_936.0, 70_192.0]),
        (T510, [227_072.0, 114_000.0]),
        (T7, [12_240.0, 3264.0]),
    ];
    for (name, expected) in expected {
        for (nodes, expected) in [4, 8].into_iter().zip(expected) {
            let max = published_max(name, nodes, EmbarkBuckets::Nodes);
            eprintln!("{name} at {nodes} nodes: {max:.0}, published {expected}");
            assert!((max / expected - 1.0).abs() <= 0.01, "{name} at {nodes}: {max}");
        }
    }
}

#[test]
fn by_rank_converging_pays_most() {
    // Published at 16 nodes, by rank: dcnv2 14,720 with columns; t200 2.016 x the mean.
    for (name, published) in [(DCNV2, 14_720.0), (T200, 58_880.0)] {
        let first = published_max(name, NODES, EmbarkBuckets::Ranks);
        let workload = crate::common::published(name);
        let topology = machines(NODES);
        let task = task(&workload, &topology);
        let model = EmbarkModel { buckets: EmbarkBuckets::Ranks, ..EmbarkModel::default() };
        let mut planner = planner(EmbarkSearch::Converged, EmbarkClusters::Reduction);
        planner.options.model = Some(model);
        let begun = Instant::now();
        let plan = planner.plan(&task).expect("fits");
        let seconds = begun.elapsed().as_secs_f64();
        let max = model.cost(&plan, &workload).expect("its workload").max();
        let bound = planner.lower_bound(&task).expect("fits");
        eprintln!(
            "{name} by rank: published search {first:.0}, converged {max:.0}, bound {bound:.0}, {seconds:.3} s"
        );
        assert!((first / published - 1.0).abs() <= 0.01, "{name}: {first}");
        assert!(max < first && max >= bound - 1e-6, "{name}: {max}");
    }
}
