//! Draws one sample.

use super::options::{Bag, Feature, Options};
use super::permutation::Permutation;
use super::random::{Stream, key, mix, normal};
use super::teacher::{Teacher, effects};
use super::zipf::Zipf;
use crate::data::DENSE;
use crate::data::batch::Bags;

/// Everything a sample depends on but its index.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    options: Options,
    dense: [DenseColumn; DENSE],
    features: Vec<SparseFeature>,
    teacher: Teacher,
    /// Whether any feature is weighted, so that the batch has weights.
    weighted: bool,
}

/// Dense values are `ln(1 + count)` with `count = floor(exp(mean + deviation * z))`.
#[derive(Clone, Copy, Debug, Default)]
struct DenseColumn {
    mean: f64,
    deviation: f64,
}

#[derive(Clone, Debug)]
struct SparseFeature {
    rows: u64,
    zipf: Zipf,
    permutation: Permutation,
    table: u64,
    bag: Bag,
    missing: f64,
    weighted: bool,
}

impl Generator {
    pub(super) fn new(features: &[Feature], options: &Options) -> Self {
        let seed = options.seed;
        let columns = key(seed, "dense");
        let mut dense = [DenseColumn::default(); DENSE];
        for (j, column) in dense.iter_mut().enumerate() {
            let bits = mix(columns.wrapping_add(j as u64));
            let (a, b) =
                ((bits >> 32) as f64 / 2_f64.powi(32), bits as u32 as f64 / 2_f64.powi(32));
            *column = DenseColumn { mean: 0.5 + 3.5 * a, deviation: 0.7 + 0.8 * b };
        }
        let sparse = |feature: &Feature| {
            let table = key(seed, &feature.table);
            SparseFeature {
                rows: feature.rows,
                zipf: Zipf::new(feature.rows, feature.exponent),
                permutation: Permutation::new(feature.rows, mix(table ^ feature.rows)),
                table,
                bag: feature.bag,
                missing: feature.missing,
                weighted: feature.weighted,
            }
        };
        let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
        let weighted = features.iter().any(|feature| feature.weighted);
        let features = features.iter().map(sparse).collect();
        let teacher = Teacher::new(seed, &names);
        Self { options: *options, dense, features, teacher, weighted }
    }

    /// Whether ids carry weights.
    pub(super) fn weighted(&self) -> bool {
        self.weighted
    }

    /// Appends the sample's dense values and bags, and returns its raw logit, of no particular
    /// mean and scale. `means` is room for two numbers a feature.
    #[inline]
    pub(super) fn draw(
        &self,
        random: &mut Stream,
        dense: &mut Vec<f32>,
        bags: &mut [Bags],
        means: &mut [[f64; 2]],
    ) -> f64 {
        let mut z = [0.0; DENSE];
        for (column, z) in self.dense.iter().zip(&mut z) {
            let bits = random.bits();
            let missing = random.uniform() < self.options.dense_missing;
            let log = column.mean + column.deviation * normal(bits);
            let value = if missing { 0.0 } else { (1.0 + log.exp() as u64 as f64).ln() };
            dense.push(value as f32);
            // The teacher sees what the model sees.
            *z = (value - column.mean) / column.deviation;
        }
        for ((feature, bags), mean) in self.features.iter().zip(bags).zip(means.iter_mut()) {
            *mean = self.draw_bag(feature, random, bags);
        }
        self.teacher.dense(&z) + self.teacher.sparse(means)
    }

    /// Appends one bag and returns the weighted means of its ids' effects.
    #[inline]
    fn draw_bag(&self, feature: &SparseFeature, random: &mut Stream, bags: &mut Bags) -> [f64; 2] {
        let missing = random.uniform() < feature.missing;
        let ids = match feature.bag {
            _ if missing => 1,
            Bag::Fixed(ids) => ids,
            Bag::Geometric(mean) => geometric(mean, random),
        };
        bags.lengths.push(i64::from(ids));
        let (mut sums, mut total) = ([0.0; 2], 0.0);
        for _ in 0..ids {
            let row = if missing {
                feature.rows
            } else {
                feature.permutation.row(feature.zipf.sample(random) - 1)
            };
            bags.values.push(row as i64);
            let mut weight = 1.0;
            if self.weighted {
                let drawn = if feature.weighted { 0.5 + random.uniform() as f32 } else { 1.0 };
                bags.weights.push(drawn);
                weight = f64::from(drawn);
            }
            let effects = effects(feature.table, row);
            sums = [sums[0] + weight * effects[0], sums[1] + weight * effects[1]];
            total += weight;
        }
        if total == 0.0 { [0.0; 2] } else { sums.map(|sum| sum / total) }
    }
}

/// A geometric number from 0 with this mean, by inversion: `P(k) = (1 - q) q^k`,
/// `q = mean / (1 + mean)`.
fn geometric(mean: f64, random: &mut Stream) -> u32 {
    let q = mean / (1.0 + mean);
    ((1.0 - random.uniform()).ln() / q.ln()) as u32
}
