//! Plans as people read them.

use crate::common::{sequence, table, tables};
use emb_shard::{Layout, Mesh, Placement, PlanBuilder, RowCut};

#[test]
fn a_mixed_plan_prints_one_line_a_table_and_the_ranks_load() {
    let given = tables(vec![
        table("ads", 1_000_000, 64, 3.0),
        table("day", 7, 16, 1.0),
        sequence("clicks", 5_000, 32),
        table("users", 40_000, 128, 1.0),
    ]);
    let mesh = Mesh::new(8, 4, Layout::Strided).expect("divides");
    let plan = PlanBuilder::new(mesh)
        .node_ranks(4)
        .table("ads", Placement::RowWise { cut: RowCut::Ceil })
        .table("day", Placement::DataParallel)
        .table("users", Placement::ColumnWise { parts: Some(3) })
        .build(&given)
        .expect("valid");
    let expected = "\
8 ranks in nodes of 4, 4 tables
table      rows  dim  kind           g  M  cuts  exchange  sync       ranks       bytes
ads     1000000   64  row_wise       4  2  4x1   reduce    weights/1      4  244.14 MiB
day           7   16  data_parallel  1  8  1x1   local     gradients      1       448 B
clicks     5000   32  table_wise     4  2  1x1   unique    weights/1      1  625.00 KiB
users     40000  128  column_wise    4  2  1x3   reduce    weights/1      3   19.53 MiB
ranks 0..=3: 67.60 MiB, 1.00 look-ups a sample
ranks 4..=5: 67.44 MiB, 1.00 look-ups a sample
ranks 6..=7: 61.65 MiB, 1.00 look-ups a sample
max/mean: bytes 1.023, look-ups 1.000
";
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn a_large_world_prints_few_lines() {
    let made = (0..100).map(|n| table(&format!("t{n}"), 10 + n, 4, 1.0 + n as f64));
    let mesh = Mesh::new(1024, 1024, Layout::Strided).expect("divides");
    let plan = PlanBuilder::new(mesh).build(&tables(made.collect())).expect("valid");
    let text = plan.to_string();
    assert_eq!(text.lines().count(), 1 + 1 + 100 + 16 + 1 + 1, "{text}");
}
