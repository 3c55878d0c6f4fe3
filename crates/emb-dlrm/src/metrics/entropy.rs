//! Cross entropy and normalized entropy.

use super::score::check_lengths;
use super::{Error, Result};

/// Scores are kept this far from 0 and 1 before a logarithm is taken.
pub const SCORE_MARGIN: f64 = 1e-6;

/// Mean cross entropy in nats of probabilities against labels from 0 to 1, soft ones included:
/// `-(1/n) sum_i [y ln p + (1 - y) ln(1 - p)]` with `p` clamped to `[1e-6, 1 - 1e-6]`.
///
/// `None` without rows.
///
/// # Errors
/// Different numbers of scores and labels, a score or a label that is not from 0 to 1.
pub fn cross_entropy<S: Copy + Into<f64>>(scores: &[S], labels: &[f32]) -> Result<Option<f64>> {
    check_lengths(scores.len(), labels.len())?;
    let mut sum = 0.0;
    for (row, (&score, &label)) in scores.iter().zip(labels).enumerate() {
        let score = score.into();
        check_score(score, row as u64)?;
        if !(0.0..=1.0).contains(&label) {
            return Err(Error::LabelRange { row: row as u64, label });
        }
        sum += term(score, f64::from(label));
    }
    Ok((!scores.is_empty()).then(|| sum / scores.len() as f64))
}

/// Cross entropy over the entropy of the base rate (He et al., "Practical lessons from predicting
/// clicks on ads at Facebook", 2014): 1 for always guessing the base rate, less for better scores.
///
/// `None` where it is undefined: no rows, or a base rate of 0 or 1.
///
/// # Errors
/// As [`cross_entropy`].
pub fn normalized_entropy<S: Copy + Into<f64>>(
    scores: &[S],
    labels: &[f32],
) -> Result<Option<f64>> {
    let Some(loss) = cross_entropy(scores, labels)? else { return Ok(None) };
    let positives: f64 = labels.iter().map(|&label| f64::from(label)).sum();
    Ok(base_entropy(positives / labels.len() as f64).map(|entropy| loss / entropy))
}

/// One row's cross entropy; the probability is clamped.
#[inline]
pub(crate) fn term(score: f64, label: f64) -> f64 {
    let p = score.clamp(SCORE_MARGIN, 1.0 - SCORE_MARGIN);
    if label == 1.0 {
        -p.ln()
    } else if label == 0.0 {
        -(1.0 - p).ln()
    } else {
        -(label * p.ln() + (1.0 - label) * (1.0 - p).ln())
    }
}

/// Entropy of a coin in nats, or `None` for one that always falls the same way.
pub(crate) fn base_entropy(rate: f64) -> Option<f64> {
    (rate > 0.0 && rate < 1.0).then(|| -(rate * rate.ln() + (1.0 - rate) * (1.0 - rate).ln()))
}

/// Refuses NaN and what is no probability, such as a logit.
#[inline]
pub(crate) fn check_score(score: f64, row: u64) -> Result<()> {
    if (0.0..=1.0).contains(&score) {
        Ok(())
    } else if score.is_nan() {
        Err(Error::NanScore { row })
    } else {
        Err(Error::ScoreRange { row, score })
    }
}
