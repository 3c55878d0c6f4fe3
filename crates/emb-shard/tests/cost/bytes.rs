//! Bytes between nodes of the lattice planner's plans, counted pair by pair from the plan alone.

use crate::case::Case;
use crate::published::{DCNV2, T7, T180, T200, T510, published};
use crate::reference::reference;
use emb_shard::{
    Access, Batch, Exchange, IdType, Lattice, Layout, Mesh, Objective, PlaceOptions, Placement,
    Plan, PlanBuilder, Planner, Pooling, RowCut, StateBytes, StepModel, TableSpec, Task, Topology,
    TopologySpec, ValueType, Workload, WorkloadSpec,
};

/// Bytes that the mean rank sends outside its node, and those of the fullest rank's memory.
fn counted(workload: &Workload, topology: &Topology, plan: &Plan) -> (f64, f64) {
    let (model, plan) = (StepModel::default(), plan.clone());
    let case = Case { model, workload: workload.clone(), topology: topology.clone(), plan };
    let ranks = reference(&case);
    let sent = ranks.iter().map(|rank| {
        let levels = rank.exchanged[1..].iter().chain(&rank.synced[1..]);
        levels.map(|bytes| bytes.sent).sum::<f64>()
    });
    let mean = sent.sum::<f64>() / ranks.len() as f64;
    (mean, ranks.iter().map(|rank| rank.peak.total()).fold(0.0, f64::max))
}

#[test]
fn fewer_bytes_leave_the_node_than_any_mix_of_whole_clusters_reaches() {
    let topology = Topology::preset("dgx-h100:16").expect("known");
    // Megabytes; none is published for T7.
    for (name, most) in
        [(DCNV2, 3.6), (T180, 41.8), (T200, 34.4), (T510, 56.5), (T7, f64::INFINITY)]
    {
        let workload = published(name);
        let objective = Objective::InterNodeBytes;
        let task = Task { objective, ..Task::new(&workload, &topology) };
        let plan = Lattice { tries: Some(200), ..Lattice::default() }.plan(&task).expect("fits");
        let (mean, _) = counted(&workload, &topology, &plan);
        eprintln!("{name}: {:.2} MB a rank, at most {most}", mean / 1e6);
        assert!(mean <= most * 1e6, "{name}: {mean} bytes");
    }
}

/// One sequence table of 10^7 rows, 1.02 million look-ups a rank, Zipf 1.05.
fn sequence() -> Workload {
    let mut spec = WorkloadSpec::new("a sequence", Batch::PerRank(10_200));
    spec.access = Access::Zipf { exponent: 1.05 };
    (spec.rows, spec.outputs, spec.ids) = (ValueType::F32, ValueType::F32, IdType::I32);
    spec.state = StateBytes { per_row: 4, per_element: 0 };
    spec.length_bytes = 0;
    let mut table = TableSpec::new("history", 10_000_000, 128);
    (table.pooling_factor, table.pooling) = (100.0, Pooling::None);
    spec.tables = vec![table];
    Workload::new(spec).expect("valid")
}

#[test]
fn sequences_need_a_sixth_of_the_bytes_of_row_wise_at_no_more_memory() {
    let workload = sequence();
    let mut machines = TopologySpec::from(Topology::preset("dgx-h100:16").expect("known"));
    machines.levels[0].bandwidth = 12.0 * machines.levels[1].bandwidth;
    let topology = Topology::new(machines).expect("valid");
    let mesh = Mesh::new(128, 128, Layout::Strided).expect("a mesh");
    let row_wise = PlaceOptions {
        exchange: Some(Exchange::Rows),
        ..Placement::RowWise { cut: RowCut::Modulo }.into()
    };
    let builder = PlanBuilder::new(mesh).node_ranks(8).all(row_wise);
    let plan = builder.build(workload.tables()).expect("a plan");
    let (bytes, memory) = counted(&workload, &topology, &plan);
    let mut task = Task::new(&workload, &topology);
    task.objective = Objective::InterNodeBytes;
    let lattice = Lattice::default().plan(&task).expect("fits");
    let (fewer, less) = counted(&workload, &topology, &lattice);
    eprintln!("{:.3} times fewer bytes, {less:.3e} of {memory:.3e} bytes of memory", bytes / fewer);
    assert!(bytes / fewer >= 6.2, "{} times fewer", bytes / fewer);
    assert!(less <= memory, "{less} bytes, row-wise {memory}");
}
