//! Seconds that planning takes. By hand: `cargo test --release -p emb-shard --test embark -- \
//! --ignored --nocapture`.

use crate::common::{DCNV2, T7, T180, T200, T510, machines, planner, published, task};
use emb_shard::{
    Access, Batch, EmbarkBuckets, EmbarkClusters, EmbarkModel, EmbarkSearch, Planner, TableSpec,
    Task, Topology, Workload, WorkloadSpec,
};
use std::time::Instant;

/// `count` tables, mostly small, some of many million rows.
fn spread(count: u64) -> Workload {
    let mut spec = WorkloadSpec::new("spread", Batch::Global(65_536));
    spec.access = Access::Zipf { exponent: 1.05 };
    spec.tables = (0..count)
        .map(|number| {
            let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let rows = 10 + spread * spread / (1 << 26);
            let dim = [16, 32, 64, 128][number as usize % 4];
            let pooling_factor = 1.0 + (spread % 50) as f64;
            TableSpec { pooling_factor, ..TableSpec::new(format!("table {number}"), rows, dim) }
        })
        .collect();
    Workload::new(spec).expect("valid")
}

fn timed(what: &str, task: &Task<'_>, clusters: EmbarkClusters) {
    for buckets in [EmbarkBuckets::Nodes, EmbarkBuckets::Ranks] {
        let model = EmbarkModel { buckets, ..EmbarkModel::default() };
        for search in [EmbarkSearch::Published, EmbarkSearch::Converged] {
            let mut planner = planner(search, clusters);
            planner.options.model = Some(model);
            let begun = Instant::now();
            let plan = planner.plan(task).expect("fits");
            let seconds = begun.elapsed().as_secs_f64();
            let max = model.cost(&plan, task.workload).expect("its workload").max();
            let bound = planner.lower_bound(task).expect("fits");
            eprintln!(
                "{what}, {clusters:?}, {buckets:?}, {search:?}: {seconds:.3} s, max {max:.0}, bound {bound:.0}"
            );
            assert!(seconds < 2.0, "{what}: {seconds} s");
        }
    }
}

#[test]
#[ignore = "measures time: run by hand, in release"]
fn plans_take_less_than_two_seconds() {
    for name in [DCNV2, T180, T200, T510, T7] {
        let workload = published(name);
        let topology = machines(16);
        for clusters in [EmbarkClusters::Bytes, EmbarkClusters::Reduction] {
            timed(name, &task(&workload, &topology), clusters);
        }
    }
    for (tables, nodes) in [(856, 128), (856, 16), (10_000, 16), (200, 128)] {
        let (workload, topology) = (spread(tables), format!("dgx-h100:{nodes}"));
        let topology = Topology::preset(&topology).expect("known");
        let what = format!("{tables} tables at {nodes} nodes");
        timed(&what, &Task::new(&workload, &topology), EmbarkClusters::Reduction);
    }
}
