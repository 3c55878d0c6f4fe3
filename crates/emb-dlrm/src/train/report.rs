//! What a run did: [`Report`].

use super::health::Health;
use crate::config::{DeviceKind, TransportKind};
use crate::metrics::EvalReport;
use serde::Serialize;

/// What a run did.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What computed.
    pub device: DeviceKind,
    /// The same in the words of the backend.
    pub device_name: String,
    /// With ranks: what carried between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    /// Steps of the whole training, earlier runs that were loaded included.
    pub steps: u64,
    /// Steps of earlier runs that were loaded.
    pub loaded_steps: u64,
    /// Samples of the whole training.
    pub samples: u64,
    /// Mean training loss of the last 100 steps, in nats; `None` when nothing was trained.
    pub loss: Option<f64>,
    /// Training samples of this run over the seconds spent training them.
    pub samples_per_second: f64,
    /// Seconds of training, evaluation apart.
    pub seconds: f64,
    /// Lines left out under the policy `skip`, in training.
    pub skipped_rows: u64,
    /// Lines left out under the policy `skip`, in the last evaluation.
    pub skipped_eval_rows: u64,
    /// Metrics on the evaluation data, or `None` without any.
    pub eval: Option<EvalReport>,
    /// On synthetic data: AUC of the teacher that made the labels, on the same evaluation rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teacher_auc: Option<f64>,
    /// On synthetic data: normalized entropy of the teacher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teacher_normalized_entropy: Option<f64>,
    /// With ranks: what they exchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
    /// The ranks' health at the last look, where any was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// What the embedding exchanges of one rank, the one with the most bytes, came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Exchange {
    /// Ranks.
    pub world: usize,
    /// Collectives of the tables in a step.
    pub collectives_per_step: f64,
    /// Bytes that the rank took from ranks of its node, a step.
    pub intra_node_bytes_per_step: f64,
    /// Bytes that the rank took from other nodes, a step.
    pub inter_node_bytes_per_step: f64,
    /// Seconds of this run that the rank spent in them.
    pub seconds: f64,
}
