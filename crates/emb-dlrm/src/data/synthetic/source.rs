//! Synthetic samples as a source of batches.

use std::ops::Range;

use super::generator::Generator;
use super::options::{Feature, Options, check};
use super::random::Stream;
use crate::data::batch::Bags;
use crate::data::source::check_limit;
use crate::data::{Batch, Error, Result, Source, SourceInfo};
use crate::metrics::{EvalMetrics, EvalReport};

/// Samples from which the teacher's scale and bias are found.
const CALIBRATION: u64 = 1 << 14;
/// Where the indices of those samples begin: far from any others.
const CALIBRATION_START: u64 = 1 << 62;

/// Generates samples: one thread, no files, memory independent of the tables' rows.
#[derive(Clone, Debug)]
pub struct Synthetic {
    options: Options,
    names: Vec<String>,
    generator: Generator,
    scale: f64,
    bias: f64,
    position: u64,
    bags: Vec<Bags>,
    means: Vec<[f64; 2]>,
}

impl Synthetic {
    /// Prepares a generator; scale and bias of its teacher are fitted to the wanted signal and
    /// base rate on 16,384 samples of their own.
    ///
    /// # Errors
    /// An option outside its range, features that contradict each other.
    pub fn new(features: Vec<Feature>, options: Options) -> Result<Self> {
        check(&features, &options)?;
        let generator = Generator::new(&features, &options);
        let bags = vec![Bags::default(); features.len()];
        let means = vec![[0.0; 2]; features.len()];
        let names = features.into_iter().map(|feature| feature.name).collect();
        let (scale, bias, position) = (1.0, 0.0, 0);
        let mut synthetic = Self { options, names, generator, scale, bias, position, bags, means };
        synthetic.calibrate();
        Ok(synthetic)
    }

    /// Makes the samples with these indices, whatever was read before.
    ///
    /// With `probabilities`, the teacher's probability of each sample is written there.
    ///
    /// # Errors
    /// A range that ends before it begins.
    pub fn fill(
        &mut self,
        indices: Range<u64>,
        batch: &mut Batch,
        mut probabilities: Option<&mut Vec<f64>>,
    ) -> Result<usize> {
        if indices.start > indices.end {
            let (option, value) = ("range of samples".to_owned(), format!("{indices:?}"));
            return Err(Error::Option { option, value, valid: "one that ends after it begins" });
        }
        batch.dense.clear();
        batch.labels.clear();
        self.bags.iter_mut().for_each(Bags::clear);
        if let Some(probabilities) = &mut probabilities {
            probabilities.clear();
        }
        let rows = (indices.end - indices.start) as usize;
        for index in indices {
            let mut random = Stream::new(self.options.seed, index);
            let logit =
                self.generator.draw(&mut random, &mut batch.dense, &mut self.bags, &mut self.means);
            let probability = sigmoid(self.bias + self.scale * logit);
            batch.labels.push(f32::from(random.uniform() < probability));
            if let Some(probabilities) = &mut probabilities {
                probabilities.push(probability);
            }
        }
        batch.refill(rows, &self.names, &self.bags, self.generator.weighted())?;
        Ok(rows)
    }

    /// What the teacher itself scores on the samples with these indices: the best any model can.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    ///
    /// # Panics
    /// Never: the teacher's probabilities and drawn labels are valid.
    pub fn teacher(&mut self, indices: Range<u64>) -> Result<EvalReport> {
        let mut metrics = EvalMetrics::<f64>::default();
        let (mut batch, mut probabilities) = (Batch::default(), Vec::new());
        let mut start = indices.start;
        while start < indices.end {
            let end = indices.end.min(start + 4096);
            self.fill(start..end, &mut batch, Some(&mut probabilities))?;
            metrics
                .push(&probabilities, &batch.labels)
                .expect("invariant: probabilities and drawn labels are valid");
            start = end;
        }
        Ok(metrics.finish())
    }

    /// The options it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Scales the logit to the wanted deviation, then shifts it to the wanted base rate.
    fn calibrate(&mut self) {
        let mut dense = Vec::new();
        let mut logits = Vec::with_capacity(CALIBRATION as usize);
        for index in CALIBRATION_START..CALIBRATION_START + CALIBRATION {
            dense.clear();
            self.bags.iter_mut().for_each(Bags::clear);
            let mut random = Stream::new(self.options.seed, index);
            let Self { generator, bags, means, .. } = self;
            logits.push(generator.draw(&mut random, &mut dense, bags, means));
        }
        let n = logits.len() as f64;
        let mean = logits.iter().sum::<f64>() / n;
        let variance = logits.iter().map(|logit| (logit - mean).powi(2)).sum::<f64>() / n;
        self.scale = self.options.signal / variance.sqrt();
        let rate = |bias: f64| {
            logits.iter().map(|logit| sigmoid(bias + self.scale * logit)).sum::<f64>() / n
        };
        // The rate grows with the bias: halve an interval that contains it.
        let reach = 40.0 + self.scale * logits.iter().fold(0.0_f64, |max, x| max.max(x.abs()));
        let (mut low, mut high) = (-reach, reach);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if rate(middle) < self.options.base_rate {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.bias = 0.5 * (low + high);
    }
}

impl Source for Synthetic {
    fn next(&mut self, limit: usize, batch: &mut Batch) -> Result<usize> {
        check_limit(limit)?;
        let left = self.options.rows.map_or(u64::MAX, |rows| rows.saturating_sub(self.position));
        let rows = left.min(limit as u64);
        let start = self.options.first.saturating_add(self.position);
        self.position = self.position.saturating_add(rows);
        self.fill(start..start.saturating_add(rows), batch, None)
    }

    fn restart_at(&mut self, row: u64) -> Result<()> {
        self.position = row;
        Ok(())
    }

    fn describe(&self) -> SourceInfo {
        SourceInfo { kind: "synthetic", files: Vec::new(), rows: self.options.rows }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
