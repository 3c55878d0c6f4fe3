//! Plans that contradict themselves are refused, by table, tier, rows, columns and rank.

use crate::common::{sequence, table, tables};
use emb_shard::{
    Block, Bytes, ColRange, Error, Exchange, Layout, MAX_WORLD, Mesh, Owners, Path, Per, Plan,
    PlanSpec, ReplicaSync, RowMap, RowOrder, RowRange, TablePlan, Tables, Tier,
};
use std::num::NonZeroU32;

const FLAT: Exchange = Exchange::Reduce { over: Path::Flat };

fn columns(start: usize, end: usize) -> ColRange {
    ColRange::new(start, end).expect("ascending")
}

fn rows(start: u64, end: u64) -> RowRange {
    RowRange::new(start, end).expect("ascending")
}

fn block(start: usize, end: usize, count: u64, owners: &[u32]) -> Block {
    let map = RowMap::even(count, owners.len()).expect("has owners");
    Block { columns: columns(start, end), map, owners: Owners::list(owners) }
}

fn given() -> Tables {
    tables(vec![table("ads", 10, 4, 1.0), sequence("clicks", 6, 2)])
}

/// A consistent plan of `given` over 4 ranks in two groups.
fn good() -> PlanSpec {
    let mesh = Mesh::new(4, 2, Layout::Strided).expect("divides");
    let sync = ReplicaSync::Weights { every: NonZeroU32::MIN };
    let tier = |end, exchange, blocks| Tier { rows: rows(0, end), mesh, exchange, sync, blocks };
    let ads = tier(10, FLAT, vec![block(0, 3, 10, &[0, 1]), block(3, 4, 10, &[1])]);
    let clicks = tier(6, Exchange::Rows, vec![block(0, 2, 6, &[1, 0])]);
    let table = |name: &str, tier| TablePlan { table: name.into(), order: None, tiers: vec![tier] };
    PlanSpec { world: 4, node_ranks: 2, tables: vec![table("clicks", clicks), table("ads", ads)] }
}

fn refusal(change: impl FnOnce(&mut PlanSpec)) -> String {
    let mut spec = good();
    change(&mut spec);
    Plan::new(&given(), spec).expect_err("must be refused").to_string()
}

/// The refusal after a change of the tier of "ads".
fn ads(change: impl FnOnce(&mut Tier)) -> String {
    refusal(|spec| change(&mut spec.tables[1].tiers[0]))
}

#[test]
fn the_plan_that_the_refusals_change_is_a_plan() {
    crate::common::assert_covers(&Plan::new(&given(), good()).expect("consistent"));
}

#[test]
fn u30_missing_unknown_and_doubled_tables_are_refused_by_name() {
    assert_eq!(refusal(|spec| spec.tables.truncate(1)), r#"the plan has no place for table "ads""#);
    assert_eq!(
        refusal(|spec| spec.tables.clear()),
        r#"the plan has no place for tables "ads", "clicks""#
    );
    assert_eq!(
        refusal(|spec| spec.tables[0].table = "click".into()),
        r#"the plan names table "click", which the model does not have"#
    );
    assert_eq!(
        refusal(|spec| spec.tables[0].table = "ads".into()),
        r#"the plan places table "ads" twice"#
    );
}

#[test]
fn rows_covered_not_once_are_refused() {
    assert_eq!(
        ads(|tier| tier.rows = rows(1, 10)),
        r#"table "ads", tier 0: rows 1..10 must begin at row 0, so that every row is in one tier"#
    );
    assert_eq!(
        ads(|tier| tier.rows = rows(0, 9)),
        r#"table "ads": tiers end at row 9, the table has 10 rows"#
    );
    assert_eq!(
        refusal(|spec| {
            let tiers = &mut spec.tables[1].tiers;
            tiers.push(Tier { rows: rows(9, 10), ..tiers[0].clone() });
        }),
        r#"table "ads", tier 1: rows 9..10 must begin at row 10, so that every row is in one tier"#
    );
    assert_eq!(
        refusal(|spec| {
            let tiers = &mut spec.tables[1].tiers;
            tiers.insert(0, Tier { rows: rows(0, 0), ..tiers[0].clone() });
        }),
        r#"table "ads", tier 0: rows 0..0 are none"#
    );
    assert_eq!(refusal(|spec| spec.tables[1].tiers.clear()), r#"table "ads": has no tiers"#);
    let order = RowOrder::new(vec![1, 0, 2]).expect("permutation");
    assert_eq!(
        refusal(|spec| spec.tables[1].order = Some(order)),
        r#"table "ads": the order has 3 rows, the table 10"#
    );
    assert_eq!(
        ads(|tier| tier.blocks[1].map = RowMap::even(9, 1).expect("has owners")),
        r#"table "ads", tier 0: columns 3..4: the row map has 9 rows, rows 0..10 are 10"#
    );
    assert!(RowOrder::new(vec![0, 0]).is_err());
    assert!(RowOrder::new(vec![0, u64::MAX]).is_err());
}

#[test]
fn columns_covered_not_once_are_refused() {
    assert_eq!(
        ads(|tier| tier.blocks[1].columns = columns(2, 4)),
        r#"table "ads", tier 0: columns 2..4 must begin at 3, so that every column is in one block"#
    );
    assert_eq!(
        ads(|tier| tier.blocks[1].columns = columns(3, 5)),
        r#"table "ads", tier 0: column blocks end at 5, the table has 4 columns"#
    );
    assert_eq!(
        ads(|tier| tier.blocks.insert(1, block(3, 3, 10, &[0]))),
        r#"table "ads", tier 0: columns 3..3 are none"#
    );
    assert_eq!(
        ads(|tier| tier.blocks.clear()),
        r#"table "ads", tier 0: rows 0..10 have no column blocks"#
    );
}

#[test]
fn owners_outside_the_group_or_doubled_are_refused_with_rows_and_rank() {
    assert_eq!(
        ads(|tier| tier.blocks[0].owners = Owners::list(&[0, 2])),
        r#"table "ads", tier 0: columns 0..3, rows 5..10: owner 2 is outside the 2 ranks of a group"#
    );
    assert_eq!(
        ads(|tier| tier.blocks[0].owners = Owners::span(1, 2)),
        r#"table "ads", tier 0: columns 0..3, rows 5..10: owner 2 is outside the 2 ranks of a group"#
    );
    assert_eq!(
        ads(|tier| tier.blocks[0].owners = Owners::span(u32::MAX, 2)),
        "table \"ads\", tier 0: columns 0..3, rows 5..10: owner 4294967296 is outside the 2 ranks \
         of a group"
    );
    // Position 1 of the first of two strided groups is rank 2.
    assert_eq!(
        ads(|tier| tier.blocks[0].owners = Owners::list(&[1, 1])),
        r#"table "ads", tier 0: columns 0..3, rows 5..10: owner 1 (rank 2) already has other rows"#
    );
    assert_eq!(
        ads(|tier| tier.blocks[0].owners = Owners::span(0, 1)),
        r#"table "ads", tier 0: columns 0..3: 1 owners for 2 row parts"#
    );
}

#[test]
fn exchanges_and_syncs_that_contradict_group_pooling_or_nodes_are_refused() {
    assert_eq!(
        ads(|tier| tier.exchange = Exchange::Local),
        r#"table "ads", tier 0: exchange local in groups of 2: local is for groups of one alone"#
    );
    let alone = Mesh::new(4, 1, Layout::Strided).expect("divides");
    assert_eq!(
        ads(|tier| {
            tier.mesh = alone;
            tier.blocks = vec![block(0, 4, 10, &[0])];
        }),
        r#"table "ads", tier 0: exchange reduce in groups of 1: local is for groups of one alone"#
    );
    assert_eq!(
        ads(|tier| tier.exchange = Exchange::Rows),
        r#"table "ads", tier 0: exchange rows cannot serve features pooled by Sum"#
    );
    assert_eq!(
        refusal(|spec| spec.tables[0].tiers[0].exchange = FLAT),
        r#"table "clicks", tier 0: exchange reduce cannot serve features pooled by None"#
    );
    assert_eq!(
        ads(|tier| tier.sync = ReplicaSync::None),
        r#"table "ads", tier 0: sync - with 2 replica(s): none is for one replica alone"#
    );
    assert_eq!(
        ads(|tier| tier.mesh = Mesh::new(4, 4, Layout::Strided).expect("divides")),
        r#"table "ads", tier 0: sync weights/1 with 1 replica(s): none is for one replica alone"#
    );
    assert_eq!(
        ads(|tier| tier.mesh = Mesh::new(8, 2, Layout::Strided).expect("divides")),
        r#"table "ads", tier 0: its groups share out 8 ranks, the plan has 4"#
    );
    // Groups 0..4, 4..8 and 8..12 over nodes 0..6 and 6..12: the middle one is cut in halves.
    let mesh = Mesh::new(12, 4, Layout::Contiguous).expect("divides");
    let error = refusal(|spec| {
        (spec.world, spec.node_ranks) = (12, 6);
        for table in &mut spec.tables {
            table.tiers[0].mesh = mesh;
        }
        spec.tables[1].tiers[0].exchange = Exchange::Unique { per: Per::Node };
    });
    assert_eq!(
        error,
        r#"table "ads", tier 0: exchange unique by node: nodes of 6 cut groups of 4 unevenly"#
    );
}

#[test]
fn worlds_and_nodes_that_do_not_exist_are_refused() {
    assert_eq!(refusal(|spec| spec.node_ranks = 3), "4 ranks do not split into nodes of 3");
    assert_eq!(refusal(|spec| spec.node_ranks = 0), "4 ranks do not split into nodes of 0");
    assert_eq!(refusal(|spec| spec.world = 0), "0 ranks do not split into nodes of 2");
    let error = refusal(|spec| spec.world = MAX_WORLD + 1);
    assert_eq!(error, "a plan of 1048577 ranks: at most 1048576 are supported");
}

#[test]
fn ranks_rows_and_columns_outside_a_plan_are_refused() {
    let plan = Plan::new(&given(), good()).expect("consistent");
    let id = emb_shard::TableId::new(0);
    let rank = emb_shard::Rank::new(4);
    let text = |error: Option<Error>| error.expect("refused").to_string();
    assert_eq!(text(plan.shards_of(rank).err()), "rank 4 does not exist: there are 4");
    assert_eq!(text(plan.bytes_of(rank).err()), "rank 4 does not exist: there are 4");
    assert_eq!(text(plan.cell(id, 10, 0).err()), "row 10 does not exist: there are 10");
    assert_eq!(text(plan.cell(id, 0, 4).err()), "column 4 does not exist: there are 4");
    let group = emb_shard::GroupId::new(2);
    assert_eq!(text(plan.owner(id, 0, 0, group).err()), "group 2 does not exist: there are 2");
    assert_eq!(text(plan.tier(id, 1).err()), "tier 1 does not exist: there are 1");
    assert_eq!(text(plan.row_map(id, 0, 2).err()), "column block 2 does not exist: there are 2");
    assert!(plan.columns_cut(id).expect("exists"));
    assert_eq!(plan.bytes_of(emb_shard::Rank::new(0)).expect("exists").state, Bytes::new(0));
}

#[test]
fn other_tables_than_those_of_the_plan_are_named() {
    let plan = Plan::new(&given(), good()).expect("consistent");
    let check = |tables: Vec<_>| plan.check_tables(&tables).expect_err("differ").to_string();
    let (ads, clicks) = (table("ads", 10, 4, 1.0), sequence("clicks", 6, 2));
    plan.check_tables(&[ads.clone(), clicks.clone()]).expect("the same");
    plan.check_tables(&[table("ads", 10, 4, 9.0), clicks.clone()]).expect("an estimate changed");
    assert_eq!(
        check(vec![table("ads", 12, 4, 1.0), clicks.clone()]),
        r#"table "ads": rows 12, the plan was made for 10"#
    );
    assert_eq!(
        check(vec![ads.clone(), table("clicks", 6, 2, 1.0)]),
        r#"table "clicks": pooling Sum, the plan was made for None"#
    );
    assert_eq!(
        check(vec![ads.clone()]),
        r#"the plan names table "clicks", which the model does not have"#
    );
    assert_eq!(
        check(vec![ads.clone(), clicks.clone(), table("x", 1, 1, 1.0)]),
        r#"the plan has no place for table "x""#
    );
    assert!(check(vec![clicks, ads]).starts_with("the tables have fingerprint "));
}
