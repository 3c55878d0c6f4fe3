//! What each baseline decides, on tasks small enough to see it.

use crate::common::{Shape, bytes_by_rank, kinds, machines, named, positions, workload};
use emb_shard::{
    Beam, Constraints, CostModel, Exchange, Greedy, GreedyBy, Kind, Layout, Path, Per, Plan,
    Planner, Random, StepModel, Task, Topology,
};

const PLENTY: u64 = 1 << 40;

/// Owners of whole tables, in table order.
fn owners(plan: &Plan) -> Vec<u32> {
    (0..plan.placed().as_slice().len()).map(|table| positions(plan, table)[0][0]).collect()
}

#[test]
fn greedy_planners_part_what_they_call_heavy() {
    // Rows, columns, ids a bag: each cost has its own two heaviest.
    let workload = workload(&[
        (1_000_000, 4, 1.0, true),
        (900_000, 4, 1.0, true),
        (100, 64, 1.0, true),
        (100, 60, 1.0, true),
        (10, 16, 90.0, true),
        (10, 16, 80.0, true),
    ]);
    let topology = machines(&[2], PLENTY);
    let task = Task::new(&workload, &topology);
    let apart = |by, a: usize, b: usize| {
        let owners = owners(&Greedy { by }.plan(&task).expect("room"));
        owners[a] != owners[b]
    };
    assert!(apart(GreedyBy::Size, 0, 1));
    assert!(apart(GreedyBy::Dim, 2, 3));
    assert!(apart(GreedyBy::Lookup, 4, 5));
    assert!(apart(GreedyBy::SizeLookup, 4, 5));
    // By dim: 64 | 60, then 16 to the lighter, 16 to the other, 4 and 4 by load.
    assert_eq!(owners(&named("greedy-dim").plan(&task).expect("room")), [1, 0, 0, 1, 1, 0]);
}

#[test]
fn u31_heavy_look_ups_are_apart() {
    let workload =
        workload(&[(100, 64, 100.0, true), (100, 64, 100.0, true), (100, 64, 1.0, true)]);
    let topology = machines(&[2], PLENTY);
    for name in ["greedy-lookup", "greedy-size-lookup", "torchrec"] {
        let mut task = Task::new(&workload, &topology);
        task.constraints.kinds = Some([Kind::TableWise].into());
        let plan = named(name).plan(&task).expect("room");
        let report = plan.report();
        let lookups: Vec<f64> = report.ranks().iter().map(|load| load.lookups).collect();
        assert_eq!(lookups.iter().copied().fold(0.0, f64::max), 101.0, "{name}: {lookups:?}");
    }
}

#[test]
fn equal_loads_go_to_fewer_bytes_then_to_the_lower_number() {
    let workload = workload(&[(100, 8, 0.0, true), (50, 8, 0.0, true), (20, 8, 0.0, true)]);
    let topology = machines(&[3], PLENTY);
    let plan = named("greedy-lookup").plan(&Task::new(&workload, &topology)).expect("room");
    assert_eq!(owners(&plan), [0, 1, 2]);
}

#[test]
fn random_plans_follow_their_seed_and_use_every_rank() {
    let shapes: Vec<_> = (0..64).map(|_| (100, 8, 1.0, true)).collect();
    let (workload, topology) = (workload(&shapes), machines(&[4, 4], PLENTY));
    let task = Task::new(&workload, &topology);
    let plan = |seed| owners(&Random { seed }.plan(&task).expect("room"));
    assert_eq!(plan(7), plan(7));
    assert_ne!(plan(7), plan(8));
    for rank in 0..8 {
        let tables = plan(0).iter().filter(|&&owner| owner == rank).count();
        assert!((1..=24).contains(&tables), "rank {rank} has {tables} of 64");
    }
}

#[test]
fn random_tables_go_where_there_is_room() {
    // Four tables of 3,200 bytes and room for exactly two on each rank.
    let shapes = [(80, 9, 1.0, true); 4];
    let (workload, topology) = (workload(&shapes), machines(&[2], 6_400));
    for seed in 0..20 {
        let plan = Random { seed }.plan(&Task::new(&workload, &topology)).expect("fits");
        assert_eq!(bytes_by_rank(&plan), [6_400, 6_400]);
    }
}

#[test]
fn table_row_wise_takes_nodes_in_turn_and_cuts_rows_round_robin() {
    let workload = workload(&[
        (1_001, 8, 1.0, true),
        (1_000, 8, 1.0, true),
        (10, 8, 1.0, false),
        (1_000, 8, 1.0, true),
    ]);
    let topology = machines(&[2, 2, 2], PLENTY);
    let plan = named("table-row-wise").plan(&Task::new(&workload, &topology)).expect("room");
    assert_eq!(kinds(&plan), ["table_row_wise"; 4]);
    let owners: Vec<_> = (0..4).map(|table| positions(&plan, table)).collect();
    assert_eq!(owners, [[[0, 1]], [[2, 3]], [[4, 5]], [[0, 1]]]);
    let exchange = |table: usize| plan.placed().as_slice()[table].tiers[0].exchange;
    assert_eq!(exchange(0), Exchange::Reduce { over: Path::Hierarchical });
    assert_eq!(exchange(2), Exchange::Unique { per: Per::Rank });
    let map = &plan.placed().as_slice()[0].tiers[0].blocks[0].map;
    assert_eq!(map.locate(6).expect("a row").owner, 0);
    assert_eq!(map.locate(7).expect("a row").owner, 1);
}

#[test]
fn table_row_wise_spans_all_ranks_only_beyond_a_node_and_skips_full_nodes() {
    // A row takes 36 bytes: 3,000 rows exceed the 54,000 bytes of a node, 1,400 do not.
    let shapes = [(3_000, 8, 1.0, true), (1_000, 8, 1.0, true), (400, 8, 1.0, true)];
    let (workload, topology) = (workload(&shapes), machines(&[1, 1], 90_000));
    let plan = named("table-row-wise").plan(&Task::new(&workload, &topology)).expect("fits");
    assert_eq!(kinds(&plan), ["row_wise", "table_wise", "table_wise"]);
    // Table 1 goes to node 1, table 2 to node 0; each has 36,000 bytes left.
    assert_eq!((positions(&plan, 1), positions(&plan, 2)), (vec![vec![1]], vec![vec![0]]));
    let shapes =
        [(10, 8, 1.0, true), (2_000, 8, 1.0, true), (10, 8, 1.0, true), (600, 8, 1.0, true)];
    let (workload, topology) = (self::workload(&shapes), machines(&[1, 1], 90_000));
    let plan = named("table-row-wise").plan(&Task::new(&workload, &topology)).expect("fits");
    // Node 1 has 18,000 bytes left, table 3 takes 21,600.
    assert_eq!(positions(&plan, 3), [[0]]);
}

#[test]
fn unequal_nodes_are_cut_by_what_divides_them_all() {
    let (workload, topology) = (workload(&[(100, 8, 1.0, true)]), machines(&[4, 6, 2], PLENTY));
    let plan = named("table-row-wise").plan(&Task::new(&workload, &topology)).expect("room");
    assert_eq!((plan.node_ranks(), positions(&plan, 0)), (2, vec![vec![0, 1]]));
}

#[test]
fn torchrec_repeats_small_tables_and_cuts_large_ones() {
    let (small, large) = ([(10, 8, 1.0, true); 3], [(50_000_000, 128, 40.0, true)]);
    let topology = machines(&[4, 4], 80 << 30);
    let kinds_of = |shapes: &[Shape], topology: &Topology| {
        let workload = workload(shapes);
        kinds(&named("torchrec").plan(&Task::new(&workload, topology)).expect("fits"))
    };
    assert_eq!(kinds_of(&small, &topology), ["data_parallel"; 3]);
    assert_eq!(kinds_of(&large, &topology), ["table_row_wise"]);
    // 25.8 GB: too much for the four ranks of a node.
    assert_eq!(kinds_of(&large, &machines(&[4, 4], 4 << 30)), ["row_wise"]);
}

#[test]
fn torchrec_makes_a_grid_only_where_it_is_named() {
    let (workload, topology) = (workload(&[(1_000, 256, 1.0, true)]), machines(&[2, 2], PLENTY));
    let mut task = Task::new(&workload, &topology);
    task.constraints.kinds = Some([Kind::Grid].into());
    let plan = named("torchrec").plan(&task).expect("two blocks");
    assert_eq!((kinds(&plan), positions(&plan, 0)), (vec!["grid"], vec![vec![0, 1], vec![2, 3]]));
}

#[test]
fn groups_repeat_what_was_planned_for_one() {
    let shapes = [(1_000, 16, 3.0, true), (500, 16, 9.0, true), (200, 16, 1.0, false)];
    let (workload, topology) = (workload(&shapes), machines(&[4, 4], PLENTY));
    let constraints =
        Constraints { replicas: Some((2, Layout::Contiguous)), ..Constraints::default() };
    let task = Task { constraints, ..Task::new(&workload, &topology) };
    for planner in emb_shard::baselines() {
        let plan = planner.plan(&task).expect("room");
        let bytes = bytes_by_rank(&plan);
        assert_eq!(bytes[..4], bytes[4..], "{}", planner.name());
    }
}

#[test]
fn beam_halves_columns_of_a_table_too_large_for_a_rank() {
    // 1,000 rows of 64 columns and 4 bytes of state: 260,000 bytes whole, 132,000 by halves.
    let shapes = [(1_000, 64, 5.0, true), (10, 4, 1.0, true)];
    let (workload, topology) = (workload(&shapes), machines(&[2], 140_000));
    let plan = named("beam").plan(&Task::new(&workload, &topology)).expect("halves fit");
    assert_eq!(kinds(&plan), ["column_wise", "table_wise"]);
    let mut owners: Vec<u32> = positions(&plan, 0).concat();
    owners.sort_unstable();
    assert_eq!(owners, [0, 1]);
    // Halves of 12 columns would be of 6, no multiple of four.
    let topology = machines(&[2], 40_000);
    let odd = self::workload(&[(1_000, 12, 5.0, true)]);
    assert!(named("beam").plan(&Task::new(&odd, &topology)).is_err());
    let even = self::workload(&[(1_000, 16, 5.0, true)]);
    assert!(named("beam").plan(&Task::new(&even, &topology)).is_ok());
}

#[test]
fn beam_costs_no_more_than_its_greedy_start() {
    let shapes: Vec<Shape> = (1..12).map(|n| (n * 1_000, 64, n as f64, true)).collect();
    // State by row would make owners of columns tell each other statistics.
    let mut spec = emb_shard::WorkloadSpec::from(workload(&shapes));
    spec.state = emb_shard::StateBytes { per_row: 0, per_element: 4 };
    let workload = emb_shard::Workload::new(spec).expect("valid");
    let topology = machines(&[4], PLENTY);
    let task = Task::new(&workload, &topology);
    let seconds = |beam: &Beam| {
        let plan = beam.plan(&task).expect("room");
        let estimate = StepModel::default().estimate(&plan, &workload, &topology);
        estimate.expect("its own plan").step_seconds()
    };
    let (without, with) = (Beam { splits: 0, ..Beam::default() }, Beam::default());
    assert!(seconds(&with) < seconds(&without), "splits even out what whole tables cannot");
}
