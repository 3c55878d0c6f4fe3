//! Bags pooled from rows that lie anywhere, and gradients of bags added to rows.

use super::rows::{DISTANCE, add_mapped};
use crate::Mat;
use crate::cpu::detect::{Instructions, Kernel, dispatch, prefetch};
use std::ops::Range;

/// Which rows a list of lookups uses, and how much of each.
#[derive(Clone, Copy, Debug)]
pub struct Lookups<'a> {
    /// By row, its first element.
    pub starts: &'a [usize],
    /// By lookup, its row.
    pub row_of: &'a [u32],
    /// By lookup, what the row is multiplied by; empty for 1.
    pub weights: &'a [f32],
}

/// Whose gradient each lookup gets.
#[derive(Clone, Copy, Debug)]
pub enum Sources<'a> {
    /// By sample, how many lookups its bag has.
    Bags(&'a [u32]),
    /// By lookup, a row of its own.
    Rows(&'a [usize]),
}

/// Gradients of bags, or of rows that are not pooled.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// By sample, or by what [`Sources::Rows`] says.
    pub gradient: Mat<&'a [f32]>,
    /// What all are multiplied by.
    pub scale: f32,
    /// By sample, what its gradient is divided by, with nothing where that is 0; empty for 1.
    pub divisors: &'a [f32],
    /// Bound of every element that is added.
    pub bound: Option<f32>,
}

impl Lookups<'_> {
    #[inline(always)]
    fn row(&self, k: usize, width: usize) -> Range<usize> {
        let start = self.starts[self.row_of[k] as usize];
        start..start + width
    }

    #[inline(always)]
    fn prefetch(&self, values: &[f32], k: usize, width: usize) {
        if k < self.row_of.len() {
            prefetch(&values[self.row(k, width)]);
        }
    }
}

/// `out[b] += sum_k weight_k * row_k` over the lookups of bag `b`, one after the other.
///
/// `lengths[b]` is how many these are; a row is `out.cols` elements of `values`. Moves
/// `lookups * out.cols * 4` bytes in, and the output once each way.
///
/// # Panics
/// Other lengths or lookups than the output has rows; rows outside `values`.
pub fn add_bags(values: &[f32], lookups: Lookups<'_>, lengths: &[u32], out: Mat<&mut [f32]>) {
    assert_eq!(lengths.len(), out.rows, "bags");
    assert!(out.data.len() >= out.extent(), "output of {} bags", out.rows);
    if lookups.weights.is_empty() {
        dispatch(Instructions::detect(), PoolKernel::<false> { values, lookups, lengths, out });
    } else {
        dispatch(Instructions::detect(), PoolKernel::<true> { values, lookups, lengths, out });
    }
}

struct PoolKernel<'a, const WEIGHTED: bool> {
    values: &'a [f32],
    lookups: Lookups<'a>,
    lengths: &'a [u32],
    out: Mat<&'a mut [f32]>,
}

impl<const WEIGHTED: bool> Kernel for PoolKernel<'_, WEIGHTED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { values, lookups, lengths, out } = self;
        let mut k = 0;
        for (b, &length) in lengths.iter().enumerate() {
            let bag = k..k + length as usize;
            k = bag.end;
            if bag.is_empty() {
                continue;
            }
            for ahead in bag.clone() {
                lookups.prefetch(values, ahead + DISTANCE, out.cols);
            }
            let sums = &mut out.data[b * out.stride..][..out.cols];
            let column = tiles::<WEIGHTED, 64>(values, lookups, &bag, 0, sums);
            let column = tiles::<WEIGHTED, 16>(values, lookups, &bag, column, sums);
            let column = tiles::<WEIGHTED, 4>(values, lookups, &bag, column, sums);
            tiles::<WEIGHTED, 1>(values, lookups, &bag, column, sums);
        }
    }
}

/// As many columns from `column` on as there are tiles of `N`, each held in registers; returns the
/// next column.
#[inline(always)]
fn tiles<const WEIGHTED: bool, const N: usize>(
    values: &[f32],
    lookups: Lookups<'_>,
    bag: &Range<usize>,
    mut column: usize,
    sums: &mut [f32],
) -> usize {
    while let Some(out) = sums.get_mut(column..column + N) {
        let out: &mut [f32; N] = out.try_into().expect("invariant: N long");
        let mut sum = *out;
        for k in bag.clone() {
            let start = lookups.row(k, N).start + column;
            let row: &[f32; N] = values[start..start + N].try_into().expect("invariant: N long");
            if WEIGHTED {
                let weight = lookups.weights[k];
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * weight);
            } else {
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
        *out = sum;
        column += N;
    }
    column
}

/// `row_k += clamp(gradient_k * scale_k)` for lookup `k` ascending, `row_k` being
/// `gradient.cols` elements of `values`.
///
/// `scale_k` is that of [`Upstream`], divided as it says, times the weight of the lookup; an
/// element that is not a number stays that. Moves a gradient in and a row each way a lookup.
///
/// # Panics
/// Lookups without a source; rows outside `values`, gradients outside theirs.
pub fn add_gradients(
    upstream: Upstream<'_>,
    sources: Sources<'_>,
    lookups: Lookups<'_>,
    values: &mut [f32],
) {
    let scaled = upstream.scale.to_bits() != 1.0_f32.to_bits()
        || !(upstream.divisors.is_empty() && lookups.weights.is_empty());
    let work = Add { upstream, lookups, values };
    if scaled || upstream.bound.is_some() {
        dispatch(Instructions::detect(), AddKernel::<false> { work, sources });
    } else {
        dispatch(Instructions::detect(), AddKernel::<true> { work, sources });
    }
}

struct AddKernel<'a, const PLAIN: bool> {
    work: Add<'a>,
    sources: Sources<'a>,
}

struct Add<'a> {
    upstream: Upstream<'a>,
    lookups: Lookups<'a>,
    values: &'a mut [f32],
}

impl<const PLAIN: bool> Kernel for AddKernel<'_, PLAIN> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut work, sources } = self;
        match sources {
            Sources::Bags(lengths) => {
                let mut k = 0;
                for (b, &length) in lengths.iter().enumerate() {
                    let bag = k..k + length as usize;
                    k = bag.end;
                    work.add::<PLAIN>(b, bag);
                }
            }
            Sources::Rows(rows) => {
                for (k, &row) in rows.iter().enumerate() {
                    work.add::<PLAIN>(row, k..k + 1);
                }
            }
        }
    }
}

impl Add<'_> {
    /// Gradient `source` to the rows of lookups `bag`.
    #[inline(always)]
    fn add<const PLAIN: bool>(&mut self, source: usize, bag: Range<usize>) {
        let Self { upstream, lookups, values } = self;
        let gradient = upstream.gradient;
        let scale = upstream.scale_of(source);
        let bound = upstream.bound.unwrap_or(f32::INFINITY);
        for k in bag {
            lookups.prefetch(values, k + DISTANCE, gradient.cols);
            let from = &gradient.data[source * gradient.stride..][..gradient.cols];
            let to = &mut values[lookups.row(k, gradient.cols)];
            if PLAIN {
                add_mapped(to, from, |x| x);
            } else {
                let scale = lookups.weights.get(k).map_or(scale, |weight| scale * weight);
                add_mapped(to, from, |x| clamp(x * scale, bound));
            }
        }
    }
}

impl Upstream<'_> {
    #[inline(always)]
    fn scale_of(&self, source: usize) -> f32 {
        match self.divisors.get(source) {
            None => self.scale,
            // Where the weights sum to 0 there is no mean, and no gradient.
            Some(0.0) => 0.0,
            Some(divisor) => self.scale / divisor,
        }
    }
}

/// `x` within `[-bound, bound]`; NaN stays NaN.
#[inline(always)]
fn clamp(x: f32, bound: f32) -> f32 {
    if x > bound {
        bound
    } else if x < -bound {
        -bound
    } else {
        x
    }
}

#[cfg(test)]
mod tests;
