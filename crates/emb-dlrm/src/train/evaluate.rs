//! Evaluation: every row of a source once, metrics exact.

use super::gather::to_first;
use super::trainer::{Samples, Trainer};
use crate::data::{Feed, Share, share};
use crate::metrics::{EvalMetrics, EvalReport, cross_entropy, normalized_entropy};
use crate::{Embeddings, Error, Result};
use emb_comm::Collective;
use emb_kernels::Backend;

/// `1 / (1 + exp(-logit))` in `f64`, exact to the last bits at both ends.
pub fn probability(logit: f32) -> f64 {
    let z = f64::from(logit);
    if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) }
}

/// Evaluates a model on all rows of the data, from its beginning, each row once on one rank.
/// Returns the metrics on rank 0. Replicas of tables have to be equal.
///
/// With `soft_labels` AUC is undefined and everything else is as for hard labels.
///
/// # Errors
/// Data that can't be read, an id outside its table, a logit that is NaN (by row); a peer that fails.
pub fn evaluate<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
    trainer: &mut Trainer<B, E, C>,
    data: &mut Feed,
    soft_labels: bool,
) -> Result<Option<EvalReport>> {
    if let Err(error) = data.restart_at(0) {
        return Err(unread(trainer, data, 0, error));
    }
    let (rank, world) = (trainer.ranks().rank(), trainer.ranks().world());
    let mut logits = Vec::new();
    let mut scores: Vec<f64> = Vec::new();
    let mut hard = EvalMetrics::<f64>::default();
    let mut soft = (Vec::new(), Vec::new());
    let mut rows = 0;
    loop {
        let next = match data.next() {
            Ok(next) => next,
            Err(error) => return Err(unread(trainer, data, rows, error)),
        };
        let Some(Share { batch, rows: all, seen, .. }) = next else { break };
        trainer.compare_reads("evaluation", seen, rows + all as u64, None)?;
        let samples =
            Samples { dense: &batch.dense, labels: &batch.labels, sparse: batch.sparse.as_ref() };
        trainer.logits(samples, &mut logits)?;
        if let Some(at) = logits.iter().position(|logit| logit.is_nan()) {
            let row = rows + (share(all, world, rank).start + at) as u64;
            return Err(crate::metrics::Error::NanScore { row }.into());
        }
        scores.clear();
        scores.extend(logits.iter().map(|&logit| probability(logit)));
        if soft_labels {
            soft.0.extend_from_slice(&scores);
            soft.1.extend_from_slice(&batch.labels);
        } else {
            hard.push(&scores, &batch.labels)?;
        }
        rows += all as u64;
    }
    trainer.compare_reads("evaluation", data.seen(), rows, None)?;
    let ranks = trainer.ranks();
    if soft_labels {
        let scores = to_first(ranks, &soft.0)?;
        let labels = to_first(ranks, &soft.1)?;
        let both = scores.zip(labels);
        return both.map(|((scores, _), (labels, _))| soft_report(&scores, &labels)).transpose();
    }
    if world == 1 {
        return Ok(Some(hard.finish()));
    }
    let halves: Vec<u64> =
        hard.packed().iter().flat_map(|&row| [row as u64, (row >> 64) as u64]).collect();
    Ok(to_first(ranks, &halves)?.map(|(halves, _)| {
        let mut all = EvalMetrics::<f64>::default();
        let whole = |pair: &[u64]| u128::from(pair[0]) | u128::from(pair[1]) << 64;
        all.extend(&halves.chunks_exact(2).map(whole).collect::<Vec<_>>());
        all.finish()
    }))
}

/// What becomes of an evaluation whose data can't be read: where others can, that is told.
fn unread<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
    trainer: &mut Trainer<B, E, C>,
    data: &Feed,
    rows: u64,
    error: crate::data::Error,
) -> Error {
    let compared = trainer.compare_reads("evaluation", data.seen(), rows, Some(&error));
    compared.err().unwrap_or_else(|| error.into())
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
