//! Metrics of an evaluation, collected batch by batch.

use serde::{Deserialize, Serialize};

use super::auc::auc_of_sorted;
use super::entropy::{base_entropy, check_score, term};
use super::score::{check_lengths, pack_checked};
use super::{Result, Score};

/// Collects probabilities and hard labels, a batch at a time, and measures them at the end.
///
/// The result depends on the rows alone, bit for bit: not on their order, the batches, or how
/// they were spread over ranks and merged. Keeps 8 bytes a row for `f32` scores, 16 for `f64`.
#[derive(Clone, Debug)]
pub struct EvalMetrics<S: Score = f32> {
    packed: Vec<S::Packed>,
}

/// What an evaluation found. Undefined values are `None`, JSON `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// Rows evaluated.
    pub rows: u64,
    /// Rows with label 1.
    pub positives: u64,
    /// Rows with label 0.
    pub negatives: u64,
    /// Area under the ROC curve; undefined unless both classes occur.
    pub auc: Option<f64>,
    /// Mean cross entropy in nats; undefined without rows.
    pub loss: Option<f64>,
    /// Cross entropy over the entropy of the base rate; undefined unless both classes occur.
    pub normalized_entropy: Option<f64>,
}

impl<S: Score> Default for EvalMetrics<S> {
    fn default() -> Self {
        Self { packed: Vec::new() }
    }
}

impl<S: Score> EvalMetrics<S> {
    /// Takes one batch of probabilities and labels 0 or 1. On an error it takes none of it.
    ///
    /// # Errors
    /// Different numbers of scores and labels; a score that is NaN or no probability; a label
    /// other than 0 and 1, soft ones by name.
    pub fn push(&mut self, scores: &[S], labels: &[f32]) -> Result<()> {
        check_lengths(scores.len(), labels.len())?;
        let before = self.packed.len();
        for (&score, &label) in scores.iter().zip(labels) {
            let row = self.packed.len() as u64;
            let checked =
                check_score(score.into(), row).and_then(|()| pack_checked(score, label, row));
            match checked {
                Ok(packed) => self.packed.push(packed),
                Err(error) => {
                    self.packed.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Rows collected.
    pub fn rows(&self) -> u64 {
        self.packed.len() as u64
    }

    /// The rows in their packed form, to be sent to another rank's [`extend`](Self::extend).
    pub fn packed(&self) -> &[S::Packed] {
        &self.packed
    }

    /// Takes rows from another collector's [`packed`](Self::packed).
    pub fn extend(&mut self, packed: &[S::Packed]) {
        self.packed.extend_from_slice(packed);
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.packed.clear();
    }

    /// Measures all rows collected, which stay (in sorted order).
    pub fn finish(&mut self) -> EvalReport {
        self.packed.sort_unstable();
        let auc = auc_of_sorted::<S>(&self.packed);
        let rows = self.rows();
        let (loss, normalized_entropy) = if rows == 0 {
            (None, None)
        } else {
            let loss = self.sum_of_terms() / rows as f64;
            let entropy = base_entropy(auc.positives as f64 / rows as f64);
            (Some(loss), entropy.map(|entropy| loss / entropy))
        };
        EvalReport {
            rows,
            positives: auc.positives,
            negatives: auc.negatives,
            auc: auc.value(),
            loss,
            normalized_entropy,
        }
    }

    /// Cross entropy of all rows, in sorted order.
    fn sum_of_terms(&self) -> f64 {
        self.packed
            .iter()
            .map(|&row| {
                let (score, positive) = S::unpack(row);
                term(score.into(), f64::from(u8::from(positive)))
            })
            .sum()
    }
}
