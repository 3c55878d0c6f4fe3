//! The area under the ROC curve, in integers.

use super::score::{check_lengths, pack_checked};
use super::{Result, Score};

/// The exact area under the ROC curve as a fraction of integers.
///
/// AUC is the Mann-Whitney statistic: the share of pairs of one positive and one negative whose
/// positive has the higher score, equal scores counting one half (J. A. Hanley and B. J. `McNeil`,
/// "The meaning and use of the area under a receiver operating characteristic (ROC) curve", 1982).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auc {
    /// Rows with label 1.
    pub positives: u64,
    /// Rows with label 0.
    pub negatives: u64,
    /// Twice the pairs that the positive wins, plus the pairs with equal scores.
    pub doubled_wins: u128,
}

impl Auc {
    /// `doubled_wins / (2 * positives * negatives)`, or `None`, undefined, where one class is
    /// absent.
    pub fn value(&self) -> Option<f64> {
        let pairs = u128::from(self.positives) * u128::from(self.negatives);
        (pairs > 0).then(|| self.doubled_wins as f64 / (2.0 * pairs as f64))
    }
}

/// Counts the pairs of `scores` and hard `labels` in `O(n log n)`.
///
/// # Errors
/// Different numbers of scores and labels, a NaN score, a label other than 0 and 1.
pub fn auc<S: Score>(scores: &[S], labels: &[f32]) -> Result<Auc> {
    check_lengths(scores.len(), labels.len())?;
    let mut packed = scores
        .iter()
        .zip(labels)
        .enumerate()
        .map(|(row, (&score, &label))| pack_checked(score, label, row as u64))
        .collect::<Result<Vec<_>>>()?;
    packed.sort_unstable();
    Ok(auc_of_sorted::<S>(&packed))
}

/// Counts the pairs of packed rows in ascending order.
///
/// Going up through groups of equal scores, each positive of a group beats the negatives of all
/// groups below and ties with those of its own.
pub(crate) fn auc_of_sorted<S: Score>(sorted: &[S::Packed]) -> Auc {
    let mut counts = Auc { positives: 0, negatives: 0, doubled_wins: 0 };
    for group in sorted.chunk_by(|&a, &b| S::ties(a, b)) {
        let positives = group.iter().filter(|&&row| S::unpack(row).1).count() as u64;
        let negatives = group.len() as u64 - positives;
        counts.doubled_wins += u128::from(positives) * u128::from(2 * counts.negatives + negatives);
        counts.positives += positives;
        counts.negatives += negatives;
    }
    counts
}
