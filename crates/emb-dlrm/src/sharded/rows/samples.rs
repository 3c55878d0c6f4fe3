//! Rows where the samples are: pooled there, and their gradients summed by row.

use super::wanted::{TierRows, Wanted};
use super::{RowsWay, Samples, Target};
use crate::sharded::layout::{Block, Layout};
use emb_kernels::{Backend, Pooling};

impl<B: Backend> RowsWay<B> {
    /// Adds the rows that came in to the bags of `output`, and puts them in their places in
    /// `sequences`.
    pub(super) fn pool(
        &self,
        layout: &Layout,
        wanted: &Wanted,
        samples: Samples<'_>,
        output: &mut [f32],
        sequences: &mut [Vec<f32>],
    ) {
        for ((tier, targets), rows) in layout.tiers.iter().zip(&self.features).zip(&wanted.tiers) {
            for (block, starts) in tier.blocks.iter().zip(&rows.starts) {
                let row =
                    |k: usize| &self.received[starts[rows.row_of[k] as usize]..][..block.width];
                each_feature(targets, rows, |target, lookups, first| {
                    if target.pooling == Pooling::None {
                        let dim = tier.blocks.iter().map(|block| block.width).sum::<usize>();
                        let sequence = &mut sequences[target.feature];
                        for (k, position) in lookups.positions.iter().enumerate() {
                            let to = position * dim + block.column;
                            sequence[to..to + block.width].copy_from_slice(row(first + k));
                        }
                        return;
                    }
                    let column = target.output + block.column;
                    each_lookup(lookups.lengths.as_slice(), |b, k| {
                        let to = &mut output[b * samples.width + column..][..block.width];
                        match lookups.weights.get(k) {
                            None => add(to, row(first + k)),
                            Some(&weight) => add_times(to, row(first + k), weight),
                        }
                    });
                });
            }
        }
    }

    /// The gradients of all rows that came in, where they came in: those of one row are added in the
    /// order of features, samples and bags.
    pub(super) fn sum_by_row(
        &mut self,
        layout: &Layout,
        wanted: &Wanted,
        samples: Samples<'_>,
        gradient: &[f32],
        sequences: &[&[f32]],
    ) {
        let Self { received, features, .. } = self;
        for ((tier, targets), rows) in layout.tiers.iter().zip(features).zip(&wanted.tiers) {
            let dim = tier.blocks.iter().map(|block| block.width).sum::<usize>();
            for (block, starts) in tier.blocks.iter().zip(&rows.starts) {
                each_feature(targets, rows, |target, lookups, first| {
                    let start = |k: usize| starts[rows.row_of[first + k] as usize];
                    if target.pooling == Pooling::None {
                        let sequence = sequences[target.feature];
                        for (k, position) in lookups.positions.iter().enumerate() {
                            let from = &sequence[position * dim + block.column..][..block.width];
                            let to = &mut received[start(k)..][..block.width];
                            add_bounded(to, from, tier.scale, target.max_gradient);
                        }
                        return;
                    }
                    each_lookup(lookups.lengths.as_slice(), |b, k| {
                        let from = columns(gradient, samples, target, block, b);
                        let mut scale = tier.scale;
                        if target.divide {
                            let divisor = samples.divisors[target.feature * samples.batch + b];
                            scale = if divisor == 0.0 { 0.0 } else { scale / divisor };
                        }
                        if let Some(weight) = lookups.weights.get(k) {
                            scale *= weight;
                        }
                        let to = &mut received[start(k)..][..block.width];
                        add_bounded(to, from, scale, target.max_gradient);
                    });
                });
            }
        }
    }
}

/// Tells `each` every feature with its lookups and the number of the first of them.
fn each_feature(
    targets: &[Target],
    rows: &TierRows,
    mut each: impl FnMut(&Target, &super::wanted::Lookups, usize),
) {
    let mut first = 0;
    for (target, lookups) in targets.iter().zip(&rows.lookups) {
        each(target, lookups, first);
        first += lookups.positions.len();
    }
}

/// Tells `each` the sample of every lookup, and its number.
fn each_lookup(lengths: &[u32], mut each: impl FnMut(usize, usize)) {
    let mut k = 0;
    for (b, &length) in lengths.iter().enumerate() {
        for _ in 0..length {
            each(b, k);
            k += 1;
        }
    }
}

/// The columns of a block in row `b` of a gradient.
fn columns<'a>(
    gradient: &'a [f32],
    samples: Samples<'_>,
    target: &Target,
    block: &Block,
    b: usize,
) -> &'a [f32] {
    &gradient[b * samples.width + target.output + block.column..][..block.width]
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
}

fn add_times(to: &mut [f32], from: &[f32], weight: f32) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from * weight);
}

/// Adds `from * scale`, each element bounded before it is added.
fn add_bounded(to: &mut [f32], from: &[f32], scale: f32, bound: Option<f32>) {
    match bound {
        None if scale.to_bits() == 1.0_f32.to_bits() => add(to, from),
        None => add_times(to, from, scale),
        Some(bound) => {
            let values = to.iter_mut().zip(from);
            // Not a number stays that, as in the rule.
            values.for_each(|(to, &from)| *to += clamp(from * scale, bound));
        }
    }
}

fn clamp(x: f32, bound: f32) -> f32 {
    if x > bound {
        bound
    } else if x < -bound {
        -bound
    } else {
        x
    }
}
