//! Any workload on any machines: covered, within the budget, the same again; or a true refusal.

use crate::common::{node_costs, rank_bytes};
use emb_shard::{
    Access, Batch, Bytes, Constraints, EmbarkBuckets, EmbarkClusters, EmbarkModel, EmbarkOptions,
    EmbarkPlanner, EmbarkSearch, Error, IdType, Kind, Layout, LevelSpec, Objective, Planner,
    Pooling, StateBytes, TableSpec, Task, Topology, TopologySpec, UnitRanks, Workload,
    WorkloadSpec,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::{BTreeMap, BTreeSet};

const KINDS: [(Kind, &str); 6] = [
    (Kind::TableWise, "table_wise"),
    (Kind::RowWise, "row_wise"),
    (Kind::ColumnWise, "column_wise"),
    (Kind::DataParallel, "data_parallel"),
    (Kind::TableRowWise, "table_row_wise"),
    (Kind::Grid, "grid"),
];

fn level(name: &str, ranks: UnitRanks, bandwidth: f64) -> LevelSpec {
    LevelSpec {
        name: name.into(),
        ranks,
        bandwidth,
        latency: 1e-5,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    }
}

/// Nodes of these many ranks.
fn topology(nodes: &[u32], memory_bytes: u64) -> Topology {
    let ranks = nodes.iter().sum();
    let levels = vec![
        level("node", UnitRanks::Each(nodes.to_vec()), 3e11),
        level("cluster", UnitRanks::Equal(ranks), 3e10),
    ];
    let (memory_bandwidth, flops) = (2e12, 1e14);
    let name = "any".to_owned();
    Topology::new(TopologySpec { name, ranks, memory_bytes, memory_bandwidth, flops, levels })
        .expect("valid")
}

/// One to 512 ranks: equal nodes, or nodes that differ.
fn any_nodes() -> impl Strategy<Value = Vec<u32>> {
    let equal = (1u32..=64, 1u32..=8).prop_map(|(nodes, ranks)| vec![ranks; nodes as usize]);
    let unequal = prop::collection::vec(1u32..=16, 1..=32);
    prop_oneof![equal, unequal]
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let dims = select(vec![1usize, 3, 8, 24, 32, 48, 64, 100, 128, 256]);
    let rows = prop_oneof![1u64..=20, 1u64..=5_000, 1u64..=1_000_000];
    let pooling = select(vec![Pooling::Sum, Pooling::Sum, Pooling::Mean, Pooling::None]);
    let one = (rows, dims, pooling, 0.0f64..=100.0, 1usize..=2, any::<bool>());
    let state = (0u32..=4, 0u32..=8);
    (prop::collection::vec(one, 1..=24), 1u64..=100_000, state).prop_map(
        |(shapes, batch, state)| {
            let mut spec = WorkloadSpec::new("any", Batch::Global(batch));
            (spec.ids, spec.state) =
                (IdType::I32, StateBytes { per_row: state.0, per_element: state.1 });
            for (number, (rows, dim, pooling, factor, features, zipf)) in
                shapes.into_iter().enumerate()
            {
                let features =
                    (0..features).map(|feature| format!("f{number} {feature}")).collect();
                spec.tables.push(TableSpec {
                    pooling,
                    pooling_factor: factor,
                    features: Some(features),
                    access: zipf.then_some(Access::Zipf { exponent: 1.1 }),
                    ..TableSpec::new(format!("t{number}"), rows, dim)
                });
            }
            Workload::new(spec).expect("valid")
        },
    )
}

/// The same with sums for all tables.
fn pooled(workloads: impl Strategy<Value = Workload>) -> impl Strategy<Value = Workload> {
    workloads.prop_map(|workload| {
        let mut spec = WorkloadSpec::from(workload);
        spec.tables.iter_mut().for_each(|table| table.pooling = Pooling::Sum);
        Workload::new(spec).expect("valid")
    })
}

fn any_options() -> impl Strategy<Value = EmbarkOptions> {
    let model = |buckets| EmbarkModel { buckets, ..EmbarkModel::default() };
    let models = vec![None, Some(model(EmbarkBuckets::Nodes)), Some(model(EmbarkBuckets::Ranks))];
    let search = select(vec![EmbarkSearch::Published, EmbarkSearch::Converged]);
    let clusters = select(vec![EmbarkClusters::Bytes, EmbarkClusters::Reduction]);
    (select(models), search, clusters).prop_map(|(model, search, clusters)| EmbarkOptions {
        model,
        search,
        clusters,
    })
}

/// Bytes of the fullest rank if every table is cut by rows over a whole group, and those of all
/// tables on one rank.
fn row_wise_and_whole(workload: &Workload, group: u32) -> (u64, u64) {
    let tables = workload.tables().tables().as_slice();
    let bytes =
        |rows: u64, table: &emb_shard::Table| table.part_bytes(rows, table.dim()).total().get();
    let row_wise = tables.iter().map(|table| bytes(table.rows().div_ceil(u64::from(group)), table));
    (row_wise.sum(), tables.iter().map(|table| bytes(table.rows(), table)).sum())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn plans_keep_the_budget_and_come_out_the_same_again(
        workload in any_workload(),
        nodes in any_nodes(),
        options in any_options(),
        (fill, reserved, min_columns) in (0.0f64..=2.0, 0u64..=1000, prop::option::of(1usize..=80)),
        (divisor, layout) in (any::<prop::sample::Index>(), select(vec![Layout::Strided, Layout::Contiguous])),
    ) {
        let world: u32 = nodes.iter().sum();
        let divisors: Vec<u32> = (1..=world.min(4)).filter(|n| world.is_multiple_of(*n)).collect();
        let replicas = divisors[divisor.index(divisors.len())];
        let (row_wise, whole) = row_wise_and_whole(&workload, world / replicas);
        // Too little, little, or plenty.
        let budget = (row_wise as f64 * (0.5 + fill)) as u64 + (whole as f64 * (fill - 1.0).max(0.0)) as u64;
        let topology = topology(&nodes, budget.max(1) + reserved);
        let constraints = Constraints {
            reserved: Bytes::new(reserved),
            min_columns,
            replicas: Some((replicas, layout)),
            ..Constraints::default()
        };
        let objective = Objective::default();
        let task = Task { workload: &workload, topology: &topology, constraints, objective };
        let planner = EmbarkPlanner { options };
        match planner.plan(&task) {
            Ok(plan) => {
                let most = rank_bytes(&plan).into_iter().max().unwrap_or(0);
                prop_assert!(most <= task.budget().get(), "{} of {}", most, task.budget().get());
                prop_assert_eq!(plan.world(), world);
                let least = min_columns.unwrap_or(32);
                for (table, placed) in workload.tables().tables().as_slice().iter().zip(plan.placed().as_slice()) {
                    for block in &placed.tiers[0].blocks {
                        prop_assert!(block.columns.columns() >= least.min(table.dim()));
                    }
                }
                prop_assert_eq!(&planner.plan(&task).expect("again"), &plan);
            }
            Err(Error::DoesNotFit(why)) => {
                prop_assert!(why.needs > why.has, "{}", why);
                prop_assert!(row_wise > task.budget().get(), "{} fits {}: {}", row_wise, task.budget().get(), why);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn only_allowed_kinds_and_pins_are_in_plans(
        workload in any_workload(),
        nodes in any_nodes(),
        options in any_options(),
        kinds in subsequence(KINDS.to_vec(), 1..=6),
        pins in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..=2),
    ) {
        let world: u32 = nodes.iter().sum();
        let topology = topology(&nodes, 1 << 40);
        let tables = workload.tables().tables().as_slice();
        let pinned: BTreeMap<String, u32> = pins
            .iter()
            .map(|(table, at)| (tables[table.index(tables.len())].name().to_owned(), at.index(world as usize) as u32))
            .collect();
        let names: BTreeSet<&str> = kinds.iter().map(|(_, name)| *name).collect();
        let constraints = Constraints {
            kinds: Some(kinds.iter().map(|(kind, _)| *kind).collect()),
            pinned: pinned.clone(),
            ..Constraints::default()
        };
        let objective = Objective::default();
        let task = Task { workload: &workload, topology: &topology, constraints, objective };
        match (EmbarkPlanner { options }).plan(&task) {
            Ok(plan) => {
                for placed in plan.placed().as_slice() {
                    let tier = &placed.tiers[0];
                    prop_assert!(names.contains(tier.kind()), "{} of {:?}", tier.kind(), names);
                    if let Some(&at) = pinned.get(&placed.table).filter(|_| world > 1) {
                        let [block] = &tier.blocks[..] else { panic!("whole") };
                        prop_assert_eq!(block.owners.iter().collect::<Vec<_>>(), [at]);
                    }
                }
            }
            Err(Error::Constraint { what }) => {
                prop_assert!(!names.contains("row_wise") || world == 1 || !pinned.is_empty(), "{}", what);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn no_plan_of_sums_is_below_the_bound_and_converging_never_costs_more(
        workload in pooled(any_workload()),
        (nodes, ranks) in (2u32..=16, 1u32..=4),
    ) {
        let topology = topology(&vec![ranks; nodes as usize], 1 << 40);
        let mut task = Task::new(&workload, &topology);
        task.constraints.min_columns = Some(8);
        let plan = |search| {
            let model = Some(EmbarkModel::default());
            let options = EmbarkOptions { model, search, clusters: EmbarkClusters::Reduction };
            let plan = EmbarkPlanner { options }.plan(&task).expect("fits");
            (plan, EmbarkPlanner { options }.lower_bound(&task).expect("fits"))
        };
        let max = |plan| node_costs(plan, ranks, 4.0, 60.0).into_iter().fold(0.0, f64::max);
        let (published, bound) = plan(EmbarkSearch::Published);
        let (converged, _) = plan(EmbarkSearch::Converged);
        prop_assert!(max(&converged) <= max(&published) * (1.0 + 1e-9));
        prop_assert!(max(&converged) >= bound * (1.0 - 1e-9), "{} below {}", max(&converged), bound);
    }
}

#[test]
fn u30_a_table_too_large_for_all_nodes_is_named_with_what_it_is_short_of() {
    let mut spec = WorkloadSpec::new("large", Batch::PerRank(8));
    spec.tables = vec![TableSpec::new("small", 1000, 64), TableSpec::new("vast", 1 << 33, 64)];
    let workload = Workload::new(spec).expect("valid");
    let topology = topology(&[8, 8], 100_000_000_000);
    let error = EmbarkPlanner::default().plan(&Task::new(&workload, &topology)).expect_err("vast");
    let Error::DoesNotFit(why) = error else { panic!("{error}") };
    assert_eq!((why.table.as_str(), why.placement), ("vast", "row_wise"));
    assert!(why.short().get() > 37_000_000_000, "{why}");
    assert_eq!(why.row_wise_world, Some(22));
}
