//! The model read off plans that are small enough for a pencil.

use emb_shard::{
    Access, Batch, Block, ColRange, EmbarkBuckets, EmbarkModel, Exchange, Layout, Mesh, Owners,
    Path, Per, Plan, PlanSpec, ReplicaSync, RowMap, RowRange, TablePlan, TableSpec, Tier, Workload,
    WorkloadSpec,
};

/// Four ranks in nodes of two, one table of 8 columns, 10 look-ups a sample.
fn workload(rows: u64) -> Workload {
    let mut spec = WorkloadSpec::new("pencil", Batch::Global(64));
    spec.access = Access::Uniform;
    spec.tables = vec![TableSpec::new("t", rows, 8)];
    spec.tables[0].pooling_factor = 10.0;
    Workload::new(spec).expect("valid")
}

fn tier(rows: (u64, u64), group: u32, exchange: Exchange, blocks: &[(usize, &[u32])]) -> Tier {
    let mesh = Mesh::new(4, group, Layout::Strided).expect("divides");
    let mut first = 0;
    let blocks = blocks.iter().map(|&(columns, owners)| {
        let start = first;
        first += columns;
        Block {
            columns: ColRange::new(start, first).expect("ascending"),
            map: RowMap::even(rows.1 - rows.0, owners.len()).expect("owned"),
            owners: Owners::list(owners),
        }
    });
    let blocks = blocks.collect();
    let sync = if group == 4 { ReplicaSync::None } else { ReplicaSync::Gradients };
    let rows = RowRange::new(rows.0, rows.1).expect("ascending");
    Tier { rows, mesh, exchange, sync, blocks }
}

/// Look-ups and exchange of every bucket with `w = 4`, `w_dense = 2`, `r = 60`.
fn costs(buckets: EmbarkBuckets, rows: u64, tiers: Vec<Tier>) -> Vec<(f64, f64)> {
    let workload = workload(rows);
    let placed = TablePlan { table: "t".into(), order: None, tiers };
    let spec = PlanSpec { world: 4, node_ranks: 2, tables: vec![placed] };
    let plan = Plan::new(workload.tables(), spec).expect("valid");
    let model = EmbarkModel { buckets, ..EmbarkModel::default() };
    let cost = model.cost(&plan, &workload).expect("its workload");
    cost.buckets().iter().map(|cost| (cost.lookup, cost.exchange)).collect()
}

const SUMS: Exchange = Exchange::Reduce { over: Path::Hierarchical };

#[test]
fn a_table_on_one_node_costs_it_all_look_ups_and_all_columns() {
    // 4 * 10 * 8 / 2 and 60 * 8 / 2 * 3 / 2.
    let tiers = || vec![tier((0, 100), 4, SUMS, &[(8, &[2, 3])])];
    assert_eq!(costs(EmbarkBuckets::Nodes, 100, tiers()), [(0.0, 0.0), (160.0, 360.0)]);
    // By rank: 4 * 10 * 8 / 2 splits, 60 * 8 each.
    let both = (160.0, 480.0);
    assert_eq!(costs(EmbarkBuckets::Ranks, 100, tiers()), [(0.0, 0.0), (0.0, 0.0), both, both]);
}

#[test]
fn rows_over_all_ranks_of_two_nodes_are_two_splits_by_node_and_four_by_rank() {
    let tiers = || vec![tier((0, 100), 4, SUMS, &[(8, &[0, 1, 2, 3])])];
    assert_eq!(costs(EmbarkBuckets::Nodes, 100, tiers()), [(80.0, 360.0); 2]);
    assert_eq!(costs(EmbarkBuckets::Ranks, 100, tiers()), [(80.0, 480.0); 4]);
}

#[test]
fn nodes_without_a_row_of_a_block_have_no_split() {
    let tiers = vec![tier((0, 2), 4, SUMS, &[(8, &[0, 1, 2, 3])])];
    assert_eq!(costs(EmbarkBuckets::Nodes, 2, tiers), [(160.0, 360.0), (0.0, 0.0)]);
}

#[test]
fn column_blocks_cost_their_widths_and_add_up_on_a_node() {
    let tiers = vec![tier((0, 100), 4, SUMS, &[(2, &[0, 1]), (4, &[2, 3]), (2, &[0])])];
    assert_eq!(costs(EmbarkBuckets::Nodes, 100, tiers), [(80.0, 180.0); 2]);
}

#[test]
fn data_parallel_tables_cost_nothing() {
    let tiers = vec![tier((0, 100), 1, Exchange::Local, &[(8, &[0])])];
    assert_eq!(costs(EmbarkBuckets::Nodes, 100, tiers), [(0.0, 0.0); 2]);
}

#[test]
fn tiers_cost_their_part_of_the_look_ups() {
    // A quarter of the rows is data-parallel, three quarters of 10 look-ups go to node 0.
    let tiers = vec![
        tier((0, 25), 1, Exchange::Local, &[(8, &[0])]),
        tier((25, 100), 4, SUMS, &[(8, &[0, 1])]),
    ];
    assert_eq!(costs(EmbarkBuckets::Nodes, 100, tiers), [(120.0, 360.0), (0.0, 0.0)]);
}

#[test]
fn a_group_serves_its_part_of_the_samples() {
    // Groups {0, 2} and {1, 3}: the owner of each is on node 0, and serves half of the samples.
    let tiers = vec![tier((0, 100), 2, SUMS, &[(8, &[0])])];
    assert_eq!(costs(EmbarkBuckets::Nodes, 100, tiers), [(160.0, 360.0), (0.0, 0.0)]);
}

#[test]
fn rows_that_travel_cost_one_for_every_look_up() {
    let unique = Exchange::Unique { per: Per::Rank };
    // (2 and 60) * 10 * 8 / 4 ranks.
    let tiers = vec![tier((0, 100), 4, unique, &[(8, &[0, 1, 2, 3])])];
    assert_eq!(costs(EmbarkBuckets::Nodes, 100, tiers), [(40.0, 1200.0); 2]);
}

#[test]
fn a_plan_of_other_tables_is_refused() {
    let tiers = vec![tier((0, 100), 4, SUMS, &[(8, &[0])])];
    let placed = TablePlan { table: "t".into(), order: None, tiers };
    let spec = PlanSpec { world: 4, node_ranks: 2, tables: vec![placed] };
    let plan = Plan::new(workload(100).tables(), spec).expect("valid");
    let error = EmbarkModel::default().cost(&plan, &workload(101)).expect_err("other rows");
    assert!(error.to_string().contains("fingerprint"), "{error}");
}
