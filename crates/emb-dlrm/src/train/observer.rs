//! What a run tells while it runs.

use super::health::Health;
use super::trainer::Rates;
use crate::metrics::EvalReport;

/// Something that happened in a run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Training is about to begin.
    Start {
        /// Steps to do, where known.
        steps: Option<u64>,
        /// Learning rates of the first step.
        rates: Rates,
    },
    /// One step was done.
    Step {
        /// Steps done.
        step: u64,
        /// Samples trained on.
        samples: u64,
        /// Sum of losses of this step.
        loss_sum: f64,
        /// Samples of this step.
        rows: usize,
        /// Positive labels (or their sum) of this step.
        positives: f64,
        /// Learning rates of this step.
        rates: Rates,
    },
    /// An evaluation was done.
    Evaluated {
        /// Steps done.
        step: u64,
        /// Its result.
        report: &'a EvalReport,
    },
    /// The ranks' health was looked at.
    Health(&'a Health),
    /// A checkpoint is complete.
    Saved {
        /// Steps done.
        step: u64,
        /// Bytes of its tensors.
        bytes: u64,
        /// Bytes of memory through which they were written.
        memory: u64,
        /// Seconds that it took.
        seconds: f64,
    },
}

/// Receives events; the program shows them, tests count them.
pub trait Observer {
    /// Called for every event, on the thread that trains.
    fn event(&mut self, event: Event<'_>);
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _event: Event<'_>) {}
}
