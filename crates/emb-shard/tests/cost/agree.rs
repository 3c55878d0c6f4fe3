//! The estimate equals the reference.

use crate::case::Case;
use crate::reference::reference;
use emb_shard::{CostModel, Estimate, LevelBytes, Overlap, Parts, RankEstimate};
use proptest::prelude::*;

/// Numbers of a rank, by name.
fn numbers(rank: &RankEstimate) -> Vec<(String, f64)> {
    let mut all: Vec<(String, f64)> =
        rank.parts.named().iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect();
    let mut levels = |name: &str, levels: &[LevelBytes]| {
        for (number, bytes) in levels.iter().enumerate() {
            all.push((format!("{name} sent over {number}"), bytes.sent));
            all.push((format!("{name} received over {number}"), bytes.received));
        }
    };
    levels("exchanged", &rank.exchanged);
    levels("synced", &rank.synced);
    levels("dense", &rank.dense);
    let peak = rank.peak;
    for (name, bytes) in [
        ("weights", peak.weights),
        ("state", peak.state),
        ("buffers", peak.buffers),
        ("dense", peak.dense),
    ] {
        all.push((name.to_owned(), bytes));
    }
    all
}

/// `near` as far as sums of other order can be: relative to it and to what the largest rank has.
pub(crate) fn near(a: f64, b: f64, largest: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + 1e-13 * largest
}

fn overlapped(parts: Parts, overlap: Overlap) -> Parts {
    match overlap {
        Overlap::None => parts,
        Overlap::Pipelined => Parts {
            id_exchange: (parts.id_exchange - parts.dense).max(0.0),
            dense_sync: (parts.dense_sync - parts.dense * 2.0 / 3.0).max(0.0),
            ..parts
        },
    }
}

fn check(case: &Case) {
    let Estimate { parts, ranks } =
        case.model.estimate(&case.plan, &case.workload, &case.topology).expect("an estimate");
    let expected = reference(case);
    let what = |rank: u32| format!("rank {rank}\n{}{:?}\n{}", case.topology, case.model, case.plan);
    for rank in &ranks {
        let all = numbers(&expected[rank.rank as usize]);
        for (number, ((name, got), (_, want))) in numbers(rank).iter().zip(&all).enumerate() {
            let largest = expected.iter().map(|rank| numbers(rank)[number].1).fold(0.0, f64::max);
            assert!(near(*got, *want, largest), "{name}: {got}, not {want}: {}", what(rank.rank));
        }
    }
    // The ranks that are asked stand for all.
    let slowest = expected.iter().map(|rank| rank.parts).fold(Parts::default(), Parts::max);
    let slowest = overlapped(slowest, case.model.options.overlap);
    for ((name, got), (_, want)) in parts.named().iter().zip(slowest.named()) {
        assert!(near(*got, want, slowest.total()), "{name}: {got}, not {want}: {}", what(0));
    }
    let each = expected.len() / ranks.len();
    let (got, want) = (sums(&ranks), sums(&expected));
    for ((name, got), (_, want)) in got.iter().zip(&want) {
        let got = got * each as f64;
        assert!(near(got, *want, *want), "{name} of all: {got}, not {want}: {}", what(0));
    }
}

fn sums(ranks: &[RankEstimate]) -> Vec<(String, f64)> {
    let mut sums = numbers(&ranks[0]);
    for rank in &ranks[1..] {
        for ((_, sum), (_, more)) in sums.iter_mut().zip(numbers(rank)) {
            *sum += more;
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn estimates_equal_the_sum_over_all_pairs_of_ranks(seed in any::<u64>()) {
        check(&Case::new(seed));
    }

    #[test]
    fn as_much_is_sent_as_is_received(seed in any::<u64>()) {
        let case = Case::new(seed);
        let estimate = case.model.estimate(&case.plan, &case.workload, &case.topology);
        let ranks = estimate.expect("an estimate").ranks;
        for level in 0..case.topology.levels().len() {
            let sum = |of: fn(&LevelBytes) -> f64| -> f64 {
                ranks.iter().map(|rank| of(&rank.exchanged[level]) + of(&rank.synced[level])).sum()
            };
            let (sent, received) = (sum(|bytes| bytes.sent), sum(|bytes| bytes.received));
            prop_assert!(near(sent, received, sent), "level {level}: {sent} {received}");
        }
    }
}
