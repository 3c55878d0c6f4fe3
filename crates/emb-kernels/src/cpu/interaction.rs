//! Pairwise dot interaction, forward and backward, sample by sample in L1: no matrix of all pairs
//! of the batch ever exists.
//!
//! Both directions are small matrix products and use the tiles of [`gemm`](super::gemm): forward
//! `X X^T`, of which only the tiles that touch the wanted triangle are computed, backward `S X`
//! with `S` the symmetric matrix of pair gradients. So each output is one chain of fused
//! multiply-adds, with the dimension (forward) or the feature (backward) ascending: bitwise equal
//! for every number of threads, batch and pair order, and between AVX2 and AVX-512; processors
//! without FMA round once more per step.

use super::gemm::kernel::{self, Kernel, Panel, WithKernel};
use super::gemm::pack;
use super::shape::{self, names, over_rows, row, row_mut, same};
use crate::{Mat, PairOrder, Result};

#[cfg(test)]
mod tests;

/// See [`Backend::interact`](crate::Backend::interact).
///
/// Reads `features * dim` and writes `dim + features * (features - 1) / 2` floats a sample, for
/// `features * (features - 1) * dim` useful flops.
///
/// # Errors
/// Shapes that differ; nothing has been written then.
pub(crate) fn interact(
    threads: usize,
    x: Mat<&[f32]>,
    features: usize,
    out: Mat<&mut [f32]>,
    order: PairOrder,
) -> Result<()> {
    let dim = check("interact", &x, features)?;
    shape::mat("interact", names!("out"), &out, x.rows, out_cols(features, dim))?;
    kernel::dispatch(Forward { threads, samples: Samples { x, features, dim, order }, out });
    Ok(())
}

/// See [`Backend::interact_backward`](crate::Backend::interact_backward).
///
/// # Errors
/// Shapes that differ; nothing has been written then.
pub(crate) fn interact_backward(
    threads: usize,
    x: Mat<&[f32]>,
    features: usize,
    gradient: Mat<&[f32]>,
    x_gradient: Mat<&mut [f32]>,
    order: PairOrder,
) -> Result<()> {
    let operation = "interact_backward";
    let dim = check(operation, &x, features)?;
    shape::mat(operation, names!("gradient"), &gradient, x.rows, out_cols(features, dim))?;
    shape::mat(operation, names!("x_gradient"), &x_gradient, x.rows, x.cols)?;
    let samples = Samples { x, features, dim, order };
    kernel::dispatch(Backward { threads, samples, gradient, out: x_gradient });
    Ok(())
}

/// Checks `x` and returns its `dim`.
fn check(operation: &'static str, x: &Mat<&[f32]>, features: usize) -> Result<usize> {
    shape::inside(operation, names!("x"), x)?;
    let dim = x.cols.checked_div(features).unwrap_or(0);
    let what = "columns of x (whole vectors, one a feature)";
    same(operation, what, features * dim, x.cols)?;
    Ok(dim)
}

/// `dim + features * (features - 1) / 2`.
fn out_cols(features: usize, dim: usize) -> usize {
    dim + features * features.saturating_sub(1) / 2
}

/// What both directions read.
struct Samples<'a> {
    x: Mat<&'a [f32]>,
    features: usize,
    dim: usize,
    order: PairOrder,
}

impl Samples<'_> {
    /// Partners `j` of feature `i` in the output, as a range, and where the first of them is.
    fn pairs(&self, i: usize) -> (std::ops::Range<usize>, usize) {
        match self.order {
            PairOrder::Lower => (0..i, self.dim + i * i.saturating_sub(1) / 2),
            PairOrder::Upper => {
                (i + 1..self.features, self.dim + i * self.features - i * (i + 1) / 2)
            }
        }
    }

    /// Sample `b` as `[features, dim]`.
    fn sample(&self, b: usize) -> Mat<&[f32]> {
        Mat::new(row(&self.x, b), self.features, self.dim)
    }
}

struct Forward<'a> {
    threads: usize,
    samples: Samples<'a>,
    out: Mat<&'a mut [f32]>,
}

impl WithKernel for Forward<'_> {
    fn run<const MR: usize, const NR: usize>(self, kernel: impl Kernel<MR, NR>) {
        let Self { threads, samples, out } = self;
        let room = samples.features.next_multiple_of(NR) * samples.dim;
        over_rows(threads, 1, out, &|first, mut out| {
            pack::with_room(room, 0, |packed, _| {
                for b in 0..out.rows {
                    samples.forward(kernel, first + b, row_mut(&mut out, b), packed);
                }
            });
        });
    }
}

impl Samples<'_> {
    fn forward<const MR: usize, const NR: usize>(
        &self,
        kernel: impl Kernel<MR, NR>,
        b: usize,
        out: &mut [f32],
        packed: &mut [f32],
    ) {
        let (features, dim) = (self.features, self.dim);
        let x = self.sample(b);
        if dim == 0 {
            return out.fill(0.0);
        }
        out[..dim].copy_from_slice(&x.data[..dim]);
        let used = pack::from_columns::<NR>(&x, (0, dim), (0, features), packed);
        let mut tile = [[0.0f32; NR]; MR];
        for (p, panel) in packed[..used].chunks_exact(dim * NR).enumerate() {
            let panel = Panel::packed::<NR>(panel);
            let columns = p * NR..features.min((p + 1) * NR);
            for strip in (0..features).step_by(MR) {
                let end = features.min(strip + MR);
                let wanted = match self.order {
                    PairOrder::Lower => columns.start + 1 < end,
                    PairOrder::Upper => strip + 1 < columns.end,
                };
                if !wanted {
                    continue;
                }
                // The last strip repeats its last row; the copies are thrown away.
                let rows =
                    std::array::from_fn(|i| &x.data[(strip + i).min(features - 1) * dim..][..dim]);
                kernel.rows(rows, panel, tile.as_flattened_mut(), NR, false);
                for (i, tile) in (strip..end).zip(&tile) {
                    let (partners, at) = self.pairs(i);
                    let from = partners.start.max(columns.start);
                    let to = partners.end.min(columns.end);
                    if from < to {
                        out[at + from - partners.start..][..to - from]
                            .copy_from_slice(&tile[from - columns.start..to - columns.start]);
                    }
                }
            }
        }
    }
}

struct Backward<'a> {
    threads: usize,
    samples: Samples<'a>,
    gradient: Mat<&'a [f32]>,
    out: Mat<&'a mut [f32]>,
}

impl WithKernel for Backward<'_> {
    fn run<const MR: usize, const NR: usize>(self, kernel: impl Kernel<MR, NR>) {
        let Self { threads, samples, gradient, out } = self;
        let (features, dim) = (samples.features, samples.dim);
        if features == 0 || dim == 0 {
            return;
        }
        let room = if dim.is_multiple_of(NR) { 0 } else { features * NR };
        over_rows(threads, 1, out, &|first, mut out| {
            pack::with_room(room, features * features, |packed, pairs| {
                for b in 0..out.rows {
                    let gradient = row(&gradient, first + b);
                    samples.symmetric(gradient, pairs);
                    samples.backward(
                        kernel,
                        first + b,
                        gradient,
                        pairs,
                        row_mut(&mut out, b),
                        packed,
                    );
                }
            });
        });
    }
}

impl Samples<'_> {
    /// The gradient of every pair as a symmetric matrix with a diagonal of 0.
    fn symmetric(&self, gradient: &[f32], pairs: &mut [f32]) {
        let features = self.features;
        for i in 0..features {
            let (partners, at) = self.pairs(i);
            let from = &gradient[at..][..partners.len()];
            pairs[i * features + i] = 0.0;
            pairs[i * features..][partners.clone()].copy_from_slice(from);
            for (j, &g) in partners.zip(from) {
                pairs[j * features + i] = g;
            }
        }
    }

    fn backward<const MR: usize, const NR: usize>(
        &self,
        kernel: impl Kernel<MR, NR>,
        b: usize,
        gradient: &[f32],
        pairs: &[f32],
        out: &mut [f32],
        packed: &mut [f32],
    ) {
        let (features, dim) = (self.features, self.dim);
        let x = self.sample(b);
        // Whole panels are read where they lie, the last one with zeros after its columns.
        let whole = dim / NR * NR;
        if whole < dim {
            pack::from_rows::<NR>(&x, (0, features), (whole, dim - whole), packed);
        }
        for strip in (0..features).step_by(MR) {
            let height = MR.min(features - strip);
            let rows = std::array::from_fn(|i| {
                &pairs[(strip + i).min(features - 1) * features..][..features]
            });
            // The chains of the first feature begin with the gradient of its copy in the output.
            let load = strip == 0;
            if load {
                out[..dim].copy_from_slice(&gradient[..dim]);
                out[dim..height * dim].fill(0.0);
            }
            for column in (0..dim).step_by(NR) {
                let width = NR.min(dim - column);
                let panel = if width == NR {
                    Panel::strided(&x.data[column..], dim, features)
                } else {
                    Panel::packed::<NR>(packed)
                };
                let at = strip * dim + column;
                if height == MR && width == NR {
                    kernel.rows(rows, panel, &mut out[at..], dim, load);
                    continue;
                }
                let mut tile = [[0.0f32; NR]; MR];
                for (i, tile) in tile.iter_mut().take(height).enumerate() {
                    tile[..width].copy_from_slice(&out[at + i * dim..][..width]);
                }
                kernel.rows(rows, panel, tile.as_flattened_mut(), NR, load);
                for (i, tile) in tile.iter().take(height).enumerate() {
                    out[at + i * dim..][..width].copy_from_slice(&tile[..width]);
                }
            }
        }
    }
}
