//! From what all ranks measured to what is said of it: [`Judge`].

use super::advice::{Situation, advice};
use super::measure::Figures;
use super::prediction::Prediction;
use super::slowest::slowest;
use super::{Bytes, Exposed, Health, Levels};
use crate::Result;
use crate::config::{Config, Ranks, is_planned};
use crate::profile::workload_of;
use crate::sharded::IdWire;
use emb_shard::{Plan, WorkloadSpec};

/// What rank 0 knows beyond the figures.
#[derive(Debug)]
pub(super) struct Judge {
    plan: Plan,
    /// Samples of a step.
    batch: f64,
    /// Whether ids travel in few bits.
    packed: bool,
    /// Whether a file or a planner says where tables live.
    planned: bool,
    /// The tables of the run as a workload; `None` where one can't hold them.
    spec: Option<WorkloadSpec>,
    prediction: Option<Prediction>,
    /// Why ranks also wait for cores, where they do.
    crowded: Option<String>,
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
        let (plan, batch) = (ranks.plan.clone(), config.batch_size as f64);
        let packed = ranks.id_wire == IdWire::Packed;
        let crowded = crowded(config.local.unwrap_or(ranks.world()) * config.threads);
        let planned = is_planned(&config.options);
        Ok(Self { plan, batch, packed, planned, spec, prediction, crowded })
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
        let prediction = self.prediction.as_ref();
        // Exchanges move bytes by the sample; the last batch of an epoch may be short.
        let whole = samples / (at.steps as f64 * self.batch);
        let scaled =
            |levels: Levels| Levels::new([levels.intra_node * whole, levels.inter_node * whole]);
        let exchange = prediction.and_then(|prediction| prediction.exchange).map(scaled);
        // How few bits ids take depends on which they are.
        let exchange = exchange.filter(|_| !self.packed);
        let sync = prediction.and_then(|prediction| prediction.sync);
        let mut health = Health {
            step: at.step,
            steps: at.steps,
            step_seconds: mean(ranks, |rank| rank.step),
            exposed: exposed(ranks),
            waiting: share(ranks, |rank| rank.wait),
            slowest: slowest(ranks),
            exchange_bytes: bytes(ranks, |rank| rank.exchange_bytes, exchange),
            sync_bytes: bytes(ranks, |rank| rank.sync_bytes, sync),
            advice: Vec::new(),
        };
        let expected = prediction.map_or(&[][..], |prediction| &prediction.lookups);
        let (plan, lookups) = (&self.plan, &lookups[..]);
        let planned = self.planned;
        let situation = Situation { plan, planned, ranks, lookups, expected, samples };
        health.advice = advice(&health, &situation);
        health.advice.extend(self.crowded.clone());
        health
    }
}

/// What is to be kept in mind where so many threads compute on fewer cores.
fn crowded(threads: usize) -> Option<String> {
    let cores = std::thread::available_parallelism().map_or(threads, std::num::NonZero::get);
    (threads > cores)
        .then(|| format!("{threads} threads share {cores} cores: waiting is for cores too"))
}

fn mean(ranks: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    ranks.iter().map(of).sum::<f64>() / ranks.len().max(1) as f64
}

/// Of the time of all ranks' steps.
fn share(ranks: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    mean(ranks, of) / mean(ranks, |rank| rank.step).max(f64::MIN_POSITIVE)
}

fn exposed(ranks: &[Figures]) -> Exposed {
    Exposed {
        exchange: share(ranks, |rank| rank.exchange),
        sync: share(ranks, |rank| rank.sync),
        loss: share(ranks, |rank| rank.loss),
        dense_sums: share(ranks, |rank| rank.dense),
    }
}

fn bytes(ranks: &[Figures], of: fn(&Figures) -> [f64; 2], planned: Option<Levels>) -> Bytes {
    let counted = Levels::new([0, 1].map(|level| mean(ranks, |rank| of(rank)[level])));
    Bytes { counted: counted.total().is_finite().then_some(counted), planned }
}
