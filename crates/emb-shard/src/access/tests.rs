//! Closed forms against the sum row by row, measured counts against their buckets.

use super::*;
use crate::RowRange;
use proptest::prelude::*;

fn zipf(exponent: f64, rows: u64) -> RowFrequencies {
    RowFrequencies::new(&Access::Zipf { exponent }, rows).expect("valid")
}

/// The sum with a second word for what rounding loses (Neumaier).
fn exact_sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { sum - next + term } else { term - next + sum };
        sum = next;
    }
    sum + lost
}

/// Probabilities one by one.
fn naive(exponent: f64, rows: u64) -> Vec<f64> {
    let powers: Vec<f64> = (1..=rows).map(|x| (x as f64).powf(-exponent)).collect();
    let total = exact_sum(powers.iter().copied());
    powers.iter().map(|power| power / total).collect()
}

fn naive_unique(probabilities: &[f64], lookups: f64) -> f64 {
    if lookups == 0.0 {
        return 0.0;
    }
    exact_sum(probabilities.iter().map(|p| -(lookups * (-p).ln_1p()).exp_m1()))
}

fn close(found: f64, expected: f64, relative: f64) -> bool {
    (found - expected).abs() <= relative * expected.abs()
}

const EXPONENTS: [f64; 10] = [0.0, 1e-9, 0.5, 0.999_999_999, 1.0, 1.05, 1.2, 2.0, 5.0, 15.0];

#[test]
fn shares_of_zipf_equal_the_sum_row_by_row() {
    for exponent in EXPONENTS {
        for rows in [1, 2, 63, 64, 65, 1000, 1_000_000] {
            let (law, all) = (zipf(exponent, rows), naive(exponent, rows));
            for top in [0, 1, 64, 65, 500, rows / 2, rows - 1, rows] {
                let expected = exact_sum(all.iter().copied().take(top as usize));
                let found = law.share_of_top(top);
                assert!((found - expected).abs() < 1e-12, "{exponent} {rows} {top}: {found}");
            }
            for rank in [0, rows / 3, rows - 1] {
                let found = law.probability(rank).expect("a row");
                assert!(close(found, all[rank as usize], 1e-12), "{exponent} {rows} {rank}");
            }
        }
    }
}

#[test]
fn distinct_rows_of_zipf_equal_the_sum_row_by_row() {
    for exponent in EXPONENTS {
        let many = if exponent == 1.05 { 1_000_000 } else { 100_000 };
        for rows in [1, 1000, 1025, 2049, many] {
            let (law, all) = (zipf(exponent, rows), naive(exponent, rows));
            for lookups in [0.0, 0.3, 1.0, 2.0, 1e3, 1e5, 1e7, 1e10, 1e15] {
                let expected = naive_unique(&all, lookups);
                let found = law.expected_unique(lookups).expect("valid");
                assert!(close(found, expected, 1e-9), "{exponent} {rows} {lookups}: {found}");
                let (from, to) = (rows / 5, rows - rows / 7);
                let range = RowRange::new(from, to).expect("ascending");
                let expected = naive_unique(&all[from as usize..to as usize], lookups);
                let found = law.expected_unique_in(range, lookups).expect("valid");
                assert!(close(found, expected, 1e-9), "{exponent} {rows} {lookups} {range}");
            }
        }
    }
}

/// Distinct rows a sample, rounded, from sums over all rows in another language.
#[test]
fn distinct_rows_equal_figures_computed_elsewhere() {
    let cases = [
        (512, 1, 1_000, 0.35),
        (512, 1, 100_000, 0.54),
        (512, 1, 4_000_000, 0.60),
        (512, 1, 50_000_000, 0.63),
        (512, 10, 4_000_000, 4.38),
        (512, 100, 4_000_000, 30.6),
        (8192, 1, 4_000_000, 0.41),
        (8192, 1, 1_000, 0.10),
    ];
    for (samples, pooling, rows, expected) in cases {
        let lookups = f64::from(samples * pooling);
        let unique = zipf(1.1, rows).expected_unique(lookups).expect("valid");
        let found = unique / f64::from(samples);
        let last_digit = if expected > 10.0 { 0.1 } else { 0.01 };
        assert!((found - expected).abs() <= 0.51 * last_digit, "{samples} {pooling} {rows}");
    }
}

#[test]
fn a_million_million_rows_are_no_harder() {
    let rows = 1_000_000_000_000;
    // With exponent 0 every sum has a closed form.
    let even = zipf(0.0, rows);
    assert!(close(even.share_of_top(rows / 4), 0.25, 1e-12));
    let unique = even.expected_unique(1e12).expect("valid");
    assert!(close(unique, 1e12 * (1.0 - (-1.0_f64).exp()), 1e-9), "{unique}");
    assert_eq!(even.rows_for_share(0.5).expect("a share"), rows / 2);
    // Steep: `sum 1/x^2 = pi^2 / 6`, up to 1e-12 of the tail.
    let steep = zipf(2.0, rows);
    let first = 6.0 / std::f64::consts::PI.powi(2);
    assert!(close(steep.probability(0).expect("a row"), first, 1e-11));
    // Few look-ups of many rows are nearly all distinct; very many touch every row.
    assert!(close(even.expected_unique(1000.0).expect("valid"), 1000.0, 1e-8));
    assert!(close(zipf(1.05, rows).expected_unique(1e20).expect("valid"), 1e12, 1e-9));
}

#[test]
fn uniform_is_zipf_with_exponent_zero() {
    for rows in [1, 10, 5000] {
        let (uniform, even) =
            (RowFrequencies::new(&Access::Uniform, rows).expect("valid"), zipf(0.0, rows));
        for lookups in [0.0, 1.0, 1e4] {
            let (a, b) = (uniform.expected_unique(lookups), even.expected_unique(lookups));
            assert!(close(a.expect("valid"), b.expect("valid"), 1e-12), "{rows} {lookups}");
        }
        assert_eq!(uniform.probability(rows - 1).expect("a row"), 1.0 / rows as f64);
        assert_eq!(uniform.share_of_top(rows), 1.0);
    }
}

#[test]
fn buckets_of_counts_stand_for_the_counts() {
    let all = naive(1.1, 200_000);
    let counts: Vec<u64> = all.iter().map(|p| (p * 5e6).round() as u64).collect();
    let histogram = Histogram::of_counts(counts.iter().copied()).expect("counts");
    assert!(histogram.buckets().len() < 200);
    assert_eq!(histogram.rows(), 200_000);
    let total: u64 = counts.iter().sum();
    assert_eq!(histogram.lookups(), total);
    let law = RowFrequencies::new(&Access::Histogram(histogram), 200_000).expect("valid");
    let measured: Vec<f64> = counts.iter().map(|&count| count as f64 / total as f64).collect();
    for lookups in [1.0, 1e3, 1e5, 1e7] {
        let (found, expected) =
            (law.expected_unique(lookups).expect("valid"), naive_unique(&measured, lookups));
        assert!(found >= expected * (1.0 - 1e-12), "{lookups}: {found} < {expected}");
        assert!(close(found, expected, 1e-3), "{lookups}: {found} for {expected}");
    }
    for top in [1, 10, 1000, 100_000] {
        let expected: f64 = measured[..top].iter().sum();
        assert!((law.share_of_top(top as u64) - expected).abs() < 5e-3, "{top}");
    }
}

#[test]
fn rows_never_looked_up_have_no_share() {
    let buckets = vec![Bucket { rows: 2, lookups: 8 }, Bucket { rows: 3, lookups: 0 }];
    let access = Access::Histogram(Histogram::new(buckets).expect("valid"));
    let law = RowFrequencies::new(&access, 100).expect("more rows than measured");
    assert_eq!(law.probability(1).expect("a row"), 0.5);
    assert_eq!(law.probability(2).expect("a row"), 0.0);
    assert_eq!(law.probability(99).expect("a row"), 0.0);
    assert_eq!((law.share_of_top(1), law.share_of_top(2), law.share_of_top(50)), (0.5, 1.0, 1.0));
    assert_eq!(law.rows_for_share(1.0).expect("a share"), 2);
    assert_eq!(law.expected_unique(1e9).expect("valid"), 2.0);
}

#[test]
fn impossible_patterns_and_questions_are_refused_with_their_values() {
    let text = |result: crate::Result<f64>| result.expect_err("must be refused").to_string();
    let refused = |access, rows| RowFrequencies::new(&access, rows).expect_err("bad").to_string();
    assert_eq!(refused(Access::Uniform, 0), "access: there are no rows");
    for exponent in [-0.1, 15.1, f64::NAN, f64::INFINITY] {
        assert!(refused(Access::Zipf { exponent }, 9).contains("must be in 0..=15"));
    }
    let one = Histogram::new(vec![Bucket { rows: 10, lookups: 1 }]).expect("valid");
    let found = refused(Access::Histogram(one), 9);
    assert_eq!(found, "access: a histogram of 10 rows for a table of 9");

    let law = zipf(1.0, 10);
    assert_eq!(text(law.probability(10)), "row 10 does not exist: there are 10");
    for lookups in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(text(law.expected_unique(lookups)).contains("must be finite"));
    }
    let beyond = RowRange::new(3, 11).expect("ascending");
    assert_eq!(text(law.expected_unique_in(beyond, 1.0)), "row 10 does not exist: there are 10");
    assert!(law.rows_for_share(1.1).expect_err("a share").to_string().contains("0..=1"));
    assert!(law.rows_for_share(f64::NAN).is_err());
}

#[test]
fn impossible_histograms_are_refused_by_bucket() {
    let refused = |pairs: &[(u64, u64)]| {
        let buckets = pairs.iter().map(|&(rows, lookups)| Bucket { rows, lookups }).collect();
        Histogram::new(buckets).expect_err("must be refused").to_string()
    };
    assert!(refused(&[(1, 5), (0, 1)]).contains("bucket 1 of the histogram has no rows"));
    assert!(refused(&[(2, 5), (1, 3)]).contains("more look-ups a row than bucket 0"));
    assert!(refused(&[(u64::MAX, 9), (1, 0)]).contains("exceeds 64 bits"));
    assert!(refused(&[(1, 0)]).contains("no look-ups"));
    assert!(refused(&[]).contains("no look-ups"));
    assert!(Histogram::of_counts([0, 0]).is_err());
    assert!(Histogram::of_counts([u64::MAX, u64::MAX]).is_err());
}

#[test]
fn patterns_are_read_from_files_and_unknown_keys_refused() {
    let read = |text: &str| serde_json::from_str::<Access>(text);
    assert_eq!(read(r#""uniform""#).expect("valid"), Access::Uniform);
    let zipf = read(r#"{"zipf":{"exponent":1.05}}"#).expect("valid");
    assert_eq!(zipf, Access::Zipf { exponent: 1.05 });
    let text = r#"{"histogram":[{"rows":1,"lookups":9},{"rows":4,"lookups":1}]}"#;
    let histogram = read(text).expect("valid");
    assert_eq!(serde_json::to_string(&histogram).expect("writes"), text);
    assert!(read(r#"{"zipf":{"exponent":1,"alpha":2}}"#).is_err());
    let error = read(r#"{"histogram":[{"rows":0,"lookups":1}]}"#).expect_err("no rows");
    assert!(error.to_string().contains("bucket 0 of the histogram has no rows"), "{error}");
}

fn any_access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Uniform),
        (0.0..3.0).prop_map(|exponent| Access::Zipf { exponent }),
        prop::collection::vec(1_u64..1000, 1..50).prop_map(|counts| {
            Access::Histogram(Histogram::of_counts(counts).expect("counts above 0"))
        }),
    ]
}

fn check_answers(access: &Access, rows: u64, top: u64, lookups: f64) {
    let law = RowFrequencies::new(access, rows).expect("valid");
    // More rows have more of the look-ups, up to rounding, and at least their part of them.
    let share = law.share_of_top(top);
    assert!(share <= law.share_of_top(top + 1) + 1e-12);
    assert!(share >= top as f64 / rows as f64 - 1e-12);
    // The fewest rows for a share have it, one less does not. Rows that have it already are enough,
    // but for those that have less than what shares are rounded by: these differ by it both ways.
    let few = law.rows_for_share(share).expect("a share");
    assert!(law.share_of_top(few) >= share - 1e-12);
    assert!(few == 0 || law.share_of_top(few - 1) < share + 1e-12);
    let beyond = |rows: u64| rows as f64 * law.probability(top).expect("a row");
    assert!(few <= top || beyond(few - top) < 1e-12, "{few} rows for the share of {top}");
    // Distinct rows: no more than look-ups or rows, and the parts of a cut add up.
    let unique = law.expected_unique(lookups).expect("valid");
    assert!(unique <= lookups.min(rows as f64) * (1.0 + 1e-9));
    let part = |a, b| {
        law.expected_unique_in(RowRange::new(a, b).expect("ascending"), lookups).expect("valid")
    };
    assert!(close(part(0, top) + part(top, rows), unique, 1e-9));
    // Eight ranks touch more rows than one, less than eight times as many.
    let group = law.expected_unique_of_group(lookups, 8).expect("valid");
    assert!(unique <= group * (1.0 + 1e-9) && group <= 8.0 * unique * (1.0 + 1e-9));
}

#[test]
fn answers_agree_where_a_row_has_less_than_the_rounding_of_a_share() {
    // The last rows have 1e-17 of the look-ups each, shares near 1 are 1e-16 apart.
    let access = Access::Zipf { exponent: 2.921_387_767_102_361_4 };
    check_answers(&access, 798_887, 798_871, 1.0);
}

proptest! {
    #[test]
    fn answers_agree_with_one_another(
        access in any_access(), rows in 50_u64..1_000_000, top in 0.0..1.0, log in 0.0..12.0,
    ) {
        check_answers(&access, rows, (top * rows as f64) as u64, 10_f64.powf(log));
    }
}
