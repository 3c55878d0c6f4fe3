//! From what all ranks measured to what is said of it: [`Judge`].

use super::advice::{Situation, advice};
use super::measure::Figures;
use super::prediction::Prediction;
use super::slowest::slowest;
use super::{Bytes, Exposed, Health, Levels};
use crate::Result;
use crate::config::{Config, Ranks};
use crate::profile::workload_of;
use emb_shard::{Plan, WorkloadSpec};

/// What rank 0 knows beyond the figures.
#[derive(Debug)]
pub(super) struct Judge {
    plan: Plan,
    /// Samples of a step.
    batch: f64,
    /// The tables of the run as a workload; `None` where one can't hold them.
    spec: Option<WorkloadSpec>,
    prediction: Option<Prediction>,
}

/// The steps that a look is at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked<'a> {
    pub(super) step: u64,
    pub(super) steps: u64,
    /// Samples of all ranks.
    pub(super) samples: u64,
    /// Look-ups of all ranks, by table.
    pub(super) lookups: &'a [f64],
    /// Whether syncs and exchanges are told apart.
    pub(super) apart: bool,
}

impl Judge {
    /// # Errors
    /// Look-ups that were measured for other tables.
    pub(super) fn new(config: &Config, ranks: &Ranks) -> Result<Self> {
        let spec = workload_of(config, &config.planned_tables()?).ok();
        let prediction = match (&config.workload, &spec) {
            (Some(measured), Some(spec)) => {
                Some(Prediction::of_workload(&ranks.plan, spec.clone(), measured)?)
            }
            _ => None,
        };
        Ok(Self { plan: ranks.plan.clone(), batch: config.batch_size as f64, spec, prediction })
    }

    pub(super) fn look(&mut self, at: Looked<'_>, ranks: &[Figures]) -> Health {
        let samples = (at.samples as f64).max(1.0);
        let lookups: Vec<f64> = at.lookups.iter().map(|lookups| lookups / samples).collect();
        if self.prediction.is_none()
            && let Some(spec) = &self.spec
        {
            // What the first look counts is what later ones should find again.
            self.prediction = Prediction::of_lookups(&self.plan, spec.clone(), &lookups).ok();
        }
        let prediction = self.prediction.as_ref().filter(|_| at.apart);
        // Exchanges move bytes by the sample; the last batch of an epoch may be short.
        let whole = samples / (at.steps as f64 * self.batch);
        let scaled =
            |levels: Levels| Levels::new([levels.intra_node * whole, levels.inter_node * whole]);
        let mean = |of: &dyn Fn(&Figures) -> f64| {
            ranks.iter().map(of).sum::<f64>() / ranks.len().max(1) as f64
        };
        let counted = |of: fn(&Figures) -> [f64; 2]| {
            let levels = Levels::new([0, 1].map(|level| mean(&|rank| of(rank)[level])));
            levels.total().is_finite().then_some(levels)
        };
        let seconds = mean(&|rank| rank.step);
        let share =
            |of: fn(&Figures) -> f64| mean(&|rank| of(rank)) / seconds.max(f64::MIN_POSITIVE);
        let mut health = Health {
            step: at.step,
            steps: at.steps,
            step_seconds: seconds,
            exposed: Exposed {
                exchange: share(|rank| rank.exchange),
                sync: share(|rank| rank.sync),
                loss: share(|rank| rank.loss),
                dense_sums: share(|rank| rank.dense),
            },
            waiting: share(|rank| rank.wait),
            slowest: slowest(ranks),
            exchange_bytes: Bytes {
                counted: counted(|rank| rank.exchange_bytes),
                planned: prediction.and_then(|prediction| prediction.exchange).map(scaled),
            },
            sync_bytes: Bytes {
                counted: counted(|rank| rank.sync_bytes),
                planned: prediction.and_then(|prediction| prediction.sync),
            },
            advice: Vec::new(),
        };
        let expected = prediction.map_or(&[][..], |prediction| &prediction.lookups);
        let (plan, lookups) = (&self.plan, &lookups[..]);
        let situation = Situation { plan, ranks, lookups, expected, samples };
        health.advice = advice(&health, &situation);
        health
    }
}
