//! Routing: the spec of what devices do.

use emb_shard::{Routed, RowMap};
use proptest::prelude::*;

#[test]
fn ids_are_sorted_by_owner_and_keep_their_order() {
    let map = RowMap::ceil(10, 4).expect("has owners");
    let mut routed = Routed::default();
    routed.route("f", &[3, 0, 2], &[9, 1, 4, 0, 5], &map).expect("in range");
    assert_eq!(routed.counts, [2, 2, 0, 1]);
    assert_eq!(routed.lengths, [1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0]);
    assert_eq!(routed.ids, [1, 0, 1, 2, 0]);
    assert_eq!(routed.positions, [1, 3, 2, 4, 0]);
}

#[test]
fn bad_ids_and_lengths_are_refused_by_name_and_nothing_is_written() {
    let map = RowMap::modulo(10, 4).expect("has owners");
    let mut routed = Routed::default();
    routed.route("f", &[1], &[7], &map).expect("in range");
    let before = routed.clone();
    let mut refusal = |lengths: &[u64], ids: &[i64]| {
        routed.route("f", lengths, ids, &map).expect_err("refused").to_string()
    };
    assert_eq!(
        refusal(&[2, 0, 3], &[1, 2, 3, 10, -1]),
        r#"feature "f", sample 2, position 1: id 10 is outside 0..10"#
    );
    assert_eq!(
        refusal(&[0, 1], &[-1]),
        r#"feature "f", sample 1, position 0: id -1 is outside 0..10"#
    );
    assert_eq!(refusal(&[2, 2], &[1]), r#"feature "f": the lengths sum to 4, there are 1 ids"#);
    assert!(refusal(&[u64::MAX, 2], &[1]).contains("the lengths sum to 18446744073709551615"));
    assert_eq!(routed, before);
}

proptest! {
    #[test]
    fn routing_is_a_stable_partition_of_the_batch(
        rows in 1u64..100,
        owners in 1usize..12,
        bags in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..6), 0..20),
        kind in 0u8..3,
    ) {
        let map = match kind {
            0 => RowMap::ceil(rows, owners),
            1 => RowMap::modulo(rows, owners),
            _ => RowMap::permuted((0..rows).rev().collect(), RowMap::even(rows, owners).expect("owners")),
        }.expect("valid map");
        let lengths: Vec<u64> = bags.iter().map(|bag| bag.len() as u64).collect();
        let flat: Vec<i64> = bags.iter().flatten().map(|id| id.index(rows as usize) as i64).collect();
        let mut routed = Routed::default();
        // Used before: memory of another batch must not show.
        routed.route("f", &[2], &[0, 0], &map).expect("in range");
        routed.route("f", &lengths, &flat, &map).expect("in range");

        // The oracle: for every owner, walk all bags.
        let (mut ids, mut positions, mut part_lengths, mut counts) = (vec![], vec![], vec![], vec![]);
        for owner in 0..owners {
            let before = ids.len();
            let mut position = 0;
            for &length in &lengths {
                let in_bag = ids.len();
                for _ in 0..length {
                    let place = map.locate(flat[position] as u64).expect("in range");
                    if place.owner == owner {
                        ids.push(place.local);
                        positions.push(position as u64);
                    }
                    position += 1;
                }
                part_lengths.push((ids.len() - in_bag) as u64);
            }
            counts.push((ids.len() - before) as u64);
        }
        prop_assert_eq!(routed, Routed { counts, lengths: part_lengths, ids, positions });
    }
}
