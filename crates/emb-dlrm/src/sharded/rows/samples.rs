//! Rows where the samples are: pooled there, and their gradients summed by row.

use super::wanted::{Lookups, TierRows, Wanted};
use super::{RowsWay, Samples, Target};
use crate::sharded::layout::Layout;
use emb_kernels::host::{self, Sources, Upstream, add_bags, add_gradients};
use emb_kernels::{Backend, Mat, Pooling};

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
            let dim = tier.blocks.iter().map(|block| block.width).sum::<usize>();
            for (block, starts) in tier.blocks.iter().zip(&rows.starts) {
                each_feature(targets, rows, starts, |target, lookups, of_feature| {
                    if target.pooling == Pooling::None {
                        let sequence = &mut sequences[target.feature];
                        for (position, &row) in lookups.positions.iter().zip(of_feature.row_of) {
                            let from = &self.received[starts[row as usize]..][..block.width];
                            let to = position * dim + block.column;
                            sequence[to..to + block.width].copy_from_slice(from);
                        }
                        return;
                    }
                    let column = target.output + block.column;
                    let bags = output.get_mut(column..).unwrap_or_default();
                    let out = Mat::with_stride(bags, samples.batch, block.width, samples.width);
                    add_bags(&self.received, of_feature, &lookups.lengths, out);
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
                each_feature(targets, rows, starts, |target, lookups, of_feature| {
                    let mut upstream = Upstream {
                        gradient: Mat::new(&[], 0, block.width),
                        scale: tier.scale,
                        divisors: &[],
                        bound: target.max_gradient,
                    };
                    let sources = if target.pooling == Pooling::None {
                        let sequence = sequences[target.feature];
                        let data = sequence.get(block.column..).unwrap_or_default();
                        upstream.gradient =
                            Mat::with_stride(data, sequence.len() / dim, block.width, dim);
                        Sources::Rows(&lookups.positions)
                    } else {
                        let column = target.output + block.column;
                        let data = gradient.get(column..).unwrap_or_default();
                        let (batch, width) = (samples.batch, samples.width);
                        upstream.gradient = Mat::with_stride(data, batch, block.width, width);
                        if target.divide {
                            upstream.divisors =
                                &samples.divisors[target.feature * batch..][..batch];
                        }
                        Sources::Bags(&lookups.lengths)
                    };
                    add_gradients(upstream, sources, of_feature, received);
                });
            }
        }
    }
}

/// Tells `each` every feature with its lookups, also as those of rows that begin at `starts`.
fn each_feature<'a>(
    targets: &[Target],
    rows: &'a TierRows,
    starts: &'a [usize],
    mut each: impl FnMut(&Target, &'a Lookups, host::Lookups<'a>),
) {
    let mut first = 0;
    for (target, lookups) in targets.iter().zip(&rows.lookups) {
        let row_of = &rows.row_of[first..][..lookups.positions.len()];
        first += row_of.len();
        // Rows that are not pooled have no weights.
        let pooled = target.pooling != Pooling::None;
        let weights = if pooled { &lookups.weights[..] } else { &[] };
        each(target, lookups, host::Lookups { starts, row_of, weights });
    }
}
