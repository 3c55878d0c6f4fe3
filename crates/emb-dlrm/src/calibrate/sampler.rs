//! Seconds of operations of many sizes, measured in turns: [`Sampler`].

use crate::Result;
use emb_comm::Collective;
use std::time::{Duration, Instant};

/// Seconds that the calls of one sample are to take together: long against the clock and against the
/// barrier before them.
const SAMPLE_SECONDS: f64 = 300e-6;

/// Most calls of one sample.
const MOST_CALLS: f64 = 256.0;

/// Fewest rounds: a median needs them.
const FEWEST_ROUNDS: usize = 5;

/// Most rounds: the median has settled.
const MOST_ROUNDS: usize = 400;

/// Times many operations in rounds, one sample of each a round, so that whatever disturbs the
/// machine for a while disturbs all of them alike.
///
/// A sample is a barrier, one call that nobody times, and calls one after the other; its time is that
/// of the slowest rank.
#[derive(Debug)]
pub(crate) struct Sampler {
    calls: Vec<u32>,
    /// `[operations][rounds]`: seconds of a call on the slowest rank.
    pub(crate) slowest: Vec<Vec<f64>>,
}

impl Sampler {
    /// Runs `work(ranks, operation)` for `0..operations` until `budget` is used up. Called by every
    /// rank; `told` is told how much is done.
    ///
    /// # Errors
    /// What `work` returns; a collective that fails.
    pub(crate) fn run<C: Collective>(
        ranks: &mut C,
        operations: usize,
        budget: Duration,
        told: &dyn Fn(f64),
        mut work: impl FnMut(&mut C, usize) -> Result<()>,
    ) -> Result<Self> {
        let begin = Instant::now();
        let mut sampler =
            Self { calls: vec![1; operations], slowest: vec![Vec::new(); operations] };
        // How long a call takes says how many make a sample.
        let mut first = sampler.round(ranks, begin, &mut work)?;
        first.truncate(operations);
        for (calls, seconds) in sampler.calls.iter_mut().zip(&first) {
            *calls = (SAMPLE_SECONDS / seconds.max(1e-9)).clamp(1.0, MOST_CALLS) as u32;
        }
        for round in 1..=MOST_ROUNDS {
            let times = sampler.round(ranks, begin, &mut work)?;
            for (all, &time) in sampler.slowest.iter_mut().zip(&times) {
                all.push(time);
            }
            // All ranks have the same numbers, and so stop in the same round.
            let used = times[operations] / budget.as_secs_f64();
            told(used.min(1.0));
            if used >= 1.0 && round >= FEWEST_ROUNDS {
                break;
            }
        }
        Ok(sampler)
    }

    /// One sample of each: seconds of a call by operation, then seconds since `begin`, of the slowest
    /// rank each.
    fn round<C: Collective>(
        &self,
        ranks: &mut C,
        begin: Instant,
        work: &mut impl FnMut(&mut C, usize) -> Result<()>,
    ) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(self.calls.len() + 1);
        for (operation, &calls) in self.calls.iter().enumerate() {
            work(ranks, operation)?;
            ranks.barrier()?;
            let start = Instant::now();
            for _ in 0..calls {
                work(ranks, operation)?;
            }
            times.push(start.elapsed().as_secs_f64() / f64::from(calls));
        }
        times.push(begin.elapsed().as_secs_f64());
        ranks.all_reduce_max(&mut times)?;
        Ok(times)
    }

    /// The median of each operation.
    pub(crate) fn medians(&self) -> Vec<f64> {
        self.slowest.iter().map(|times| median(times)).collect()
    }

    /// What each operation takes where nothing disturbs it: the first decile. Other processes only
    /// ever add time, on a busy machine to most samples, and a plan is for machines of its own.
    pub(crate) fn undisturbed(&self) -> Vec<f64> {
        self.slowest.iter().map(|times| quantile(times, 0.1)).collect()
    }
}

/// The value below which so large a part of `values` is; 0 of none.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() as f64 * part) as usize).copied().unwrap_or(0.0)
}

/// The middle of `values`; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}
