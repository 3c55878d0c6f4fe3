//! What the builders make: shapes, uneven splits, groups.

use crate::common::{assert_covers, sequence, table, tables};
use emb_shard::{
    Exchange, Layout, Mesh, Per, PlaceOptions, Placement, Plan, PlanBuilder, Rank, ReplicaSync,
    RowCut, TableId,
};

fn mesh(world: u32, group: u32) -> Mesh {
    Mesh::new(world, group, Layout::Strided).expect("divides")
}

/// Rows, first column and columns of every shard of every rank.
fn shapes(plan: &Plan) -> Vec<Vec<(u64, usize, usize)>> {
    let ranks = (0..plan.world()).map(Rank::new);
    let of = |rank| plan.shards_of(rank).expect("in range");
    let shape =
        |shard: emb_shard::Shard| (shard.rows, shard.columns.start(), shard.columns.columns());
    ranks.map(|rank| of(rank).map(shape).collect()).collect()
}

fn rows_of(rows: u64, world: u32, cut: RowCut) -> Vec<u64> {
    let given = tables(vec![table("t", rows, 8, 1.0)]);
    let plan = Plan::row_wise(&given, mesh(world, world), cut).expect("valid");
    assert_covers(&plan);
    let of = |shards: Vec<(u64, usize, usize)>| shards.iter().map(|shard| shard.0).sum();
    shapes(&plan).into_iter().map(of).collect()
}

#[test]
fn u09_rows_that_ranks_do_not_divide_are_cut_without_loss() {
    assert_eq!(rows_of(10, 4, RowCut::Ceil), [3, 3, 3, 1]);
    assert_eq!(rows_of(10, 4, RowCut::Even), [3, 3, 2, 2]);
    assert_eq!(rows_of(10, 4, RowCut::Modulo), [3, 3, 2, 2]);
    assert_eq!(rows_of(5, 4, RowCut::Ceil), [2, 2, 1, 0]);
    assert_eq!(rows_of(4091, 2, RowCut::Ceil), [2046, 2045]);
}

#[test]
fn u09_more_ranks_than_rows_leave_ranks_that_own_nothing() {
    assert_eq!(rows_of(3, 4, RowCut::Ceil), [1, 1, 1, 0]);
    assert_eq!(rows_of(3, 8, RowCut::Modulo), [1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(rows_of(1, 4, RowCut::Even), [1, 0, 0, 0]);
    let given = tables(vec![table("t", 3, 8, 1.0)]);
    let plan = Plan::row_wise(&given, mesh(4, 4), RowCut::Ceil).expect("valid");
    assert_eq!(plan.shards_of(Rank::new(3)).expect("in range").count(), 0);
    assert_eq!(plan.bytes_of(Rank::new(3)).expect("in range").total().get(), 0);
}

#[test]
fn u09_fewer_tables_than_ranks_leave_ranks_that_own_nothing() {
    let given = tables(vec![table("t", 100, 8, 1.0)]);
    let plan = Plan::table_wise(&given, mesh(8, 8)).expect("valid");
    assert_covers(&plan);
    assert_eq!(shapes(&plan).iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn u10_columns_that_ranks_do_not_divide_are_cut_without_loss() {
    let given = tables(vec![table("t", 7, 10, 1.0)]);
    let plan = Plan::column_wise(&given, mesh(3, 3), None).expect("valid");
    assert_covers(&plan);
    assert_eq!(shapes(&plan), [[(7, 0, 4)], [(7, 4, 3)], [(7, 7, 3)]]);
}

#[test]
fn u10_two_columns_over_four_ranks_use_two_and_the_plan_says_so() {
    let given = tables(vec![table("t", 7, 2, 1.0)]);
    let plan = Plan::column_wise(&given, mesh(4, 4), None).expect("valid");
    assert_covers(&plan);
    assert_eq!(shapes(&plan), [vec![(7, 0, 1)], vec![(7, 1, 1)], vec![], vec![]]);
    let line = plan.to_string().lines().nth(2).expect("a line a table").to_owned();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        cells,
        ["t", "7", "2", "column_wise", "4", "1", "1x2", "reduce", "-", "2", "56", "B"]
    );
}

#[test]
fn u10_a_rank_has_columns_of_a_table_once_whatever_else_is_placed() {
    let given = tables((0..5).map(|n| table(&format!("t{n}"), 9, 10, 1.0)).collect());
    let builder = PlanBuilder::new(mesh(6, 6))
        .all(Placement::ColumnWise { parts: Some(4) })
        .table("t2", Placement::TableWise { owner: Some(0) });
    let plan = builder.build(&given).expect("valid");
    assert_covers(&plan);
    for rank in (0..6).map(Rank::new) {
        let mut met: Vec<TableId> =
            plan.shards_of(rank).expect("in range").map(|shard| shard.table).collect();
        let all = met.len();
        met.dedup();
        assert_eq!(met.len(), all, "{rank}");
    }
    assert!(plan.report().cost_max_to_mean() < 1.3, "{plan}");
    let error = PlanBuilder::new(mesh(3, 3)).all(Placement::ColumnWise { parts: Some(4) });
    assert_eq!(
        error.build(&given).expect_err("3 ranks").to_string(),
        r#"table "t0" as column_wise: 4 column blocks: must be 1..=3, each on ranks of its own"#
    );
}

#[test]
fn table_row_wise_stays_on_a_node_and_grid_takes_every_node() {
    let given = tables(vec![table("a", 10, 6, 2.0), table("b", 10, 6, 1.0)]);
    let plan = Plan::table_row_wise(&given, mesh(8, 8), 4, RowCut::Ceil).expect("valid");
    assert_covers(&plan);
    let (a, b) = ([vec![(3, 0, 6)], vec![(1, 0, 6)]], vec![(3, 0, 6)]);
    assert_eq!(shapes(&plan)[..4], [&a[0][..], &a[0], &a[0], &a[1]]);
    assert_eq!(shapes(&plan)[4], b);

    let plan = Plan::grid(&given, mesh(8, 8), 4, None, RowCut::Even).expect("valid");
    assert_covers(&plan);
    assert_eq!(shapes(&plan)[0], [(3, 0, 3), (3, 0, 3)]);
    assert_eq!(shapes(&plan)[7], [(2, 3, 3), (2, 3, 3)]);
}

#[test]
fn every_group_has_the_same_placement_in_both_layouts() {
    let given = tables(vec![table("a", 10, 6, 2.0), sequence("b", 10, 6)]);
    for layout in [Layout::Strided, Layout::Contiguous] {
        let mesh = Mesh::new(8, 4, layout).expect("divides");
        let plan = Plan::table_wise(&given, mesh).expect("valid");
        assert_covers(&plan);
        let shapes = shapes(&plan);
        for set in 0..4 {
            let set = emb_shard::ReplicaId::new(set);
            let ranks: Vec<Rank> = mesh.replica_members(set).expect("exists").collect();
            assert_eq!(shapes[ranks[0].get() as usize], shapes[ranks[1].get() as usize]);
            for shard in plan.shards_of(ranks[0]).expect("in range") {
                let replicas: Vec<Rank> = plan.replicas_of(&shard).expect("exists").collect();
                assert_eq!(replicas, ranks);
            }
        }
    }
}

#[test]
fn a_table_may_have_groups_exchange_and_sync_of_its_own() {
    let given = tables(vec![table("a", 10, 6, 2.0), table("b", 10, 6, 1.0), table("c", 4, 2, 1.0)]);
    let unique = Exchange::Unique { per: Per::Node };
    let own = PlaceOptions {
        group: Some((2, Layout::Contiguous)),
        exchange: Some(unique),
        sync: Some(ReplicaSync::Gradients),
        ..Placement::RowWise { cut: RowCut::Modulo }.into()
    };
    let builder = PlanBuilder::new(mesh(8, 4)).node_ranks(4);
    let builder = builder.table("b", own).table("c", Placement::DataParallel);
    let plan = builder.build(&given).expect("valid");
    assert_covers(&plan);
    let classes: Vec<_> = plan
        .exchange_classes()
        .iter()
        .map(|class| (class.mesh.replicas(), class.exchange))
        .collect();
    assert_eq!(classes.len(), 3);
    assert_eq!(classes[1], (4, unique));
    assert_eq!(classes[2], (8, Exchange::Local));
}

#[test]
fn placements_that_cannot_be_made_are_refused_by_table() {
    let given = tables(vec![table("a", 10, 6, 2.0)]);
    let refusal = |builder: PlanBuilder| builder.build(&given).expect_err("refused").to_string();
    assert_eq!(
        refusal(PlanBuilder::new(mesh(4, 4)).all(Placement::TableWise { owner: Some(4) })),
        r#"table "a" as table_wise: place 4 of its group does not exist: there are 4"#
    );
    assert_eq!(
        refusal(PlanBuilder::new(mesh(4, 4)).all(Placement::ColumnWise { parts: Some(0) })),
        r#"table "a" as column_wise: 0 column blocks: must be 1..=4, each on ranks of its own"#
    );
    let uneven = Mesh::new(12, 4, Layout::Contiguous).expect("divides");
    let grid = Placement::Grid { cut: RowCut::Ceil, parts: None };
    assert_eq!(
        refusal(PlanBuilder::new(uneven).node_ranks(6).all(grid)),
        r#"table "a" as grid: nodes of 6 cut groups of 4 unevenly"#
    );
    assert_eq!(
        refusal(PlanBuilder::new(mesh(4, 4)).table("z", Placement::DataParallel)),
        r#"the plan names table "z", which the model does not have"#
    );
}

#[test]
fn tables_that_are_alike_share_a_line_of_the_picture() {
    let mut all: Vec<_> = (1..=26).map(|n| table(&format!("C{n}"), 1000, 8, 1.0)).collect();
    all.push(table("other", 1001, 8, 1.0));
    all.push(table("C28", 1000, 8, 1.0));
    let mesh = Mesh::new(4, 4, Layout::Strided).expect("a mesh");
    let plan = Plan::row_wise(&tables(all), mesh, RowCut::Even).expect("a plan");
    let text = plan.to_string();
    let names = text.lines().skip(2).take(3).map(|line| line.split("  ").next().unwrap_or(""));
    assert_eq!(names.collect::<Vec<_>>(), ["C1 .. C26 (26)", "other", "C28"], "{text}");
}
