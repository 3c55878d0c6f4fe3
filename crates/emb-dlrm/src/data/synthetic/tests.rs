//! The generator's laws, its truth, and that the truth can be learned.

use std::collections::{HashMap, HashSet};

use super::permutation::Permutation;
use super::random::{Stream, normal};
use super::zipf::Zipf;
use super::*;
use crate::data::{Batch, DENSE, Source, check};
use crate::metrics::EvalMetrics;

fn tables(count: usize, rows: u64) -> Vec<Feature> {
    (0..count).map(|f| Feature::new(&format!("C{}", f + 1), rows)).collect()
}

fn make(features: Vec<Feature>, options: Options) -> Synthetic {
    Synthetic::new(features, options).expect("valid options")
}

/// Chi-square of counts against probabilities, bins of fewer than 20 expected draws joined;
/// fails beyond five standard deviations.
fn check_chi_square(draws: &[u64], probability: impl Fn(usize) -> f64, what: &str) {
    let total: u64 = draws.iter().sum();
    let (mut statistic, mut bins) = (0.0, 0.0);
    let (mut observed, mut expected) = (0.0, 0.0);
    for (i, &count) in draws.iter().enumerate() {
        observed += count as f64;
        expected += probability(i) * total as f64;
        if expected >= 20.0 {
            statistic += (observed - expected).powi(2) / expected;
            bins += 1.0;
            (observed, expected) = (0.0, 0.0);
        }
    }
    let freedom: f64 = bins - 1.0;
    let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
    assert!(statistic < limit.max(12.0), "{what}: chi-square {statistic}, {freedom} degrees");
}

#[test]
fn ranks_follow_the_zipf_law() {
    for (n, s) in
        [(1000, 1.05), (1000, 1.0), (1000, 0.0), (50, 2.5), (1000, 1.0005), (3, 0.5), (1, 1.05)]
    {
        let zipf = Zipf::new(n, s);
        let mut random = Stream::new(3, n);
        let mut draws = vec![0; n as usize];
        for _ in 0..1_000_000 {
            draws[zipf.sample(&mut random) as usize - 1] += 1;
        }
        let weight = |i: usize| ((i + 1) as f64).powf(-s);
        let norm: f64 = (0..n as usize).map(weight).sum();
        check_chi_square(&draws, |i| weight(i) / norm, &format!("n {n}, s {s}"));
    }
}

#[test]
fn ranks_of_five_billion_rows_follow_the_zipf_law() {
    let (n, s) = (5_000_000_000_u64, 1.05_f64);
    let zipf = Zipf::new(n, s);
    let mut random = Stream::new(4, 0);
    // One bin for each of the first 15 ranks, then one for each doubling.
    let bin = |rank: u64| if rank < 16 { rank as usize - 1 } else { rank.ilog2() as usize + 11 };
    let mut draws = vec![0; bin(n) + 1];
    for _ in 0..1_000_000 {
        let rank = zipf.sample(&mut random);
        assert!((1..=n).contains(&rank));
        draws[bin(rank)] += 1;
    }
    // Sums of k^-s: plainly up to 2^20, then by the Euler-Maclaurin formula, whose next term is
    // below 1e-9 of the first there.
    let plain = 1 << 20;
    let sum = |from: u64, to: u64| -> f64 {
        let h = |x: u64| (x as f64).powf(-s);
        if to <= plain {
            return (from..to).map(h).sum();
        }
        let integral = ((to as f64).powf(1.0 - s) - (from as f64).powf(1.0 - s)) / (1.0 - s);
        integral + 0.5 * (h(from) - h(to))
    };
    let mut weights: Vec<f64> = (1..16).map(|rank| sum(rank, rank + 1)).collect();
    let mut from = 16;
    while from <= n {
        weights.push(sum(from, (2 * from).min(n + 1)));
        from *= 2;
    }
    let norm: f64 = weights.iter().sum();
    assert_eq!(weights.len(), draws.len());
    check_chi_square(&draws, |i| weights[i] / norm, "5e9 rows");
}

#[test]
fn the_nearly_normal_numbers_have_mean_0_and_variance_1() {
    let mut random = Stream::new(5, 0);
    let n = 1_000_000;
    let draws: Vec<f64> = (0..n).map(|_| normal(random.bits())).collect();
    let moment = |power| draws.iter().map(|x| x.powi(power)).sum::<f64>() / f64::from(n);
    assert!(moment(1).abs() < 0.005 && (moment(2) - 1.0).abs() < 0.01 && moment(3).abs() < 0.02);
}

#[test]
fn ranks_are_spread_over_all_rows_without_meeting() {
    for rows in (1..400).chain([1 << 16, 100_000, 99_991]) {
        for key in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let permutation = Permutation::new(rows, key);
            let mut seen = vec![false; rows as usize];
            (0..rows).for_each(|rank| seen[permutation.row(rank) as usize] = true);
            assert!(seen.iter().all(|&seen| seen), "{rows} rows, key {key}");
        }
    }
    for rows in [u64::from(u32::MAX), 1 << 32, (1 << 32) + 1, 5_000_000_000, (1 << 53) - 1] {
        let permutation = Permutation::new(rows, 77);
        let edges = (0..50_000).chain(rows - 50_000..rows);
        let seen: HashSet<u64> = edges.map(|rank| permutation.row(rank)).collect();
        assert!(seen.len() == 100_000 && seen.iter().all(|&row| row < rows), "{rows} rows");
        let mut hottest: Vec<u64> = (0..16).map(|rank| permutation.row(rank)).collect();
        hottest.sort_unstable();
        assert!(hottest.windows(2).all(|pair| pair[1] - pair[0] > rows / 100), "{hottest:?}");
    }
}

#[test]
fn a_sample_depends_on_seed_and_index_alone() {
    let options = Options { seed: 9, first: 100, rows: Some(1000), ..Options::default() };
    let mut features = tables(5, 1000);
    features[1].weighted = true;
    features[2].bag = Bag::Geometric(3.0);
    features[4].bag = Bag::Fixed(4);
    let mut whole = Batch::default();
    let mut source = make(features.clone(), options);
    assert_eq!(source.next(5000, &mut whole).expect("all samples"), 1000);
    assert_eq!(source.next(5000, &mut Batch::default()).expect("the end"), 0);
    // Four ranks of their own making, each with its quarter, in any order.
    for rank in [2, 0, 3, 1_usize] {
        let mut own = make(features.clone(), options);
        let (mut share, mut expected) = (Batch::default(), Batch::default());
        let start = 100 + 250 * rank as u64;
        own.fill(start..start + 250, &mut share, None).expect("a share");
        whole.copy_rows(250 * rank..250 * (rank + 1), &mut expected).expect("a share");
        assert_eq!((&share.dense, &share.labels), (&expected.dense, &expected.labels));
        assert_eq!(share.sparse, expected.sparse);
    }
    source.restart_at(990).expect("restart");
    let mut tail = Batch::default();
    assert_eq!(source.next(64, &mut tail).expect("the last ten"), 10);
    assert_eq!(tail.labels, whole.labels[990..]);
    let mut other = make(features, Options { seed: 10, ..options });
    other.next(1000, &mut tail).expect("other samples");
    assert_ne!(tail.sparse, whole.sparse);
    assert_eq!(check(&mut other).expect("a whole epoch"), 1000);
}

#[test]
fn bags_missing_values_and_weights_are_as_asked() {
    let mut features = tables(4, 10_000);
    features[1].bag = Bag::Fixed(7);
    features[2].bag = Bag::Geometric(2.5);
    features[3].missing = 0.3;
    features[2].weighted = true;
    let mut source = make(features, Options { dense_missing: 0.2, ..Options::default() });
    let mut batch = Batch::default();
    let rows = 50_000;
    source.next(rows, &mut batch).expect("samples");
    let bags = |f| (0..rows).map(move |sample| (f, sample));
    let missing = |f: usize| bags(f).filter(|&(f, s)| batch.sparse.bag(f, s) == [10_000]).count();
    for (f, expected) in [0.02, 0.02, 0.02, 0.3].into_iter().enumerate() {
        let share = missing(f) as f64 / rows as f64;
        assert!((share - expected).abs() < 0.01, "feature {f}: {share} missing");
    }
    assert!(bags(1).all(|(f, s)| [1, 7].contains(&batch.sparse.bag(f, s).len())));
    let ids: usize = bags(2).map(|(f, s)| batch.sparse.bag(f, s).len()).sum();
    let mean = ids as f64 / rows as f64;
    assert!((mean - (2.5 * 0.98 + 0.02)).abs() < 0.06, "{mean} ids a bag");
    assert!(bags(2).any(|(f, s)| batch.sparse.bag(f, s).is_empty()));
    let jagged = batch.sparse.as_ref();
    let weights = jagged.weights.expect("weights were asked for");
    assert!(weights[jagged.feature_range(2)].iter().all(|weight| (0.5..=1.5).contains(weight)));
    assert!(weights[jagged.feature_range(2)].windows(2).any(|pair| pair[0] != pair[1]));
    assert!(weights[jagged.feature_range(1)].iter().all(|weight| *weight == 1.0));
    assert!(jagged.values.iter().all(|id| (0..=10_000).contains(id)));
    assert!(batch.dense.iter().all(|x| *x >= 0.0 && x.is_finite()));
    let zeros = batch.dense.iter().filter(|&&x| x == 0.0).count() as f64;
    assert!(zeros > 0.2 * (rows * DENSE) as f64, "{zeros} missing dense values");
}

#[test]
fn tables_of_billions_of_rows_cost_nothing_and_hot_ids_lie_apart() {
    let rows = 5_000_000_000;
    let mut source = make(tables(3, rows), Options::default());
    let mut batch = Batch::default();
    source.next(20_000, &mut batch).expect("samples");
    for f in 0..3 {
        let mut counts: HashMap<i64, u64> = HashMap::new();
        (0..20_000).for_each(|s| *counts.entry(batch.sparse.bag(f, s)[0]).or_default() += 1);
        assert!(counts.keys().all(|&id| (0..=rows as i64).contains(&id)));
        assert!(counts.len() > 5000, "{} different ids", counts.len());
        let mut hottest: Vec<_> = counts.into_iter().collect();
        hottest.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        assert!(hottest[0].1 > 500, "the hottest id came {} times", hottest[0].1);
        assert!(hottest[..5].iter().any(|&(id, _)| id > rows as i64 / 2));
    }
}

#[test]
fn features_of_one_table_share_their_hot_ids() {
    let mut features = tables(3, 100_000);
    features[1].table = "C1".to_owned();
    let mut source = make(features, Options::default());
    let mut batch = Batch::default();
    source.next(20_000, &mut batch).expect("samples");
    let hottest = |f: usize| {
        let mut counts: HashMap<i64, u64> = HashMap::new();
        (0..20_000).for_each(|s| *counts.entry(batch.sparse.bag(f, s)[0]).or_default() += 1);
        counts.into_iter().max_by_key(|&(_, count)| count).expect("ids").0
    };
    assert_eq!(hottest(0), hottest(1));
    assert_ne!(hottest(0), hottest(2));
}

#[test]
fn the_teacher_scores_as_promised_whatever_the_tables() {
    let mut mixed = tables(8, 50);
    mixed[3].bag = Bag::Geometric(10.0);
    mixed[4].exponent = 0.0;
    for (seed, features) in
        [(0, tables(26, 100_000)), (1, mixed), (2, tables(0, 1)), (3, tables(1, 3))]
    {
        let mut source = make(features, Options { seed, ..Options::default() });
        let report = source.teacher(EVALUATION_START..EVALUATION_START + 100_000).expect("rows");
        let rate = report.positives as f64 / report.rows as f64;
        let auc = report.auc.expect("both classes");
        let entropy = report.normalized_entropy.expect("both classes");
        assert!((rate - 0.25).abs() < 0.01, "seed {seed}: base rate {rate}");
        assert!((auc - 0.80).abs() < 0.02, "seed {seed}: AUC {auc}");
        assert!((0.74..0.84).contains(&entropy), "seed {seed}: normalized entropy {entropy}");
    }
    let mut silent = make(tables(2, 10), Options { signal: 0.0, ..Options::default() });
    assert_eq!(silent.teacher(0..10_000).expect("rows").auc, Some(0.5));
}

/// Logistic regression on dense values and ids by `AdaGrad`, one sample at a time: the weakest model
/// that has a table for each feature.
struct Linear {
    rows: usize,
    weights: Vec<f32>,
    squares: Vec<f32>,
}

impl Linear {
    /// Positions of a sample's weights and its inputs: ids, then dense values, then the bias.
    fn inputs(&self, batch: &Batch, sample: usize) -> impl Iterator<Item = (usize, f32)> {
        let features = batch.sparse.names().len();
        let first_dense = features * self.rows;
        let ids = (0..features)
            .map(move |f| (f * self.rows + batch.sparse.bag(f, sample)[0] as usize, 1.0));
        let dense = (0..DENSE).map(move |j| (first_dense + j, batch.dense[sample * DENSE + j]));
        ids.chain(dense).chain([(first_dense + DENSE, 1.0)])
    }

    fn predict(&self, batch: &Batch, sample: usize) -> f32 {
        let logit: f32 = self.inputs(batch, sample).map(|(at, x)| self.weights[at] * x).sum();
        1.0 / (1.0 + (-logit).exp())
    }

    fn learn(&mut self, batch: &Batch, sample: usize) {
        let error = self.predict(batch, sample) - batch.labels[sample];
        let inputs: Vec<_> = self.inputs(batch, sample).collect();
        for (at, x) in inputs {
            let gradient = error * x;
            self.squares[at] += gradient * gradient;
            self.weights[at] -= 0.06 * gradient / (1.0 + self.squares[at]).sqrt();
        }
    }
}

#[test]
fn a_linear_model_closes_well_over_half_of_the_gap_and_does_not_close_it() {
    let (features, rows) = (26, 100_000);
    let mut source = make(tables(features, rows), Options { seed: 1, ..Options::default() });
    let rows = rows as usize + 1;
    let size = features * rows + DENSE + 1;
    let mut model = Linear { rows, weights: vec![0.0; size], squares: vec![0.0; size] };
    let mut batch = Batch::default();
    for start in (0..500_000).step_by(5000) {
        source.fill(start..start + 5000, &mut batch, None).expect("samples");
        (0..5000).for_each(|sample| model.learn(&batch, sample));
    }
    let range = EVALUATION_START..EVALUATION_START + 50_000;
    source.fill(range.clone(), &mut batch, None).expect("fresh samples");
    let scores: Vec<f32> = (0..50_000).map(|sample| model.predict(&batch, sample)).collect();
    let mut metrics = EvalMetrics::default();
    metrics.push(&scores, &batch.labels).expect("valid scores");
    let learned = metrics.finish().auc.expect("both classes");
    let best = source.teacher(range).expect("fresh samples").auc.expect("both classes");
    let closed = (learned - 0.5) / (best - 0.5);
    eprintln!("teacher AUC {best:.4}, linear model {learned:.4}: {closed:.2} of the gap");
    assert!((0.6..0.95).contains(&closed), "{closed} of the gap");
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let refuse = |features: Vec<Feature>, options: Options, expected: &str| {
        let error = Synthetic::new(features, options).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
    };
    let with = |change: fn(&mut Feature)| {
        let mut features = tables(2, 10);
        change(&mut features[1]);
        features
    };
    let default = Options::default();
    refuse(vec![], Options { base_rate: 1.0, ..default }, "base-rate = 1 is not valid");
    refuse(vec![], Options { signal: f64::NAN, ..default }, "signal = NaN");
    refuse(vec![], Options { dense_missing: -0.1, ..default }, "dense-missing = -0.1");
    refuse(vec![], Options { first: u64::MAX, ..default }, "first");
    refuse(with(|f| f.rows = 0), default, "rows of feature \"C2\" = 0");
    refuse(with(|f| f.exponent = -1.0), default, "exponent of feature \"C2\" = -1");
    refuse(with(|f| f.missing = 1.0), default, "missing of feature \"C2\" = 1");
    refuse(with(|f| f.bag = Bag::Fixed(0)), default, "bag of feature \"C2\" = 0");
    refuse(with(|f| f.bag = Bag::Geometric(-1.0)), default, "bag of feature \"C2\" = -1");
    refuse(with(|f| f.name = "C1".into()), default, "two features of this name");
    refuse(
        with(|f| {
            f.table = "C1".into();
            f.rows = 11;
        }),
        default,
        "table \"C1\" has 11 rows here, 10 elsewhere",
    );
    let mut source = make(tables(1, 10), default);
    let backwards = std::ops::Range { start: 5, end: 4 };
    assert!(source.fill(backwards, &mut Batch::default(), None).is_err());
    assert!(source.next(0, &mut Batch::default()).is_err());
}
