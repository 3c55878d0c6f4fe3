//! What went wrong elsewhere, with the right values.

use emb_shard::{
    Access, Batch, Bytes, Constraints, Error, Exchange, Kind, Lattice, Planner, Pooling, TableSpec,
    Task, Topology, Workload, WorkloadSpec,
};

fn tables(of: &[(&str, u64, usize, f64)]) -> Workload {
    let mut spec = WorkloadSpec::new("a report", Batch::PerRank(1));
    for &(name, rows, dim, pooling_factor) in of {
        spec.tables.push(TableSpec { pooling_factor, ..TableSpec::new(name, rows, dim) });
    }
    Workload::new(spec).expect("a workload")
}

fn only(kinds: &[Kind]) -> Constraints {
    Constraints { kinds: Some(kinds.iter().copied().collect()), ..Constraints::default() }
}

#[test]
fn u30_a_table_that_does_not_fit_is_named_with_its_bytes() {
    let workload = tables(&[("small", 10, 4, 1.0), ("big", 10_000_000, 64, 1.0)]);
    let topology = Topology::preset("cpu:2").expect("a preset");
    let mut task = Task::new(&workload, &topology);
    task.constraints = only(&[Kind::TableWise]);
    task.constraints.reserved = Bytes::new(topology.memory().get() - 1_000_000_000);
    let Err(Error::DoesNotFit(short)) = Lattice::default().plan(&task) else {
        panic!("it does not fit")
    };
    let text = short.to_string();
    assert!(
        text.contains("table \"big\" does not fit as table_wise: needs 2,560,000,000"),
        "{text}"
    );
    assert!(text.contains("row_wise is still short 280,000,000 per rank"), "{text}");
    assert!(text.contains("the smallest world for row_wise is 3"), "{text}");
}

#[test]
fn u31_heavy_tables_go_to_different_ranks() {
    let workload = tables(&[
        ("a", 1000, 64, 100.0),
        ("b", 1000, 64, 100.0),
        ("c", 1000, 64, 1.0),
        ("d", 1000, 64, 1.0),
    ]);
    let topology = Topology::preset("cpu:2").expect("a preset");
    let mut task = Task::new(&workload, &topology);
    task.constraints = only(&[Kind::TableWise]);
    let plan = Lattice::default().plan(&task).expect("a plan");
    let lookups: Vec<f64> = plan.report().ranks().iter().map(|rank| rank.lookups).collect();
    assert_eq!(lookups, [101.0, 101.0]);
}

#[test]
fn u09_more_ranks_than_rows_or_tables_are_planned() {
    let workload = tables(&[("three", 3, 4, 2.0)]);
    for ranks in [1, 4, 8] {
        let topology = Topology::preset(&format!("cpu:{ranks}")).expect("a preset");
        let task = Task::new(&workload, &topology);
        let plan = Lattice::default().plan(&task).expect("a plan");
        assert_eq!(plan.world(), ranks);
    }
}

#[test]
fn u10_columns_that_do_not_divide_are_cut_all_the_same() {
    let workload = tables(&[("ten", 100, 10, 50.0)]);
    let topology = Topology::preset("cpu:3").expect("a preset");
    let mut task = Task::new(&workload, &topology);
    task.constraints = only(&[Kind::ColumnWise]);
    task.constraints.min_columns = Some(1);
    let plan = Lattice::default().plan(&task).expect("a plan");
    let tier = &plan.placed().as_slice()[0].tiers[0];
    let widths: Vec<usize> = tier.blocks.iter().map(|block| block.columns.columns()).collect();
    assert_eq!(widths.iter().sum::<usize>(), 10);
    assert!(widths.len() > 1 && widths.iter().all(|&width| width > 0), "{widths:?}");
}

#[test]
fn what_no_kind_may_have_is_refused_by_name() {
    let workload = tables(&[("narrow", 100, 4, 1.0)]);
    let topology = Topology::preset("cpu:2").expect("a preset");
    let mut task = Task::new(&workload, &topology);
    task.constraints = only(&[Kind::ColumnWise]);
    let error = Lattice::default().plan(&task).expect_err("32 columns at least").to_string();
    assert!(error.contains("table \"narrow\""), "{error}");
}

#[test]
fn a_pinned_table_stays_where_it_is_pinned() {
    let workload = tables(&[("a", 1000, 64, 100.0), ("b", 1000, 64, 1.0)]);
    let topology = Topology::preset("cpu:4").expect("a preset");
    let mut task = Task::new(&workload, &topology);
    task.constraints.replicas = Some((1, emb_shard::Layout::Strided));
    task.constraints.pinned.insert("a".into(), 3);
    let plan = Lattice::default().plan(&task).expect("a plan");
    let tier = &plan.placed().as_slice()[0].tiers[0];
    assert_eq!((tier.blocks.len(), tier.blocks[0].owners.get(0)), (1, Some(3)));
    task.constraints.pinned.insert("a".into(), 4);
    let error = Lattice::default().plan(&task).expect_err("four ranks").to_string();
    assert!(error.contains("\"a\" is pinned to position 4"), "{error}");
}

#[test]
fn groups_too_small_for_a_pinned_position_are_not_tried() {
    let workload = tables(&[("a", 1000, 64, 100.0), ("b", 1000, 64, 1.0)]);
    let topology = Topology::preset("cpu:4").expect("a preset");
    let mut task = Task::new(&workload, &topology);
    task.constraints.pinned.insert("a".into(), 3);
    let plan = Lattice::default().plan(&task).expect("a plan of one group");
    let tier = &plan.placed().as_slice()[0].tiers[0];
    assert_eq!((tier.mesh.group_ranks(), tier.blocks[0].owners.get(0)), (4, Some(3)));
}

#[test]
fn one_tier_keeps_all_rows_of_a_table_together() {
    let mut spec = WorkloadSpec::new("skewed", Batch::PerRank(2048));
    spec.access = Access::Zipf { exponent: 1.2 };
    let sequence = TableSpec { pooling: Pooling::None, ..TableSpec::new("seen", 50_000_000, 64) };
    spec.tables = vec![TableSpec { pooling_factor: 50.0, ..sequence }];
    let workload = Workload::new(spec).expect("a workload");
    let topology = Topology::preset("dgx-h100:4").expect("a preset");
    let mut task = Task::new(&workload, &topology);
    // Where a row travels for every id, hot rows are best on every rank.
    task.constraints.exchanges = Some(vec![Exchange::Rows]);
    let tiers = |task: &Task<'_>| {
        let plan = Lattice::default().plan(task).expect("a plan");
        plan.placed().as_slice()[0].tiers.len()
    };
    assert!(tiers(&task) > 1, "hot rows pay here");
    task.constraints.one_tier = true;
    assert_eq!(tiers(&task), 1);
}
