//! Tiers get the rows that are known to be hot.

use crate::common::{assert_covers, table, tables};
use crate::order::tiered;
use emb_shard::{
    Access, Batch, FlexShardPlanner, HotRowsShort, Plan, Planner, Pooling, RowMapKind, RowOrder,
    TableId, TableSpec, Task, Topology, Workload, WorkloadSpec,
};

const ROWS: u64 = 100_000;

/// Two tables alike whose rows are hot by Zipf's law, one table of which all rows are.
fn workload(hot: Option<Vec<u64>>) -> Workload {
    let mut spec = WorkloadSpec::new("clicks", Batch::PerRank(256));
    spec.access = Access::Zipf { exponent: 1.1 };
    let table = |name: &str, access, hot| TableSpec {
        pooling: Pooling::None,
        pooling_factor: 20.0,
        access,
        hot,
        ..TableSpec::new(name, ROWS, 16)
    };
    spec.tables = vec![
        table("unknown", None, None),
        table("seen", None, hot.clone()),
        table("even", Some(Access::Uniform), hot),
    ];
    Workload::new(spec).expect("consistent")
}

/// Sixteen ranks in nodes of eight.
fn planned() -> Plan {
    let topology = Topology::preset("dgx-h100:2").expect("known");
    let workload = workload(None);
    FlexShardPlanner::default().plan(&Task::new(&workload, &topology)).expect("fits")
}

const UNKNOWN: TableId = TableId::new(0);
const SEEN: TableId = TableId::new(1);
const EVEN: TableId = TableId::new(2);

/// Some permutation of all rows.
fn by_frequency(count: u64) -> Vec<u64> {
    (0..count).map(|place| (place * 77_773 + 5) % ROWS).collect()
}

#[test]
fn hot_rows_fill_all_tiers_but_the_last() {
    let plan = planned();
    let starts: Vec<u64> = plan.placed()[SEEN].tiers.iter().map(|tier| tier.rows.start()).collect();
    assert_eq!(starts.len(), 3, "every rank, every node, all ranks");
    let hot = by_frequency(ROWS);
    let given = workload(Some(hot.clone()));
    let (ordered, short) = plan.clone().with_hot_rows(&given).expect("the same tables");
    assert_eq!(short, []);
    let placed = &ordered.placed()[SEEN];
    assert_eq!(placed.tiers, plan.placed()[SEEN].tiers);
    let first = &hot[..starts[2] as usize];
    assert_eq!(placed.order, Some(RowOrder::hot_first(ROWS, first.to_vec()).expect("hot rows")));
    for (place, &row) in (0u64..).zip(first) {
        let tier = ordered.cell(SEEN, row, 0).expect("a cell").tier;
        assert_eq!(tier, usize::from(place >= starts[1]), "row {row} of place {place}");
    }
    for id in [UNKNOWN, EVEN] {
        assert_eq!(ordered.placed()[id], plan.placed()[id], "nothing is known, or one tier");
    }
    let again = ordered.clone().with_hot_rows(&workload(Some(vec![9]))).expect("the same tables");
    assert_eq!(again, (ordered, vec![]), "an order stays");
}

#[test]
fn tiers_are_cut_to_the_hot_rows_that_are_known() {
    let plan = planned();
    let tiers = &plan.placed()[SEEN].tiers;
    let (hottest, wanted) = (tiers[1].rows.start(), tiers[2].rows.start());
    let cut = |known: u64| {
        let given = workload(Some(by_frequency(known)));
        plan.clone().with_hot_rows(&given).expect("the same tables")
    };
    // More than the first tier, exactly that, fewer, none.
    for (known, count) in [(hottest + 3, 3), (hottest, 2), (hottest - 3, 2), (0, 1)] {
        let (ordered, short) = cut(known);
        let expected = HotRowsShort { table: "seen".into(), wanted, known };
        assert_eq!(short, [expected]);
        let placed = &ordered.placed()[SEEN];
        let groups: Vec<u32> = placed.tiers.iter().map(|tier| tier.mesh.group_ranks()).collect();
        assert_eq!(groups, [&[1, 8][..count - 1], &[16]].concat());
        let last = &placed.tiers[count - 1];
        assert_eq!((last.rows.start(), last.rows.end()), (known, ROWS));
        assert_eq!(placed.tiers[0].rows.end(), if known == 0 { ROWS } else { known.min(hottest) });
        let dealt =
            |tier: &emb_shard::Tier| matches!(tier.blocks[0].map.kind(), RowMapKind::Modulo { .. });
        assert!(placed.tiers.iter().all(dealt), "dealt out in turn as before");
        assert_eq!(placed.order.is_some(), known > 0);
    }
}

#[test]
fn every_cell_of_cut_tiers_is_stored_once_in_every_group() {
    let given = tables(vec![table("ads", 40, 4, 1.0)]);
    let mut spec = WorkloadSpec::new("clicks", Batch::PerRank(64));
    for hot in [vec![], vec![39, 7, 20], (0..8).collect()] {
        spec.tables = vec![TableSpec { hot: Some(hot.clone()), ..TableSpec::new("ads", 40, 4) }];
        let workload = Workload::new(spec.clone()).expect("consistent");
        let plan = tiered(&given, 5, None).with_hot_rows(&workload).expect("the same tables").0;
        assert_covers(&plan);
        let id = TableId::new(0);
        let first = hot.iter().take(5);
        assert!(first.clone().all(|&row| plan.cell(id, row, 0).expect("a cell").tier == 0));
        let kept = if hot.is_empty() { 40 } else { first.count() as u64 };
        assert_eq!(plan.placed()[id].tiers[0].rows.rows(), kept);
    }
}

#[test]
fn hot_rows_that_cannot_be_are_refused_with_the_table() {
    let mut spec = WorkloadSpec::new("clicks", Batch::PerRank(64));
    let refusal =
        |spec: &WorkloadSpec| Workload::new(spec.clone()).expect_err("refused").to_string();
    spec.tables = vec![TableSpec { hot: Some(vec![1, 60]), ..TableSpec::new("seen", 60, 2) }];
    assert_eq!(refusal(&spec), r#"table "seen": hot row 60 does not exist: there are 60"#);
    spec.tables[0].hot = Some(vec![5, 1, 5]);
    assert_eq!(refusal(&spec), r#"table "seen": hot row 5 is listed twice, at places 0 and 2"#);
    spec.tables[0].hot = Some(vec![5, 1]);
    let other = Workload::new(spec).expect("consistent");
    let error = planned().with_hot_rows(&other).expect_err("other tables").to_string();
    assert!(error.contains("\"seen\""), "{error}");
}
