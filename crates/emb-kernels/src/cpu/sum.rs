//! Sums of the gradients of each touched row.
//!
//! A lookup moves `8 + dim * 4` bytes in, a touched row `dim * 4` out to a block that stays in
//! cache; meanwhile the rows and the state that the rule will change are prefetched.

use super::detect::{Instructions, Kernel, dispatch, prefetch};
use super::keys::{TableKeys, Upstream};
use super::table::Table;

/// Bytes of gradients between a prefetch and its use. From 4 to 12 KiB nothing changed beyond noise
/// on Emerald Rapids (dims 64 and 128).
const GRADIENT_BYTES: usize = 6 << 10;

/// Bytes of weights and state between a prefetch and its use. On Emerald Rapids 32 KiB took up to a
/// tenth less than 16 KiB and more changed nothing (dim 128); on Zen 3 nothing changed beyond noise
/// from 24 lookups to 128 (dims 64 and 128).
const ROW_BYTES: usize = 32 << 10;

/// Fewest and most lookups between a prefetch and its use.
const LOOKUPS: [usize; 2] = [4, 64];

/// A run of sorted keys of one table, to be summed a block of rows at a time.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) table: &'a Table,
    pub(crate) keys: &'a TableKeys,
    pub(crate) upstream: Upstream<'a>,
    /// Bound of every element of a contribution.
    pub(crate) max_gradient: Option<f32>,
    /// First and last key; both begin a row.
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

/// Sums rows from key `run.begin` on until `rows` is full or the run ends; `sums` is
/// `[rows.len(), dim]`. Returns the first key not summed, and how many rows were.
pub(crate) fn sum_rows(
    instructions: Instructions,
    run: Run<'_>,
    rows: &mut [u64],
    sums: &mut [f32],
) -> (usize, usize) {
    if run.is_plain() {
        dispatch(instructions, SumKernel::<true> { run, rows, sums })
    } else {
        dispatch(instructions, SumKernel::<false> { run, rows, sums })
    }
}

struct SumKernel<'a, 'b, const PLAIN: bool> {
    run: Run<'a>,
    rows: &'b mut [u64],
    sums: &'b mut [f32],
}

impl<const PLAIN: bool> Kernel for SumKernel<'_, '_, PLAIN> {
    type Output = (usize, usize);

    #[inline(always)]
    fn run(self) -> (usize, usize) {
        self.run.sum_block::<PLAIN>(self.run.table.dim, self.rows, self.sums)
    }
}

impl Run<'_> {
    /// Whether a contribution is an upstream row as it is: `PLAIN` below.
    pub(crate) fn is_plain(&self) -> bool {
        self.keys.direct && self.max_gradient.is_none()
    }

    /// Kernel of [`sum_rows`]; `dim` is that of the table.
    #[inline(always)]
    pub(crate) fn sum_block<const PLAIN: bool>(
        &self,
        dim: usize,
        rows: &mut [u64],
        sums: &mut [f32],
    ) -> (usize, usize) {
        let ahead = self.distances(dim);
        let mut k = self.begin;
        for (n, (row, sum)) in rows.iter_mut().zip(sums.chunks_exact_mut(dim)).enumerate() {
            if k == self.end {
                return (k, n);
            }
            *row = self.keys.row(k);
            let mut stop = k + 1;
            while stop < self.end && self.keys.row(stop) == *row {
                stop += 1;
            }
            self.prefetch_ahead::<PLAIN>(ahead, dim, k, stop);
            self.sum::<PLAIN>(k, stop, sum);
            k = stop;
        }
        (k, rows.len())
    }

    /// The sum of lookups `k..stop`, in their order.
    #[inline(always)]
    fn sum<const PLAIN: bool>(&self, k: usize, stop: usize, out: &mut [f32]) {
        let mut column = 0;
        while column + 64 <= out.len() {
            self.tile::<PLAIN, 64>(k, stop, column, out);
            column += 64;
        }
        let rest = out.len() - column;
        if rest & 32 != 0 {
            self.tile::<PLAIN, 32>(k, stop, column, out);
            column += 32;
        }
        if rest & 16 != 0 {
            self.tile::<PLAIN, 16>(k, stop, column, out);
            column += 16;
        }
        if rest & 8 != 0 {
            self.tile::<PLAIN, 8>(k, stop, column, out);
            column += 8;
        }
        if rest & 4 != 0 {
            self.tile::<PLAIN, 4>(k, stop, column, out);
            column += 4;
        }
        if rest & 2 != 0 {
            self.tile::<PLAIN, 2>(k, stop, column, out);
            column += 2;
        }
        if rest & 1 != 0 {
            self.tile::<PLAIN, 1>(k, stop, column, out);
        }
    }

    /// Columns `column..column + N` of the sum, held in registers.
    #[inline(always)]
    fn tile<const PLAIN: bool, const N: usize>(
        &self,
        k: usize,
        stop: usize,
        column: usize,
        out: &mut [f32],
    ) {
        let bound = self.max_gradient.unwrap_or(f32::INFINITY);
        let mut sum = [0.0_f32; N];
        for k in k..stop {
            let (side, row, scale) = self.source::<PLAIN>(k);
            let upstream = self.upstream.row(side, row, column, N);
            let upstream: &[f32; N] = upstream.try_into().expect("invariant: N long");
            for (sum, &g) in sum.iter_mut().zip(upstream) {
                *sum += if PLAIN { g } else { clamp(g * scale, bound) };
            }
        }
        out[column..column + N].copy_from_slice(&sum);
    }

    /// Side, upstream row and scale of lookup `k`.
    #[inline(always)]
    fn source<const PLAIN: bool>(&self, k: usize) -> (usize, usize, f32) {
        let low = self.keys.keys[k] & ((1 << self.keys.low_bits) - 1);
        if PLAIN || self.keys.direct {
            let side = low >> self.keys.sample_bits;
            let sample = low & ((1 << self.keys.sample_bits) - 1);
            (side as usize, sample as usize, 1.0)
        } else {
            let source = self.keys.sources[low as usize];
            (source.side as usize, source.row as usize, source.scale)
        }
    }

    /// Lookups between the prefetch and the use of gradients, and of rows with their state.
    #[inline(always)]
    fn distances(&self, dim: usize) -> [usize; 2] {
        let lookups = |bytes: usize, each: usize| (bytes / each).clamp(LOOKUPS[0], LOOKUPS[1]);
        [lookups(GRADIENT_BYTES, dim * 4), lookups(ROW_BYTES, self.table.row_bytes())]
    }

    /// Prefetches what lookups some way after `k..stop` need, now and when the rule runs.
    #[inline(always)]
    fn prefetch_ahead<const PLAIN: bool>(
        &self,
        [gradients, rows]: [usize; 2],
        dim: usize,
        k: usize,
        stop: usize,
    ) {
        // A run longer than this would only push out what it brings in.
        let stop = stop.min(k + LOOKUPS[1]);
        for ahead in k + gradients..(stop + gradients).min(self.end) {
            let (side, upstream, _) = self.source::<PLAIN>(ahead);
            prefetch(self.upstream.row(side, upstream, 0, dim));
        }
        let mut last = u64::MAX;
        for ahead in k + rows..(stop + rows).min(self.end) {
            let row = self.keys.row(ahead);
            if row != last {
                self.table.prefetch_row(row);
                last = row;
            }
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
