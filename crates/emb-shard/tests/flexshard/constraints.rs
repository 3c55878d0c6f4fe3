//! What tasks may ask for, and what is refused.

use crate::common::{machines, one_sequence, tiers};
use emb_shard::{
    Access, Batch, Bytes, Constraints, CostModel as _, Duplicates, Error, Exchange,
    FlexShardPlanner, Kind, Layout, LevelSpec, Objective, Path, Per, Plan, Planner, Pooling,
    StepModel, TableId, TableSpec, Task, Topology, TopologySpec, UnitRanks, ValueType, Workload,
    WorkloadSpec,
};

fn skewed() -> Workload {
    one_sequence(1.05, 1_000_000, 64, 102_400)
}

fn constrained(constraints: Constraints) -> emb_shard::Result<Plan> {
    let (workload, topology) = (skewed(), machines(4, 4, 12.0, 1 << 40));
    let task = Task { constraints, ..Task::new(&workload, &topology) };
    FlexShardPlanner::default().plan(&task)
}

fn groups(plan: &Plan) -> Vec<u32> {
    tiers(plan).into_iter().map(|(_, group)| group).collect()
}

fn only(kinds: &[Kind]) -> Constraints {
    Constraints { kinds: Some(kinds.iter().copied().collect()), ..Constraints::default() }
}

#[test]
fn kinds_that_are_not_allowed_are_not_used() {
    assert_eq!(groups(&constrained(Constraints::default()).expect("fits")), [1, 4, 16]);
    assert_eq!(groups(&constrained(only(&[Kind::RowWise])).expect("fits")), [4, 16]);
    assert_eq!(groups(&constrained(only(&[Kind::DataParallel])).expect("fits")), [1]);
    let error = constrained(only(&[Kind::TableWise, Kind::Grid])).expect_err("neither");
    assert!(error.to_string().contains("neither row_wise nor data_parallel"), "{error}");
}

#[test]
fn replicas_are_as_many_as_the_task_says() {
    let most = Constraints { max_replicas: Some(3), ..Constraints::default() };
    assert_eq!(groups(&constrained(most).expect("fits")), [1, 16]);
    let replicas = Some((2, Layout::Contiguous));
    let exactly = Constraints { replicas, ..Constraints::default() };
    assert_eq!(groups(&constrained(exactly.clone()).expect("fits")), [1, 8]);
    let both = Constraints { max_replicas: Some(1), ..exactly };
    assert!(constrained(both).expect_err("2 > 1").to_string().contains("at most 1"));
    let odd = Constraints { replicas: Some((3, Layout::Strided)), ..Constraints::default() };
    assert!(constrained(odd).expect_err("16 / 3").to_string().contains("3 replicas"));
}

#[test]
fn pinned_tables_stay_whole_where_they_are_pinned() {
    let pin = |name: &str, position| Constraints {
        pinned: [(name.to_owned(), position)].into(),
        ..Constraints::default()
    };
    let plan = constrained(pin("seen", 5)).expect("fits");
    let tier = &plan.placed()[TableId::new(0)].tiers[0];
    assert_eq!((tier.kind(), tier.blocks[0].owners.get(0)), ("table_wise", Some(5)));
    let error = constrained(pin("sene", 5)).expect_err("no such table");
    assert!(error.to_string().contains("sene"), "{error}");
    let error = constrained(pin("seen", 16)).expect_err("no such position");
    assert!(error.to_string().contains("position 16"), "{error}");
    // The table takes 260 MB on the rank that it is pinned to.
    let mut tight = pin("seen", 5);
    tight.reserved = Bytes::new((1 << 40) - 100_000_000);
    match constrained(tight).expect_err("too large") {
        Error::DoesNotFit(why) => {
            assert_eq!((why.table.as_str(), why.placement), ("seen", "table_wise"));
            assert_eq!(why.short().get(), 160_000_000);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn u30_a_table_that_does_not_fit_is_named_with_what_it_is_short_of() {
    let (workload, topology) = (skewed(), machines(4, 4, 12.0, 10_000_000));
    let error = FlexShardPlanner::default().plan(&Task::new(&workload, &topology));
    let Error::DoesNotFit(why) = error.expect_err("16 MB a rank and buffers") else {
        panic!("must not fit")
    };
    assert_eq!((why.table.as_str(), why.placement), ("seen", "row_wise"));
    // A row takes 260 bytes with its state: 38461 of the million would fit on a rank.
    assert_eq!((why.has.get(), why.row_wise.get()), (10_000_000, 16_250_000));
    assert_eq!(why.row_wise_world, Some(27));
    // Even the leanest tiers need buffers beside the rows.
    assert!(why.needs.get() > 20_000_000, "{why}");
}

#[test]
fn the_dense_model_and_reserved_bytes_leave_less_for_tiers() {
    let mut spec: WorkloadSpec = skewed().into();
    let hot = |spec: &WorkloadSpec, memory, reserved| {
        let workload = Workload::new(spec.clone()).expect("valid");
        let topology = machines(4, 4, 12.0, memory);
        let mut task = Task::new(&workload, &topology);
        task.constraints.reserved = Bytes::new(reserved);
        let planner = FlexShardPlanner { imbalance: 0.0, ..FlexShardPlanner::default() };
        planner.plan(&task).map(|plan| tiers(&plan))
    };
    let most = 48_000_000;
    let tight = hot(&spec, most, 0).expect("fits");
    let roomy = hot(&spec, 1 << 40, 0).expect("fits");
    assert_ne!(tight, roomy);
    assert_eq!(hot(&spec, most + 7_000_000, 7_000_000).expect("fits"), tight);
    spec.dense_model.memory_bytes = 3_000_000;
    spec.dense_model.memory_bytes_per_sample = 1000;
    assert_eq!(hot(&spec, most + 3_000_000 + 1024 * 1000, 0).expect("fits"), tight);
}

#[test]
fn one_node_and_nodes_of_one_rank_have_no_tier_in_a_node() {
    for (nodes, ranks) in [(1, 8), (8, 1), (1, 1)] {
        let (workload, topology) = (skewed(), machines(nodes, ranks, 12.0, 1 << 40));
        let plan = FlexShardPlanner::default().plan(&Task::new(&workload, &topology));
        let expected: &[u32] = if nodes * ranks == 1 { &[1] } else { &[1, 8] };
        assert_eq!(groups(&plan.expect("fits")), expected, "{nodes} x {ranks}");
    }
}

#[test]
fn unequal_nodes_are_cut_into_equal_ones() {
    let level = |name: &str, ranks, bandwidth| LevelSpec {
        name: name.into(),
        ranks,
        bandwidth,
        latency: 0.0,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    };
    let of = |nodes: &[u32]| {
        let ranks = nodes.iter().sum();
        let topology = Topology::new(TopologySpec {
            name: "unequal".into(),
            ranks,
            memory_bytes: 1 << 40,
            memory_bandwidth: 1e12,
            flops: 1e14,
            levels: vec![
                level("node", UnitRanks::Each(nodes.to_vec()), 3e11),
                level("cluster", UnitRanks::Equal(ranks), 25e9),
            ],
        })
        .expect("valid machines");
        let workload = skewed();
        let plan = FlexShardPlanner::default().plan(&Task::new(&workload, &topology));
        groups(&plan.expect("fits"))
    };
    assert_eq!(of(&[8, 4, 12]), [1, 4, 24]);
    assert_eq!(of(&[8, 5]), [1, 13]);
}

#[test]
fn tiers_are_cut_for_links_as_fast_as_they_are_in_messages_of_their_bytes() {
    // Between nodes, the bandwidth is that of messages far larger than those of a step: what sums
    // send in a hop takes as long as a hundred times as much.
    let machines = |transfers| {
        let mut spec = TopologySpec::from(machines(4, 4, 12.0, 1 << 40));
        spec.levels[1].transfers = transfers;
        Topology::new(spec).expect("valid machines")
    };
    let straight = machines(Vec::new());
    let bent = machines(vec![(20_000, 4e-5), (2_000_000, 8e-5), (1_000_000_000, 4e-2)]);
    let workload = skewed();
    let planner = FlexShardPlanner { imbalance: 0.0, ..FlexShardPlanner::default() };
    let plan = |topology| planner.plan(&Task::new(&workload, topology)).expect("fits");
    let seconds = |plan| {
        let model = StepModel::default();
        model.estimate(plan, &workload, &bent).expect("its tables").step_seconds()
    };
    let (blind, seeing) = (plan(&straight), plan(&bent));
    assert_ne!(blind.placed(), seeing.placed());
    assert!(seconds(&seeing) < seconds(&blind), "{} {}", seconds(&seeing), seconds(&blind));
}

#[test]
fn gradients_of_fewer_bytes_are_cheaper_to_sum_so_that_more_rows_are_replicated() {
    let topology = machines(4, 4, 12.0, 1 << 40);
    let replicated = |gradients| {
        let mut spec: WorkloadSpec = skewed().into();
        spec.gradients = gradients;
        let workload = Workload::new(spec).expect("valid");
        let planner = FlexShardPlanner { imbalance: 0.0, ..FlexShardPlanner::default() };
        let plan = planner.plan(&Task::new(&workload, &topology)).expect("fits");
        tiers(&plan)[0].0.rows()
    };
    let (whole, half) = (replicated(None), replicated(Some(ValueType::F16)));
    assert!(half > whole, "{half} and {whole}");
}

#[test]
fn uniform_tables_stay_row_wise() {
    let mut spec: WorkloadSpec = skewed().into();
    spec.access = Access::Uniform;
    let (workload, topology) = (Workload::new(spec).expect("valid"), machines(4, 4, 12.0, 1 << 40));
    let plan = FlexShardPlanner::default().plan(&Task::new(&workload, &topology)).expect("fits");
    assert_eq!(groups(&plan), [16]);
    assert_eq!(plan.placed()[TableId::new(0)].tiers[0].kind(), "row_wise");
}

#[test]
fn rows_that_would_overload_their_owner_are_replicated_in_any_case() {
    // So few look-ups that nothing pays, and a row that takes a part of them all.
    let workload = one_sequence(1.2, 1_000_000, 64, 100);
    let mut spec: WorkloadSpec = workload.into();
    spec.tables[0].pooling_factor = 0.01;
    let workload = Workload::new(spec).expect("valid");
    let topology = machines(16, 8, 12.0, 1 << 40);
    let plan = |imbalance| {
        let planner = FlexShardPlanner { imbalance, ..FlexShardPlanner::default() };
        planner.plan(&Task::new(&workload, &topology)).expect("fits")
    };
    assert_eq!(groups(&plan(0.0)), [128]);
    let law = &workload.frequencies()[TableId::new(0)];
    for imbalance in [0.1, 0.5] {
        let (replicated, group) = tiers(&plan(imbalance))[0];
        assert_eq!(group, 1);
        let hottest = law.probability(replicated.end()).expect("a row");
        assert!(hottest * 128.0 <= imbalance, "{hottest}");
        let last = law.probability(replicated.end() - 1).expect("a row");
        assert!(last * 128.0 > imbalance, "{last}");
        assert!(replicated.rows() as f64 <= 128.0 / imbalance);
    }
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        let planner = FlexShardPlanner { imbalance: bad, ..FlexShardPlanner::default() };
        let error = planner.plan(&Task::new(&workload, &topology)).expect_err("refused");
        assert!(error.to_string().contains("must be finite and at least 0"), "{error}");
    }
}

#[test]
fn pooled_tables_are_one_tier_and_cut_like_others_where_their_rows_travel() {
    let mut spec = WorkloadSpec::new("pooled", Batch::PerRank(1024));
    spec.access = Access::Zipf { exponent: 1.05 };
    let pooled = |name: &str, rows, pooling_factor| TableSpec {
        pooling_factor,
        pooling: Pooling::Sum,
        ..TableSpec::new(name, rows, 64)
    };
    spec.tables = vec![pooled("small", 1000, 10.0), pooled("large", 100_000_000, 10.0)];
    let workload = Workload::new(spec).expect("valid");
    let topology = machines(16, 8, 12.0, 80_000_000_000);
    let plan = |duplicates| {
        let planner = FlexShardPlanner { duplicates, imbalance: 0.0 };
        planner.plan(&Task::new(&workload, &topology))
    };
    let kept = plan(Duplicates::Kept).expect("fits");
    let tables = kept.placed().as_slice().iter();
    let exchanges: Vec<Vec<Exchange>> =
        tables.map(|table| table.tiers.iter().map(|tier| tier.exchange).collect()).collect();
    let reduce = Exchange::Reduce { over: Path::Flat };
    assert_eq!(exchanges, [vec![Exchange::Local], vec![reduce]]);
    let unique = plan(Duplicates::PerRank).expect("fits");
    let large = &unique.placed()[TableId::new(1)].tiers;
    assert!(large.len() > 1);
    assert!(large[1..].iter().all(|tier| tier.exchange == Exchange::Unique { per: Per::Rank }));
    let error = plan(Duplicates::PerNode).expect_err("refused");
    assert!(error.to_string().contains("per node"), "{error}");
}

#[test]
fn the_objective_decides_what_tiers_are_for() {
    let (workload, topology) = (skewed(), machines(4, 4, 12.0, 1 << 40));
    let plan = |objective| {
        let task = Task { objective, ..Task::new(&workload, &topology) };
        let planner = FlexShardPlanner { imbalance: 0.0, ..FlexShardPlanner::default() };
        let plan = planner.plan(&task).expect("fits");
        let model = emb_shard::StepModel::default();
        let peak = model.ledger(&plan, &workload, &topology).expect("of it").peak_bytes();
        (groups(&plan), peak)
    };
    let (fast, peak) = plan(Objective::StepSeconds);
    assert_eq!(fast, [1, 4, 16]);
    // Between nodes a replicated row costs as much as one in every node, and more memory.
    let (between, _) = plan(Objective::InterNodeBytes);
    assert_eq!(between, [4, 16]);
    let (_, least) = plan(Objective::Memory);
    assert!(least < peak, "{least} {peak}");
}
