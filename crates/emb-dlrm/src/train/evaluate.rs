//! Evaluation: every row of a source once, metrics exact.

use super::trainer::{Samples, Trainer};
use crate::Result;
use crate::data::{Batch, Source};
use crate::metrics::{EvalMetrics, EvalReport, cross_entropy, normalized_entropy};
use emb_kernels::Backend;

/// `1 / (1 + exp(-logit))` in `f64`, exact to the last bits at both ends.
pub fn probability(logit: f32) -> f64 {
    let z = f64::from(logit);
    if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) }
}

/// Evaluates a model on all rows of a source, from its beginning, `batch_size` at a time.
///
/// With `soft_labels` AUC is undefined and everything else is as for hard labels.
///
/// # Errors
/// Data that can't be read, an id outside its table, a logit that is NaN.
pub fn evaluate<B: Backend>(
    trainer: &mut Trainer<B>,
    source: &mut dyn Source,
    batch_size: usize,
    soft_labels: bool,
) -> Result<EvalReport> {
    source.restart()?;
    let mut batch = Batch::default();
    let mut logits = Vec::new();
    let mut scores: Vec<f64> = Vec::new();
    let mut hard = EvalMetrics::<f64>::default();
    let mut soft = (Vec::new(), Vec::new());
    while source.next(batch_size, &mut batch)? > 0 {
        let samples =
            Samples { dense: &batch.dense, labels: &batch.labels, sparse: batch.sparse.as_ref() };
        trainer.logits(samples, &mut logits)?;
        scores.clear();
        scores.extend(logits.iter().map(|&logit| probability(logit)));
        if soft_labels {
            soft.0.extend_from_slice(&scores);
            soft.1.extend_from_slice(&batch.labels);
        } else {
            hard.push(&scores, &batch.labels)?;
        }
    }
    if soft_labels { soft_report(&soft.0, &soft.1) } else { Ok(hard.finish()) }
}

/// Labels between the classes count to neither class.
fn soft_report(scores: &[f64], labels: &[f32]) -> Result<EvalReport> {
    let count = |class: f32| labels.iter().filter(|&&label| label == class).count() as u64;
    Ok(EvalReport {
        rows: labels.len() as u64,
        positives: count(1.0),
        negatives: count(0.0),
        auc: None,
        loss: cross_entropy(scores, labels)?,
        normalized_entropy: normalized_entropy(scores, labels)?,
    })
}
