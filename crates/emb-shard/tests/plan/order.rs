//! Orders of rows: bijections, small in memory and in files, refused by value.

use crate::common::{assert_covers, table, tables};
use emb_shard::{
    Error, Layout, Mesh, Placement, Plan, PlanBuilder, PlanFile, PlanSpec, RowCut, RowMap,
    RowMapKind, RowOrder, RowOrderKind, RowRange, TableId, Tables, Tier,
};
use proptest::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Hot rows first, the others after them: by looking through all rows.
fn naive(rows: u64, hot: &[u64]) -> Vec<u64> {
    let others = (0..rows).filter(|row| !hot.contains(row));
    hot.iter().copied().chain(others).collect()
}

/// Of a table and its hot rows: spread, side by side, all or none.
fn hot_rows() -> impl Strategy<Value = (u64, Vec<u64>)> {
    (0u64..400, any::<prop::sample::Index>(), 0u64..400, any::<bool>()).prop_flat_map(
        |(rows, count, first, neighbours)| {
            let count = count.index(rows as usize + 1);
            let all: Vec<u64> = if neighbours {
                (0..rows).map(|row| (first + row) % rows).take(count).collect()
            } else {
                (0..rows).collect()
            };
            (Just(rows), Just(all).prop_shuffle()).prop_map(move |(rows, mut hot)| {
                hot.truncate(count);
                (rows, hot)
            })
        },
    )
}

proptest! {
    #[test]
    fn hot_rows_come_first_as_listed_and_the_others_after_them_ascending(
        (rows, hot) in hot_rows(),
    ) {
        let order = RowOrder::hot_first(rows, hot.clone()).expect("hot rows");
        prop_assert_eq!(order.kind(), RowOrderKind::HotFirst(&hot));
        let expected = naive(rows, &hot);
        prop_assert_eq!(expected.len() as u64, order.rows());
        for (place, &row) in (0u64..).zip(&expected) {
            prop_assert_eq!((order.row(place), order.place(row)), (row, place));
        }
        // Written down row by row it is another value of the same places.
        let places: Vec<u64> = (0..rows).map(|row| order.place(row)).collect();
        let full = RowOrder::new(places).expect("a bijection");
        prop_assert_ne!(&full, &order);
        for row in 0..rows {
            prop_assert_eq!((full.place(row), full.row(row)), (order.place(row), order.row(row)));
        }
        prop_assert_eq!(&order.clone(), &RowOrder::hot_first(rows, hot).expect("hot rows"));
    }

    #[test]
    fn rows_beside_hot_ones_keep_their_order_where_hot_ones_lie_close_in_a_large_table(
        rows in 1u64 << 20..1 << 50,
        // Runs of hot rows: where they begin, how many, and how far apart.
        runs in prop::collection::vec((any::<u64>(), 1u64..40, 1u64..5), 0..12),
    ) {
        let run = |(first, count, step): (u64, u64, u64)| {
            (0..count).map(move |number| (first % rows + number * step) % rows)
        };
        let mut hot: Vec<u64> = runs.into_iter().flat_map(run).collect();
        hot.sort_unstable();
        hot.dedup();
        hot.reverse();
        let order = RowOrder::hot_first(rows, hot.clone()).expect("hot rows");
        let near = hot.iter().flat_map(|&row| row.saturating_sub(3)..(row + 4).min(rows));
        for row in near.chain([0, rows / 2, rows - 1]) {
            let listed = hot.iter().position(|&other| other == row);
            let below = hot.iter().filter(|&&other| other < row).count();
            let place = listed.map_or((hot.len() - below) as u64 + row, |place| place as u64);
            prop_assert_eq!((order.place(row), order.row(place)), (place, row));
        }
    }
}

#[test]
fn the_memory_of_an_order_does_not_grow_with_the_table() {
    // A list of every row would be 2^67 bytes.
    let rows = u64::MAX;
    let hot = vec![rows - 1, 0, 1 << 40, 7];
    let order = RowOrder::hot_first(rows, hot.clone()).expect("hot rows");
    assert_eq!(order.rows(), rows);
    for (place, &row) in (0u64..).zip(&hot) {
        assert_eq!((order.place(row), order.row(place)), (place, row));
    }
    for (row, place) in
        [(1, 4), (6, 9), (8, 10), ((1 << 40) - 1, (1 << 40) + 1), (rows - 2, rows - 1)]
    {
        assert_eq!((order.place(row), order.row(place)), (place, row));
    }
    let none = RowOrder::hot_first(rows, Vec::new()).expect("no hot rows");
    assert_eq!((none.place(rows - 1), none.row(1 << 63)), (rows - 1, 1 << 63));
}

#[test]
fn hot_rows_beyond_the_table_or_listed_twice_are_refused_by_value() {
    let refusal = |rows, hot| RowOrder::hot_first(rows, hot).expect_err("refused");
    let beyond = refusal(10, vec![3, 10, 3]);
    assert_eq!(beyond.to_string(), "hot row 10 does not exist: there are 10");
    let twice = refusal(10, vec![9, 3, 5, 3, 9]);
    assert_eq!(twice, Error::HotRowTwice { row: 3, first: 1, second: 3 });
    assert_eq!(twice.to_string(), "hot row 3 is listed twice, at places 1 and 3");
    assert!(RowOrder::hot_first(0, vec![0]).is_err());
    assert_eq!(RowOrder::hot_first(0, vec![]).expect("an empty table").rows(), 0);
}

fn given(rows: u64) -> Tables {
    tables(vec![table("ads", rows, 4, 1.0)])
}

/// Two tiers: `hot` rows on every rank, the others over two.
pub(crate) fn tiered(given: &Tables, hot: u64, order: Option<RowOrder>) -> Plan {
    let mesh = Mesh::new(2, 2, Layout::Strided).expect("divides");
    let one = |placement: Placement| {
        let plan = PlanBuilder::new(mesh).all(placement).build(given).expect("valid");
        plan.tier(TableId::new(0), 0).expect("a tier").clone()
    };
    let rows = given.tables().as_slice()[0].rows();
    let cut = |tier: Tier, first, end| {
        let mut tier = Tier { rows: RowRange::new(first, end).expect("ascending"), ..tier };
        tier.blocks[0].map = RowMap::modulo(end - first, tier.blocks[0].owners.len()).expect("map");
        tier
    };
    let tiers = vec![
        cut(one(Placement::DataParallel), 0, hot),
        cut(one(Placement::RowWise { cut: RowCut::Modulo }), hot, rows),
    ];
    let placed = emb_shard::TablePlan { table: "ads".into(), order, tiers };
    let spec = PlanSpec { world: 2, node_ranks: 2, tables: vec![placed] };
    Plan::new(given, spec).expect("consistent")
}

#[test]
fn tiers_are_cut_in_an_order_of_hot_rows_and_the_file_lists_these_alone() {
    let given = given(10);
    let order = RowOrder::hot_first(10, vec![7, 2]).expect("hot rows");
    let plan = tiered(&given, 2, Some(order.clone()));
    assert_covers(&plan);
    let by_tier = plan.tier_map(TableId::new(0)).expect("exists");
    let hot: Vec<u64> =
        (0..10).filter(|&row| by_tier.locate(row).expect("a row").owner == 0).collect();
    assert_eq!(hot, [2, 7]);
    assert_eq!(by_tier.global(0, 0).expect("a row"), 7, "as listed");
    let RowMapKind::Permuted { order: kept, .. } = by_tier.kind() else { panic!("an order") };
    assert_eq!(kept, &order);

    let text = plan.to_file().to_string();
    assert!(text.contains(r#""pooling": "sum", "order": {"hot": [7, 2]}, "tiers": ["#), "{text}");
    let read = |text: &str| match serde_json::from_str::<PlanFile>(text) {
        Ok(file) => file.into_plan(&given).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    assert_eq!(read(&text), Ok(plan));
    let refusal = |to: &str| read(&text.replace(r#"{"hot": [7, 2]}"#, to)).expect_err("refused");
    for (to, start) in [
        (r#"{"hot": [7, 10]}"#, r#"table "ads", order of rows: hot row 10 does not exist: there"#),
        (r#"{"hot": [7, 7]}"#, r#"table "ads", order of rows: hot row 7 is listed twice, at"#),
        ("[0, 0]", r#"table "ads", order of rows: the permutation sends rows 0 and 1 to 0"#),
        ("[1, 0]", r#"table "ads": the order has 2 rows, the table 10"#),
        (r#"{"hot": [7], "cold": [2]}"#, "unknown field `cold`, expected `hot`"),
        (r#"{"hot": [7], "hot": [2]}"#, "duplicate field `hot`"),
        ("{}", "missing field `hot`"),
        (r#"{"hot": [-1]}"#, "invalid value: integer `-1`"),
        ("7", "invalid type: integer `7`, expected the places of all rows as a list, or"),
    ] {
        let error = refusal(to);
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn a_file_with_a_hundred_thousand_hot_rows_has_one_line_for_the_table_and_reads_back() {
    let (rows, count) = (10_000_000, 100_000);
    let given = given(rows);
    let hot = (0..count).map(|n| n * 7_919 % rows).collect();
    let order = RowOrder::hot_first(rows, hot).expect("hot rows");
    let plan = tiered(&given, count, Some(order));
    let text = plan.to_file().to_string();
    assert_eq!(text.lines().count(), 5 + 1 + 3, "{} bytes", text.len());
    let since = Instant::now();
    let file: PlanFile = serde_json::from_str(&text).expect("JSON");
    let read = file.into_plan(&given).expect("a plan");
    eprintln!("{} bytes read in {:?}", text.len(), since.elapsed());
    assert_eq!(read, plan);
}

#[test]
#[ignore = "a measurement: cargo test --release -p emb-shard --test plan -- --ignored --nocapture"]
fn nanoseconds_of_a_place() {
    let (rows, count) = (10_000_000u64, 100_000u64);
    // A linear congruential generator (Knuth, MMIX).
    let draws = |mut state: u64| {
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % rows
        })
    };
    let mut spread: Vec<u64> = draws(1).take(count as usize).collect();
    spread.sort_unstable();
    spread.dedup();
    let neighbours: Vec<u64> = (0..count).collect();
    let uniform: Vec<u64> = draws(2).take(1 << 20).collect();
    for (name, hot) in [("spread", spread), ("side by side", neighbours)] {
        let listed: Vec<u64> = uniform.iter().map(|&draw| hot[draw as usize % hot.len()]).collect();
        let order = RowOrder::hot_first(rows, hot).expect("hot rows");
        let full = RowOrder::new((0..rows).map(|row| order.place(row)).collect()).expect("places");
        for (of, asked) in [("any rows", &uniform), ("hot rows", &listed)] {
            let time = |ask: &dyn Fn(&[u64]) -> u64| {
                let since = Instant::now();
                let sum = (0..20).fold(0u64, |sum, _| sum.wrapping_add(ask(black_box(asked))));
                black_box(sum);
                since.elapsed().as_nanos() as f64 / (20 * asked.len()) as f64
            };
            let sum = |of: &dyn Fn(u64) -> u64, asked: &[u64]| {
                asked.iter().fold(0u64, |sum, &row| sum.wrapping_add(of(row)))
            };
            let place = time(&|asked| {
                asked.iter().fold(0u64, |sum, &row| sum.wrapping_add(order.place(row)))
            });
            let row = time(&|asked| sum(&|place| order.row(place), asked));
            let full = time(&|asked| {
                asked.iter().fold(0u64, |sum, &row| sum.wrapping_add(full.place(row)))
            });
            eprintln!("{name}, {of}: place {place:.1} ns, row {row:.1} ns; a full list {full:.1}");
        }
    }
}
