//! The planted truth: from what a model sees of a sample to the probability of a click.

use super::random::{key, mix, normal};
use crate::data::DENSE;

/// Parts of the logit's variance: dense values, ids one by one, pairs of features.
const SHARES: [f64; 3] = [0.30, 0.55, 0.15];
/// Most pairs of features that interact.
const PAIRS: usize = 4;

/// Effects of dense values, of ids and of pairs on the logit.
///
/// Dense part: a linear term for each value, and for the first five a bend (`|z| - E|z|`) and a
/// product. Sparse part: each row of each table has an effect drawn once from a normal law and
/// kept for ever; a bag counts with the (weighted) mean of its ids. Pair part: features `2p` and
/// `2p + 1` multiply second effects of their ids. Rare ids have effects as large as frequent ones,
/// so part of the truth can only be learned from many samples.
#[derive(Clone, Debug)]
pub(super) struct Teacher {
    dense: [f64; DENSE],
    /// Weight of each feature in the sparse part.
    features: Vec<f64>,
    pairs: usize,
}

impl Teacher {
    pub(super) fn new(seed: u64, names: &[&str]) -> Self {
        let key = key(seed, "teacher");
        let mut dense = [0.0; DENSE];
        for (j, weight) in dense.iter_mut().enumerate() {
            *weight = normal(mix(key.wrapping_add(j as u64)));
        }
        normalize(&mut dense);
        let weight =
            |name: &&str| 0.5 + (super::random::key(key, name) >> 11) as f64 / 2_f64.powi(53);
        let mut features: Vec<f64> = names.iter().map(weight).collect();
        normalize(&mut features);
        Self { dense, pairs: (features.len() / 2).min(PAIRS), features }
    }

    /// Effect of the dense values `z`, each standardised.
    #[inline]
    pub(super) fn dense(&self, z: &[f64; DENSE]) -> f64 {
        // E|z| and the standard deviation of |z| of a standard normal are 0.798 and 0.603.
        let bend = (z[0].abs() - 0.798) / 0.603 + (z[1].abs() - 0.798) / 0.603;
        let linear: f64 = self.dense.iter().zip(z).map(|(weight, z)| weight * z).sum();
        SHARES[0].sqrt() * (0.8 * linear + 0.35 * bend + 0.34 * z[2] * z[3])
    }

    /// Effect of the features' means of first and second effects.
    #[inline]
    pub(super) fn sparse(&self, means: &[[f64; 2]]) -> f64 {
        let single: f64 =
            self.features.iter().zip(means).map(|(weight, mean)| weight * mean[0]).sum();
        let pairs = means.as_chunks::<2>().0.iter().take(self.pairs);
        let pair: f64 = pairs.map(|[a, b]| a[1] * b[1]).sum();
        let scale = (SHARES[2] / self.pairs.max(1) as f64).sqrt();
        SHARES[1].sqrt() * single + scale * pair
    }
}

/// First and second effect of a row of the table with this key.
#[inline]
pub(super) fn effects(table: u64, row: u64) -> [f64; 2] {
    let bits = mix(table ^ row.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    [normal(bits), normal(mix(bits ^ table))]
}

fn normalize(weights: &mut [f64]) {
    let norm = weights.iter().map(|weight| weight * weight).sum::<f64>().sqrt();
    for weight in weights {
        *weight /= norm;
    }
}
