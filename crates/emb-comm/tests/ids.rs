//! Packed ids come back as they were, take few bits, and say so when they were damaged.

use emb_comm::{Error, ids};
use proptest::prelude::*;

fn packed(list: &[u64]) -> Vec<u64> {
    let mut words = vec![7]; // what was there before stays
    ids::pack(list, &mut ids::Scratch::default(), &mut words).expect("not too long");
    assert_eq!(words.remove(0), 7);
    words
}

fn unpacked(words: &[u64], count: usize) -> emb_comm::Result<(Vec<u64>, usize)> {
    let mut out = vec![0xAB; count];
    let read = ids::unpack(words, &mut ids::Scratch::default(), &mut out)?;
    Ok((out, read))
}

#[track_caller]
fn comes_back(list: &[u64]) {
    let mut words = packed(list);
    let length = words.len();
    words.extend([u64::MAX; 3]); // another list behind it
    let (back, read) = unpacked(&words, list.len()).expect("undamaged");
    assert!(back == list, "a list of {} ids came back as another", list.len());
    assert_eq!(read, length);
    if list.is_sorted() {
        let mut words = Vec::new();
        ids::pack_sorted(list, &mut words).expect("sorted");
        let (back, read) = unpacked(&words, list.len()).expect("undamaged");
        assert!(back == list, "a sorted list of {} ids came back as another", list.len());
        assert_eq!(read, words.len());
    }
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }

    /// A row by Zipf's law of exponent 1, approximately: the inverse of its continuous twin.
    fn zipf(&mut self, rows: u64) -> u64 {
        let unit = self.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        ((rows as f64).powf(unit) as u64).min(rows) - 1
    }
}

#[test]
fn no_ids_are_no_words() {
    assert!(packed(&[]).is_empty());
    assert_eq!(unpacked(&[], 0).expect("nothing to read"), (vec![], 0));
    assert_eq!(unpacked(&[9, 9], 0).expect("nothing to read"), (vec![], 0));
}

#[test]
fn the_ends_of_64_bits_come_back() {
    const MAX: u64 = u64::MAX;
    for list in [
        &[0][..],
        &[1],
        &[MAX],
        &[0, MAX],
        &[MAX, 0],
        &[0, 0, MAX, MAX],
        &[MAX, MAX - 1, 0, MAX],
        &[0, 1, MAX],
        &[5, 5, 5, 5],
        &[1 << 63, (1 << 63) + 1, MAX - 1, MAX],
        &[MAX - 2, MAX - 1, MAX],
    ] {
        comes_back(list);
    }
}

#[test]
fn lists_around_whole_blocks_come_back() {
    let mut random = Random(1);
    for count in [1, 2, 63, 64, 65, 127, 128, 129, 130, 255, 256, 257, 258, 1024, 1025] {
        for end in [1, 2, 3, 100, 1 << 20, 1 << 33, 1 << 63, u64::MAX] {
            let mut list: Vec<u64> = (0..count).map(|_| random.below(end)).collect();
            comes_back(&list);
            list.sort_unstable();
            comes_back(&list);
            list.dedup();
            comes_back(&list);
            list.reverse();
            comes_back(&list);
        }
    }
}

#[test]
fn runs_far_ids_and_steps_come_back() {
    let mut random = Random(2);
    let run = |id: u64, count| std::iter::repeat_n(id, count);
    comes_back(&run(3, 1000).chain(run(4, 1)).chain(run(u64::MAX, 700)).collect::<Vec<_>>());
    comes_back(&(0..5000).map(|k| k * 12_345).collect::<Vec<_>>());
    comes_back(&(0..5000).map(|k| (5000 - k) * 12_345).collect::<Vec<_>>());
    comes_back(&(0..5000).chain(10_000..10_700).chain([u64::MAX]).collect::<Vec<_>>());
    let far = (0..5000).map(|k| if k % 977 == 500 { random.below(u64::MAX) } else { k / 3 });
    comes_back(&far.collect::<Vec<_>>());
}

#[test]
fn equal_numbers_are_two_words_and_a_rare_other_one_costs_little() {
    assert_eq!(packed(&vec![1; 100_000]).len(), 2);
    assert_eq!(packed(&(7..100_007).collect::<Vec<_>>()).len(), 2);
    let lengths: Vec<u64> = (0..100_000).map(|k| u64::from(k % 1000 != 7)).collect();
    let bits = packed(&lengths).len() as f64 * 64.0 / 1e5;
    assert!(bits < 0.25, "{bits} bits a length");
}

#[test]
fn a_far_id_lengthens_its_own_block_alone() {
    let near: Vec<u64> = (0..12_800).map(|k| k * 10 + k % 3).collect();
    let mut far = near.clone();
    far.push(u64::MAX - 1);
    // A block of its own, or 128 ids of 64 bits.
    let bound = packed(&near).len() + 130;
    assert!(packed(&far).len() < bound);
    let mut far = near.clone();
    far.swap(1, 1000);
    far[700] = u64::MAX - 1;
    assert!(packed(&far).len() < packed(&near).len() + 12_800 * 11 / 64 + 130);
}

#[test]
fn duplicates_in_any_order_become_a_dictionary() {
    let mut random = Random(3);
    let rows: Vec<u64> = (0..100).map(|_| random.below(1 << 60)).collect();
    let list: Vec<u64> = (0..20_000).map(|_| rows[random.below(100) as usize]).collect();
    let bits = packed(&list).len() as f64 * 64.0 / 20_000.0;
    // Places among 100 are 7 bits, and the rows themselves 60 bits over 200 uses.
    assert!(bits < 7.5, "{bits} bits an id");
    comes_back(&list);
    // So many that they are sorted digit by digit, of few bits and of 64.
    for end in [20_000, u64::MAX] {
        let rows: Vec<u64> = (0..6000).map(|_| random.below(end)).collect();
        let list: Vec<u64> = (0..40_000).map(|_| rows[random.below(6000) as usize]).collect();
        assert_eq!(packed(&list)[0] % 8, 4);
        comes_back(&list);
    }
}

#[test]
fn no_dictionary_is_looked_for_behind_4096_distinct_ids() {
    let distinct = (0..5000_u64).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let list = |first| {
        let all = distinct.clone().take(first).chain(distinct.clone().cycle().take(80_000));
        packed(&all.collect::<Vec<_>>())[0] % 8
    };
    assert_eq!([list(4095), list(0)], [4, 3]);
}

#[test]
fn sorted_zipf_ids_are_within_a_quarter_of_what_any_code_needs() {
    let mut random = Random(4);
    for rows in [100_003, 1_000_003, 100_000_007, 1_000_000_007] {
        for permuted in [false, true] {
            // A multiplier without a common factor permutes a prime number of rows.
            let row = |id: u64| if permuted { id * 6_180_339_887 % rows } else { id };
            let mut list: Vec<u64> = (0..65_536).map(|_| row(random.zipf(rows))).collect();
            list.sort_unstable();
            list.dedup();
            let mut words = Vec::new();
            ids::pack_sorted(&list, &mut words).expect("sorted");
            // log2 C(rows, n) / n: bits of an id of a random set of n rows.
            let n = list.len() as u64;
            let floor: f64 =
                (0..n).map(|k| ((rows - k) as f64 / (k + 1) as f64).log2()).sum::<f64>() / n as f64;
            let bits = words.len() as f64 * 64.0 / n as f64;
            eprintln!("{n} of {rows} rows, permuted {permuted}: {bits:.3} bits, floor {floor:.3}");
            assert!(bits <= 1.25 * floor, "{bits} bits an id, floor {floor}");
            comes_back(&list);
        }
    }
}

#[test]
fn ids_that_are_not_sorted_are_refused_by_position() {
    let mut words = vec![7];
    let error = ids::pack_sorted(&[1, 5, 4, 6], &mut words).expect_err("not sorted");
    assert_eq!(error, Error::NotSorted { position: 2, id: 4, before: 5 });
    assert_eq!(error.to_string(), "pack_sorted: id 4 at position 2 is below 5 before it");
    assert_eq!(words, [7]);
}

/// One list for each encoding.
fn lists() -> Vec<Vec<u64>> {
    let mut random = Random(5);
    let mut below = |end| (0..300).map(|_| random.below(end)).collect::<Vec<_>>();
    let mut sorted = below(1000);
    sorted.sort_unstable();
    let mut distinct = below(1 << 40);
    distinct.sort_unstable();
    let repeated = below(6).iter().map(|id| id * 0x1234_5678_9abc).collect();
    vec![vec![4; 300], distinct, sorted, below(1 << 20), repeated]
}

#[test]
fn every_encoding_is_used() {
    let encodings: Vec<u64> = lists().iter().map(|list| packed(list)[0] % 8).collect();
    assert_eq!(encodings, [0, 1, 2, 3, 4]);
}

#[test]
fn a_cut_list_and_a_flipped_bit_are_refused() {
    for list in lists() {
        let words = packed(&list);
        for cut in 0..words.len() {
            let error = unpacked(&words[..cut], list.len()).expect_err("cut short");
            assert!(matches!(error, Error::PackedIds { word: 0, .. }), "{error}");
        }
        for bit in 0..words.len() * 64 {
            let mut damaged = words.clone();
            damaged[bit / 64] ^= 1 << (bit % 64);
            unpacked(&damaged, list.len()).expect_err("damaged");
        }
        for count in [1, list.len() - 1, list.len() + 1, 1_000_000] {
            let error = unpacked(&words, count).expect_err("another number of ids");
            assert!(error.to_string().contains(&format!("for {count} ids")), "{error}");
        }
    }
    let error = unpacked(&[], 3).expect_err("no words");
    assert_eq!(error.to_string(), "packed ids, word 0: no header where 3 ids should be");
    let error = unpacked(&packed(&[1, 5, 99])[..1], 3).expect_err("no body");
    assert_eq!(error.to_string(), "packed ids, word 0: 1 words should follow, 0 do");
}

#[test]
fn nothing_is_allocated_once_the_buffers_have_room() {
    let (mut words, mut scratch) = (Vec::new(), ids::Scratch::default());
    let lists = lists();
    let mut out = vec![0; 300];
    let mut round = || {
        for list in &lists {
            words.clear();
            ids::pack(list, &mut scratch, &mut words).expect("not too long");
            ids::unpack(&words, &mut scratch, &mut out).expect("undamaged");
            if list.is_sorted() {
                ids::pack_sorted(list, &mut words).expect("sorted");
            }
        }
    };
    round();
    assert_eq!(allocation_counter::measure(round).count_total, 0);
}

#[test]
fn the_format_is_the_documented_one() {
    // First 3 (2 bits), step 2 (2 bits).
    let body = 2 | 3 << 7 | 2 << 9 | 2 << 16;
    assert_eq!(packed(&[3, 5, 7])[1..], [body]);
    // First 10 (4 bits); then e = 0, 5, 5, so l = 0 (6 bits), and 1, 000001, 1.
    let body = 4 | 10 << 7 | 1 << 17 | 1 << 23 | 1 << 24;
    let words = packed(&[10, 11, 17, 18]);
    assert_eq!(words[1..], [body]);
    assert_eq!(words[0] as u32, 1 | 1 << 3);
    // Low 6 (3 bits), base width 0; width 3, no base, then 3, 0, 7, 1.
    let body = 3 | 6 << 7 | 3 << 17 | 3 << 24 | 7 << 30 | 1 << 33;
    let words = packed(&[9, 6, 13, 7]);
    assert_eq!(words[1..], [body]);
    assert_eq!(words[0] as u32, 3 | 1 << 3);
}

fn list() -> impl Strategy<Value = Vec<u64>> {
    let id = prop_oneof![
        4 => 0_u64..50,
        2 => 0_u64..1_000_000,
        1 => any::<u64>(),
        1 => prop::sample::select(vec![0, 1, u64::MAX, u64::MAX - 1, 1 << 63]),
    ];
    // Ids in runs, so that blocks differ.
    let run = (id, 1_usize..90, 0_u64..3);
    prop::collection::vec(run, 0..12).prop_map(|runs| {
        let ids = runs.into_iter().flat_map(|(first, count, step)| {
            (0..count as u64).map(move |k| first.wrapping_add(k * step))
        });
        ids.collect()
    })
}

proptest! {
    #[test]
    fn any_list_comes_back(mut list in list()) {
        comes_back(&list);
        list.sort_unstable();
        comes_back(&list);
        list.dedup();
        comes_back(&list);
    }

    #[test]
    fn any_words_are_read_or_refused(words in prop::collection::vec(any::<u64>(), 0..9), count in 0_usize..400) {
        let _ = unpacked(&words, count);
    }
}
