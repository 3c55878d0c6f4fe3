//! Row maps are bijections, whatever their kind.

use emb_shard::{Place, RowMap, RowMapKind};
use proptest::prelude::*;

/// Walks every row forwards and every (owner, local row) backwards.
fn assert_bijection(map: &RowMap) {
    let mut counts = vec![0u64; map.owners()];
    for row in 0..map.rows() {
        let Place { owner, local } = map.locate(row).expect("row exists");
        assert!(local < map.rows_of(owner).expect("owner exists"), "row {row}");
        assert_eq!(map.global(owner, local).expect("place exists"), row);
        counts[owner] += 1;
    }
    for (owner, &count) in counts.iter().enumerate() {
        assert_eq!(map.rows_of(owner).expect("owner exists"), count, "owner {owner}");
        assert!(map.global(owner, count).is_err(), "owner {owner} has {count} rows");
    }
}

#[test]
fn empty_owners_take_no_rows() {
    let map = RowMap::range(vec![0, 0, 5, 5, 7, 7]).expect("valid");
    assert_bijection(&map);
    assert_eq!(map.locate(0).expect("exists"), Place { owner: 1, local: 0 });
    assert_eq!(map.locate(5).expect("exists"), Place { owner: 3, local: 0 });
    assert_eq!(map.kind(), RowMapKind::Range(&[0, 0, 5, 5, 7, 7]));
}

#[test]
fn a_table_of_fewer_rows_than_owners_leaves_the_last_ones_empty() {
    for map in [RowMap::even(3, 8), RowMap::modulo(3, 8)] {
        let map = map.expect("valid");
        assert_bijection(&map);
        let counts: Vec<u64> = (0..8).map(|o| map.rows_of(o).expect("exists")).collect();
        assert_eq!(counts, [1, 1, 1, 0, 0, 0, 0, 0]);
    }
}

#[test]
fn rows_beyond_32_bits_are_found() {
    let rows = 3 * (1u64 << 33) + 1;
    let last = rows - 1;
    let range = RowMap::even(rows, 3).expect("valid");
    assert_eq!(range.rows_of(0).expect("exists"), (1 << 33) + 1);
    assert_eq!(range.locate(last).expect("exists"), Place { owner: 2, local: (1 << 33) - 1 });
    assert_eq!(range.global(2, (1 << 33) - 1).expect("exists"), last);
    let modulo = RowMap::modulo(rows, 3).expect("valid");
    assert_eq!(modulo.locate(last).expect("exists"), Place { owner: 0, local: 1 << 33 });
    assert_eq!(modulo.global(0, 1 << 33).expect("exists"), last);
    let huge = RowMap::even(u64::MAX, 7).expect("valid");
    assert_eq!(huge.locate(u64::MAX - 1).expect("exists").owner, 6);
}

#[test]
fn bad_maps_are_refused_with_what_is_wrong() {
    let refusal = |map: emb_shard::Result<RowMap>| map.expect_err("must be refused").to_string();
    assert_eq!(refusal(RowMap::range(vec![])), "a row map needs at least one owner");
    assert_eq!(refusal(RowMap::range(vec![0])), "a row map needs at least one owner");
    assert_eq!(refusal(RowMap::even(4, 0)), "a row map needs at least one owner");
    assert_eq!(refusal(RowMap::modulo(4, 0)), "a row map needs at least one owner");
    assert_eq!(refusal(RowMap::range(vec![1, 4])), "row starts must begin at 0, they begin at 1");
    assert_eq!(refusal(RowMap::range(vec![0, 4, 3])), "row starts decrease at owner 1: 4 then 3");
    let three = || RowMap::even(3, 2).expect("valid");
    assert_eq!(
        refusal(RowMap::permuted(vec![0, 1], three())),
        "the permutation has 2 rows, the row map behind it 3"
    );
    assert_eq!(
        refusal(RowMap::permuted(vec![0, 1, 3], three())),
        "the permutation sends row 2 to 3, there are 3 rows"
    );
    assert_eq!(
        refusal(RowMap::permuted(vec![2, 0, 2], three())),
        "the permutation sends rows 0 and 2 to 2"
    );
}

#[test]
fn rows_and_owners_outside_are_refused_by_kind() {
    let map = RowMap::modulo(10, 4).expect("valid");
    let text = |error: emb_shard::Error| error.to_string();
    assert_eq!(text(map.locate(10).expect_err("10 rows")), "row 10 does not exist: there are 10");
    assert_eq!(text(map.rows_of(4).expect_err("4")), "owner 4 does not exist: there are 4");
    assert_eq!(
        text(map.global(3, 2).expect_err("2 rows")),
        "local row 2 does not exist: there are 2"
    );
}

fn range_map() -> impl Strategy<Value = RowMap> {
    // Lengths with many zeros: empty owners at the start, the middle and the end.
    prop::collection::vec(prop_oneof![Just(0u64), 0u64..400], 1..40).prop_map(|lengths| {
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        RowMap::range(std::iter::once(0).chain(ends).collect()).expect("starts ascend")
    })
}

fn plain_map() -> impl Strategy<Value = RowMap> {
    prop_oneof![
        range_map(),
        (0u64..4000, 1usize..70).prop_map(|(rows, n)| RowMap::modulo(rows, n).expect("owners")),
        (0u64..4000, 1usize..70).prop_map(|(rows, n)| RowMap::even(rows, n).expect("owners")),
    ]
}

fn permuted_map() -> impl Strategy<Value = RowMap> {
    plain_map().prop_flat_map(|then| {
        let order: Vec<u64> = (0..then.rows()).collect();
        (Just(order).prop_shuffle(), Just(then)).prop_map(|(permutation, then)| {
            RowMap::permuted(permutation, then).expect("a shuffle is a permutation")
        })
    })
}

proptest! {
    #[test]
    fn ranges_and_modulo_are_bijections(map in plain_map()) {
        assert_bijection(&map);
    }

    #[test]
    fn permuted_maps_are_bijections_and_place_rows_by_the_new_order(map in permuted_map()) {
        assert_bijection(&map);
        let RowMapKind::Permuted { order, then } = map.kind() else {
            return Err(TestCaseError::fail("a permuted map has another kind"));
        };
        for row in 0..map.rows() {
            let place = then.locate(order.place(row)).expect("row exists");
            prop_assert_eq!(map.locate(row).expect("row exists"), place);
        }
    }

    #[test]
    fn even_ranges_differ_by_at_most_one_row(rows in any::<u64>(), owners in 1usize..300) {
        let map = RowMap::even(rows, owners).expect("owners");
        let counts: Vec<u64> = (0..owners).map(|o| map.rows_of(o).expect("exists")).collect();
        let (most, least) = (counts.iter().max(), counts.iter().min());
        prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
        prop_assert_eq!(counts.iter().sum::<u64>(), rows);
    }
}
