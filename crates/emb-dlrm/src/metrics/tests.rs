//! Metrics against oracles, golden values and the cases that are undefined.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use safetensors::SafeTensors;

use super::*;

/// AUC by looking at every pair: twice the wins plus ties, and the pairs.
fn pairs(scores: &[f64], labels: &[f32]) -> (u128, u128) {
    let (mut doubled, mut pairs) = (0, 0);
    for (&a, _) in scores.iter().zip(labels).filter(|&(_, &label)| label == 1.0) {
        for (&b, _) in scores.iter().zip(labels).filter(|&(_, &label)| label == 0.0) {
            doubled += if a > b { 2 } else { u128::from(a == b) };
            pairs += 1;
        }
    }
    (doubled, pairs)
}

proptest! {
    #[test]
    fn auc_counts_every_pair(
        rows in proptest::collection::vec(
            (prop_oneof![Just(0.5), Just(-0.0), Just(0.0), -1.0..1.0, any::<f64>()], any::<bool>()),
            0..120,
        ),
    ) {
        let scores: Vec<f64> = rows.iter().map(|row| if row.0.is_nan() { 0.25 } else { row.0 }).collect();
        let labels: Vec<f32> = rows.iter().map(|row| f32::from(row.1)).collect();
        let (doubled, pairs) = pairs(&scores, &labels);
        let auc = auc(&scores, &labels).expect("valid rows");
        prop_assert_eq!(auc.doubled_wins, doubled);
        match auc.value() {
            None => prop_assert_eq!(pairs, 0),
            Some(value) => prop_assert!((value - doubled as f64 / (2 * pairs) as f64).abs() < 1e-15),
        }
    }

    #[test]
    fn packing_keeps_score_label_and_order(a in any::<f32>(), b in any::<f32>(), positive: bool) {
        prop_assume!(!a.is_nan() && !b.is_nan());
        let (x, y) = (a.pack(positive), b.pack(positive));
        prop_assert_eq!(f32::unpack(x), (a + 0.0, positive));
        prop_assert_eq!(x.cmp(&y), a.partial_cmp(&b).expect("no NaN"));
        prop_assert_eq!(f32::ties(a.pack(true), b.pack(false)), a == b);
    }

    #[test]
    fn order_batches_and_ranks_do_not_change_a_bit(
        rows in proptest::collection::vec((0.0..=1.0_f32, any::<bool>()), 1..200),
        ranks in 1..5_usize,
    ) {
        let report = |parts: &mut dyn Iterator<Item = (f32, bool)>, ranks: usize| {
            let mut collectors = vec![EvalMetrics::<f32>::default(); ranks];
            for (i, (score, label)) in parts.enumerate() {
                collectors[i % ranks].push(&[score], &[f32::from(label)]).expect("valid");
            }
            let mut all = EvalMetrics::<f32>::default();
            for part in &collectors {
                all.extend(part.packed());
            }
            all.finish()
        };
        let expected = report(&mut rows.iter().copied(), 1);
        prop_assert_eq!(report(&mut rows.iter().rev().copied(), ranks), expected);
    }
}

#[test]
fn golden_auc_and_normalized_entropy() {
    let folder = std::env::var_os("EMB_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
        PathBuf::from,
    );
    let Ok(bytes) = std::fs::read(folder.join("metrics.safetensors")) else {
        eprintln!("skipped: no metrics.safetensors in {}; set EMB_VECTORS", folder.display());
        return;
    };
    let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let numbers = |name: &str| -> Vec<[u8; 8]> {
        let tensor = file.tensor(name).expect("the tensor");
        tensor.data().as_chunks::<8>().0.to_vec()
    };
    let scores: Vec<f64> = numbers("score").into_iter().map(f64::from_le_bytes).collect();
    let labels: Vec<f32> =
        numbers("label").into_iter().map(|bytes| i64::from_le_bytes(bytes) as f32).collect();
    let golden = |name| f64::from_le_bytes(numbers(name)[0]);

    let mut metrics = EvalMetrics::<f64>::default();
    for (scores, labels) in scores.chunks(77).zip(labels.chunks(77)) {
        metrics.push(scores, labels).expect("valid rows");
    }
    let report = metrics.finish();
    assert_eq!(report.rows, scores.len() as u64);
    let auc = report.auc.expect("both classes");
    assert!((auc - golden("auc")).abs() < 1e-6, "{auc} {}", golden("auc"));
    let (doubled, pairs) = pairs(&scores, &labels);
    assert!((auc - doubled as f64 / (2 * pairs) as f64).abs() < 1e-12);
    let expected = golden("normalized_entropy");
    for entropy in [report.normalized_entropy, normalized_entropy(&scores, &labels).expect("valid")]
    {
        let entropy = entropy.expect("both classes");
        assert!((entropy - expected).abs() < 1e-9, "{entropy} {expected}");
    }
}

#[test]
fn u39_auc_is_undefined_where_one_class_is_absent() {
    for (labels, counts) in [(vec![1.0; 3], (3, 0)), (vec![0.0; 2], (0, 2)), (vec![], (0, 0))] {
        let scores = vec![0.5_f32; labels.len()];
        let mut metrics = EvalMetrics::default();
        metrics.push(&scores, &labels).expect("valid rows");
        let report = metrics.finish();
        assert_eq!((report.positives, report.negatives), counts);
        assert_eq!((report.auc, report.normalized_entropy), (None, None));
        assert_eq!(report.loss.is_none(), labels.is_empty());
        assert_eq!(auc(&scores, &labels).expect("valid rows").value(), None);
        let json = serde_json::to_value(report).expect("a report serialises");
        assert!(json["auc"].is_null(), "{json}");
        let back: EvalReport = serde_json::from_value(json).expect("and back");
        assert_eq!(back, report);
    }
}

#[test]
fn u39_ties_count_one_half() {
    let value = |scores: &[f32], labels: &[f32]| auc(scores, labels).expect("valid").value();
    assert_eq!(value(&[0.5, 0.5], &[1.0, 0.0]), Some(0.5));
    assert_eq!(value(&[0.2, 0.8], &[1.0, 0.0]), Some(0.0));
    assert_eq!(value(&[0.8, 0.2], &[1.0, 0.0]), Some(1.0));
    assert_eq!(value(&[0.0, -0.0], &[1.0, 0.0]), Some(0.5));
    assert_eq!(value(&[f32::INFINITY, f32::NEG_INFINITY, 0.0], &[1.0, 0.0, 0.0]), Some(1.0));
}

#[test]
fn u39_ranks_of_one_class_together_equal_one_process() {
    let rows = [(0.9, 1.0), (0.4, 1.0), (0.3, 0.0), (0.6, 0.0), (0.6, 1.0), (0.1, 0.0)];
    let mut one = EvalMetrics::<f32>::default();
    for (score, label) in rows {
        one.push(&[score], &[label]).expect("valid");
    }
    // Ranks 0 and 1 hold positives only, rank 2 negatives only, rank 3 both.
    let mut all = EvalMetrics::<f32>::default();
    for rank in [&rows[..1], &rows[1..2], &rows[2..4], &rows[4..]] {
        let mut own = EvalMetrics::<f32>::default();
        for &(score, label) in rank {
            own.push(&[score], &[label]).expect("valid");
        }
        all.extend(own.packed());
    }
    assert_eq!(all.finish(), one.finish());
    // Pairs won by 0.9: 3; by 0.4: 2; by 0.6: 2 and one tie.
    assert_eq!(one.finish().auc, Some(7.5 / 9.0));
}

#[test]
fn u39_bad_scores_and_labels_are_refused_with_their_row() {
    let mut metrics = EvalMetrics::<f32>::default();
    metrics.push(&[0.1, 0.2], &[0.0, 1.0]).expect("valid rows");
    let mut refuse = |scores: &[f32], labels: &[f32], expected: &str| {
        let error = metrics.push(scores, labels).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        assert_eq!(metrics.rows(), 2, "a refused batch leaves nothing");
    };
    refuse(&[0.5, f32::NAN], &[1.0, 1.0], "score of row 3 is NaN");
    refuse(&[1.5], &[1.0], "the score 1.5 of row 2 is not a probability");
    refuse(&[0.5], &[2.0], "the label 2 of row 2");
    refuse(&[0.5], &[f32::NAN], "the label NaN of row 2");
    refuse(&[0.5], &[], "1 scores and 0 labels");
    refuse(&[0.5], &[0.3], "is soft: AUC is defined for labels 0 and 1 only");
    assert_eq!(auc(&[f64::NAN], &[1.0]), Err(Error::NanScore { row: 0 }));
    assert_eq!(auc(&[0.5_f32], &[0.3]), Err(Error::SoftLabel { row: 0, label: 0.3 }));
    assert!(matches!(cross_entropy(&[f32::NAN], &[1.0]), Err(Error::NanScore { row: 0 })));
}

#[test]
fn u38_soft_labels_have_a_cross_entropy() {
    // Logit 1 against label 0.3: softplus(1) - 0.3 = 1.013262.
    let score = 1.0 / (1.0 + (-1.0_f64).exp());
    let loss = cross_entropy(&[score], &[0.3]).expect("valid").expect("a row");
    assert!((loss - 1.013_262).abs() < 1e-6, "{loss}");
    // Scores of exactly 0 and 1 stay finite.
    let loss = cross_entropy(&[0.0_f64, 1.0], &[1.0, 0.0]).expect("valid").expect("rows");
    assert!((loss + 1e-6_f64.ln()).abs() < 1e-9, "{loss}");
    assert_eq!(cross_entropy::<f32>(&[], &[]).expect("valid"), None);
    assert_eq!(normalized_entropy(&[0.5_f32], &[1.0]).expect("valid"), None);
}

#[test]
fn guessing_the_base_rate_has_normalized_entropy_1() {
    let labels: Vec<f32> = (0..1000).map(|i| f32::from(i % 4 == 0)).collect();
    let entropy = normalized_entropy(&vec![0.25_f64; 1000], &labels).expect("valid");
    assert!((entropy.expect("both classes") - 1.0).abs() < 1e-12);
}
