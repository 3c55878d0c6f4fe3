//! Quality of scores: exact AUC, cross entropy and normalized entropy.
//!
//! ```
//! use emb_dlrm::metrics::EvalMetrics;
//! let mut metrics = EvalMetrics::default();
//! metrics.push(&[0.2_f32, 0.7, 0.4], &[0.0, 1.0, 1.0])?;
//! let report = metrics.finish();
//! assert_eq!(report.auc, Some(1.0));
//! assert_eq!((report.positives, report.rows), (2, 3));
//! # Ok::<(), emb_dlrm::metrics::Error>(())
//! ```

mod auc;
mod collect;
mod entropy;
mod error;
mod score;

#[cfg(test)]
mod tests;

pub use auc::{Auc, auc};
pub use collect::{EvalMetrics, EvalReport};
pub use entropy::{SCORE_MARGIN, cross_entropy, normalized_entropy};
pub use error::Error;
pub use score::Score;

/// The result of every fallible call of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;
