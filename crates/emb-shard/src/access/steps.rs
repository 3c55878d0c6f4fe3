//! Rows in steps of equal probability: uniform access and histograms.

use super::Histogram;

/// Rows of equal probability. Rows behind the last step are never looked up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Steps(Vec<Step>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// First frequency rank.
    start: u64,
    rows: u64,
    /// Probability of one row.
    probability: f64,
    /// Probability of all rows before.
    before: f64,
}

impl Steps {
    pub(super) fn uniform(rows: u64) -> Self {
        Self(vec![Step { start: 0, rows, probability: 1.0 / rows as f64, before: 0.0 }])
    }

    pub(super) fn of(histogram: &Histogram) -> Self {
        let all = histogram.lookups() as f64;
        let (mut start, mut before) = (0, 0_u64);
        let mut steps = Vec::new();
        for bucket in histogram.buckets().iter().filter(|bucket| bucket.lookups > 0) {
            let probability = bucket.lookups as f64 / all / bucket.rows as f64;
            steps.push(Step { start, rows: bucket.rows, probability, before: before as f64 / all });
            start += bucket.rows;
            before += bucket.lookups;
        }
        Self(steps)
    }

    pub(super) fn probability(&self, rank: u64) -> f64 {
        let step = self.0.iter().rfind(|step| step.start <= rank);
        step.filter(|step| rank - step.start < step.rows).map_or(0.0, |step| step.probability)
    }

    pub(super) fn share_of_top(&self, rows: u64) -> f64 {
        let Some(step) = self.0.iter().rfind(|step| step.start < rows) else { return 0.0 };
        let inside = (rows - step.start).min(step.rows);
        (step.before + inside as f64 * step.probability).min(1.0)
    }

    /// Rows that are looked up at all.
    pub(super) fn rows(&self) -> u64 {
        self.0.last().map_or(0, |step| step.start + step.rows)
    }

    /// Sum over the ranks `start..end` of `touched(probability)`.
    pub(super) fn sum(&self, start: u64, end: u64, touched: impl Fn(f64) -> f64) -> f64 {
        let term = |step: &Step| {
            let rows = end.min(step.start + step.rows).saturating_sub(start.max(step.start));
            if rows == 0 { 0.0 } else { rows as f64 * touched(step.probability) }
        };
        self.0.iter().map(term).sum()
    }
}
