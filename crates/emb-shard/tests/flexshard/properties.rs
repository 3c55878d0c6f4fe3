//! What holds for every task: random tables, look-ups and machines.

use emb_shard::{
    Access, Batch, Constraints, Duplicates, Error, Exchange, FlexShardPlanner, Histogram, IdType,
    Kind, Layout, LevelSpec, Objective, Plan, Planner, Pooling, Rank, StateBytes, StepModel,
    TableSpec, Task, Tier, Topology, TopologySpec, UnitRanks, ValueType, Workload, WorkloadSpec,
};
use proptest::prelude::*;

fn any_access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Uniform),
        (0.0..3.0_f64).prop_map(|exponent| Access::Zipf { exponent }),
        prop::collection::vec(1_u64..1000, 1..8).prop_map(|counts| {
            Access::Histogram(Histogram::of_counts(counts).expect("counts above 0"))
        }),
    ]
}

fn any_table() -> impl Strategy<Value = TableSpec> {
    let rows = prop_oneof![8_u64..100, 100_u64..100_000, 100_000_u64..2_000_000_000];
    let pooling = prop_oneof![Just(Pooling::None), Just(Pooling::Sum), Just(Pooling::Mean)];
    let lookups = prop_oneof![Just(0.0), Just(1.0), 0.1..100.0_f64];
    (rows, 1_usize..300, lookups, pooling, any_access(), 1_usize..4).prop_map(
        |(rows, dim, pooling_factor, pooling, access, features)| TableSpec {
            pooling_factor,
            pooling,
            access: Some(access),
            features: Some((0..features).map(|number| format!("f{number}")).collect()),
            ..TableSpec::new("", rows, dim)
        },
    )
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let batch = prop_oneof![
        (1_u64..4096).prop_map(Batch::PerRank),
        (1_u64..100_000).prop_map(Batch::Global),
    ];
    let values = prop_oneof![Just(ValueType::F32), Just(ValueType::Bf16)];
    let tables = prop::collection::vec(any_table(), 1..6);
    (batch, values, tables, 0_u32..9, any::<bool>()).prop_map(
        |(batch, rows, tables, state, short)| {
            let mut spec = WorkloadSpec::new("random", batch);
            spec.rows = rows;
            spec.state = StateBytes { per_row: 4, per_element: state };
            spec.ids = if short { IdType::I32 } else { IdType::I64 };
            for (number, mut table) in tables.into_iter().enumerate() {
                table.name = format!("t{number}");
                for feature in table.features.iter_mut().flatten() {
                    *feature = format!("t{number}{feature}");
                }
                spec.tables.push(table);
            }
            Workload::new(spec).expect("valid workload")
        },
    )
}

/// Nodes alike or not, up to 512 ranks; `memory` bytes each.
fn topology(nodes: &[u32], ratio: f64, memory_bytes: u64) -> Topology {
    let ranks = nodes.iter().sum();
    let level = |name: &str, ranks, bandwidth| LevelSpec {
        name: name.into(),
        ranks,
        bandwidth,
        latency: 1e-5,
        all_to_all: vec![(2, 1.0), (64, 0.7)],
        transfers: Vec::new(),
    };
    let mut levels = vec![level("node", UnitRanks::Each(nodes.to_vec()), ratio * 1e10)];
    if nodes.len() > 1 {
        levels.push(level("cluster", UnitRanks::Equal(ranks), 1e10));
    }
    Topology::new(TopologySpec {
        name: "random".into(),
        ranks,
        memory_bytes,
        memory_bandwidth: 1e12,
        flops: 1e14,
        levels,
    })
    .expect("valid machines")
}

fn any_nodes() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        (1_u32..=64, 1_u32..=8).prop_map(|(nodes, ranks)| vec![ranks; nodes as usize]),
        prop::collection::vec(1_u32..=8, 1..=64),
        prop::collection::vec(1_u32..=4, 1..=8)
            .prop_map(|halves| { halves.into_iter().map(|half| 2 * half).collect() }),
    ]
}

/// Rows that the rank has of a tier whose rows are dealt out in turn to groups of neighbours.
fn rows_of(tier: &Tier, rank: u32) -> u64 {
    let group = tier.mesh.group_ranks();
    let (rows, group, position) = (tier.rows.rows(), u64::from(group), u64::from(rank % group));
    rows / group + u64::from(position < rows % group)
}

/// Bytes of weights and state of a rank, tier by tier.
fn stored(workload: &Workload, plan: &Plan, rank: u32) -> f64 {
    let mut bytes = 0.0;
    for (id, placed) in plan.placed().iter() {
        let table = &workload.tables().tables()[id];
        let element = u32::from(table.element_bytes()) + table.state().per_element;
        let row = table.dim() as u64 * u64::from(element) + u64::from(table.state().per_row);
        bytes += placed.tiers.iter().map(|tier| (rows_of(tier, rank) * row) as f64).sum::<f64>();
    }
    bytes
}

/// Bytes of buffers where all owners are asked for the same: rows or sums and their gradients as
/// sent and as received, ids likewise.
fn buffers(workload: &Workload, plan: &Plan, samples: f64) -> f64 {
    let mut bytes = 0.0;
    for (id, placed) in plan.placed().iter() {
        let (table, law) = (&workload.tables().tables()[id], &workload.frequencies()[id]);
        let row = workload.outputs().row_bytes(table.dim()) as f64;
        let id = f64::from(workload.ids().bytes());
        let lookups = table.lookups() * samples;
        for tier in &placed.tiers {
            let share = law.share_of_top(tier.rows.end()) - law.share_of_top(tier.rows.start());
            bytes += match tier.exchange {
                Exchange::Local => 0.0,
                Exchange::Rows => lookups * share * (4.0 * row + 2.0 * id),
                Exchange::Unique { .. } => {
                    let distinct =
                        law.expected_unique_in(tier.rows, lookups).expect("of the table");
                    distinct * (4.0 * row + 2.0 * id)
                }
                Exchange::Reduce { .. } => {
                    let bags = table.features().len() as f64 * samples;
                    4.0 * bags * f64::from(tier.mesh.group_ranks()) * row
                        + lookups * share * 2.0 * id
                }
            };
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_of_random_tasks_cover_fit_and_repeat(
        workload in any_workload(),
        nodes in any_nodes(),
        ratio in 0.5..20.0_f64,
        room in -1.0..4.0_f64,
        per_rank in any::<bool>(),
        imbalance in prop_oneof![Just(0.0), Just(0.1)],
    ) {
        let world: u32 = nodes.iter().sum();
        let all = workload.tables().tables().as_slice().iter();
        let all: f64 = all.map(|t| t.part_bytes(t.rows(), t.dim()).total().get() as f64).sum();
        let memory = (10_f64.powf(room) * all / f64::from(world)) as u64 + 1;
        let topology = topology(&nodes, ratio, memory);
        let duplicates = if per_rank { Duplicates::PerRank } else { Duplicates::Kept };
        let planner = FlexShardPlanner { duplicates, imbalance };
        let task = Task::new(&workload, &topology);
        let found = planner.plan(&task);
        prop_assert_eq!(&found, &planner.plan(&task), "the same twice");
        let plan = match found {
            Ok(plan) => plan,
            Err(Error::DoesNotFit(why)) => {
                prop_assert!(why.needs > why.has, "{why}");
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let node_ranks = task.node_ranks();
        for placed in plan.placed().as_slice() {
            let groups: Vec<u32> =
                placed.tiers.iter().map(|tier| tier.mesh.group_ranks()).collect();
            prop_assert!(groups.is_sorted() && groups.len() <= 3);
            for (tier, group) in placed.tiers.iter().zip(groups) {
                prop_assert!([1, node_ranks, world].contains(&group));
                let neighbours = tier.mesh.layout() == Layout::Contiguous;
                prop_assert!(neighbours || group == 1 || group == world);
            }
        }
        let samples = workload.batch().global(world).expect("ranks") as f64 / f64::from(world);
        for rank in [0, world / 2, world - 1] {
            let bytes = stored(&workload, &plan, rank);
            let counted = plan.bytes_of(Rank::new(rank)).expect("a rank").total().get() as f64;
            prop_assert_eq!(bytes, counted);
            let bytes = bytes + buffers(&workload, &plan, samples);
            prop_assert!(bytes <= memory as f64 * (1.0 + 1e-12), "{bytes} of {memory}");
        }
    }

    #[test]
    fn plans_keep_to_random_constraints(
        workload in any_workload(),
        nodes in any_nodes(),
        kinds in prop::collection::btree_set(
            prop_oneof![Just(Kind::RowWise), Just(Kind::DataParallel), Just(Kind::Grid)], 0..4,
        ),
        any_kind in any::<bool>(),
        max_replicas in prop::option::of(1_u32..9),
        replicas in prop::option::of((1_u32..9, prop_oneof![
            Just(Layout::Strided), Just(Layout::Contiguous),
        ])),
        pinned in prop::option::of(0_u32..9),
    ) {
        let mut constraints = Constraints { max_replicas, replicas, ..Constraints::default() };
        constraints.kinds = (!any_kind).then_some(kinds);
        constraints.pinned.extend(pinned.map(|position| ("t0".to_owned(), position)));
        let topology = topology(&nodes, 4.0, 1 << 50);
        let task = Task { constraints, ..Task::new(&workload, &topology) };
        let plan = match FlexShardPlanner::default().plan(&task) {
            Ok(plan) => plan,
            Err(Error::Constraint { .. }) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let asked = &task.constraints;
        for placed in plan.placed().as_slice() {
            let position = asked.pinned.get(&placed.table);
            for tier in &placed.tiers {
                match position {
                    Some(&position) => prop_assert_eq!(tier.blocks[0].owners.as_span(), Some((position, 1))),
                    None if any_kind => {}
                    None => {
                        let names = asked.kinds.iter().flatten().map(|kind| format!("{kind:?}"));
                        let mut names = names.map(|name| name.to_lowercase());
                        let kind = tier.kind().replace('_', "");
                        prop_assert!(names.any(|name| name == kind), "{kind}");
                    }
                }
                if tier.mesh.group_ranks() > 1 {
                    let count = tier.mesh.replicas();
                    prop_assert!(max_replicas.is_none_or(|most| count <= most));
                    prop_assert!(replicas.is_none_or(|(exactly, _)| count == exactly));
                }
            }
        }
    }
}

/// A workload of `tables` tables of different rows, skew and pooling.
fn many(tables: u64) -> Workload {
    let mut spec = WorkloadSpec::new("many", Batch::PerRank(512));
    for number in 0..tables {
        // Deterministic spread.
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        spec.tables.push(TableSpec {
            pooling_factor: 1.0 + (spread % 60) as f64,
            pooling: if number % 2 == 0 { Pooling::None } else { Pooling::Sum },
            access: Some(Access::Zipf { exponent: 0.8 + (spread % 7) as f64 / 10.0 }),
            ..TableSpec::new(format!("t{number}"), 1000 + spread * 20, 64)
        });
    }
    Workload::new(spec).expect("valid workload")
}

#[test]
fn hundreds_of_tables_on_a_thousand_ranks_take_seconds_under_a_budget() {
    let workload = many(856);
    for duplicates in [Duplicates::Kept, Duplicates::PerRank] {
        let planner = FlexShardPlanner { duplicates, ..FlexShardPlanner::default() };
        // Seconds, and bytes of the fullest rank as the cost model counts them.
        let plan = |memory, objective| {
            let topology = topology(&[8; 128], 12.0, memory);
            let start = std::time::Instant::now();
            let task = Task { objective, ..Task::new(&workload, &topology) };
            let plan = planner.plan(&task).expect("fits");
            let seconds = start.elapsed().as_secs_f64();
            let model = StepModel::default();
            let peak = model.ledger(&plan, &workload, &topology).expect("of it").peak_bytes();
            (seconds, peak.get())
        };
        let (_, most) = plan(1 << 50, Objective::StepSeconds);
        let (_, least) = plan(1 << 50, Objective::Memory);
        let between = u64::midpoint(least, most);
        let (seconds, peak) = plan(between, Objective::StepSeconds);
        eprintln!("{duplicates:?}: {least} to {most} bytes, {peak} in {seconds:.2} s");
        assert!(least < most && peak <= between, "{least} {peak} {most}");
        assert!(seconds < 20.0, "{seconds} s");
    }
}
