//! Sums of the gradients of each touched row.
//!
//! A lookup moves `8 + dim * 4` bytes in, a touched row `dim * 4` out to a block that stays in
//! cache; meanwhile the rows and the state that the rule will change are prefetched.

use super::detect::{Instructions, Kernel, dispatch, prefetch};
use super::keys::{TableKeys, Upstream};
use super::table::Table;

/// Lookups between a prefetch and its use. From 24 to 128 nothing changed beyond noise on Zen 3
/// (dims 64 and 128); fewer push less out of the caches.
const DISTANCE: usize = 32;

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
    match (run.keys.direct, run.max_gradient.is_some()) {
        (true, false) => dispatch(instructions, SumKernel::<true, false> { run, rows, sums }),
        (true, true) => dispatch(instructions, SumKernel::<true, true> { run, rows, sums }),
        (false, _) => dispatch(instructions, SumKernel::<false, true> { run, rows, sums }),
    }
}

struct SumKernel<'a, 'b, const DIRECT: bool, const CLAMP: bool> {
    run: Run<'a>,
    rows: &'b mut [u64],
    sums: &'b mut [f32],
}

impl<const DIRECT: bool, const CLAMP: bool> Kernel for SumKernel<'_, '_, DIRECT, CLAMP> {
    type Output = (usize, usize);

    #[inline(always)]
    fn run(self) -> (usize, usize) {
        let Self { run, rows, sums } = self;
        let dim = run.table.dim;
        let mut k = run.begin;
        for (n, (row, sum)) in rows.iter_mut().zip(sums.chunks_exact_mut(dim)).enumerate() {
            if k == run.end {
                return (k, n);
            }
            *row = run.keys.row(k);
            let mut stop = k + 1;
            while stop < run.end && run.keys.row(stop) == *row {
                stop += 1;
            }
            run.sum::<DIRECT, CLAMP>(k, stop, sum);
            k = stop;
        }
        (k, rows.len())
    }
}

impl Run<'_> {
    /// The sum of lookups `k..stop`, in their order.
    #[inline(always)]
    fn sum<const DIRECT: bool, const CLAMP: bool>(&self, k: usize, stop: usize, out: &mut [f32]) {
        let mut column = 0;
        self.prefetch_ahead::<DIRECT>(k, stop);
        while column + 64 <= out.len() {
            self.tile::<DIRECT, CLAMP, 64>(k, stop, column, out);
            column += 64;
        }
        let rest = out.len() - column;
        if rest & 32 != 0 {
            self.tile::<DIRECT, CLAMP, 32>(k, stop, column, out);
            column += 32;
        }
        if rest & 16 != 0 {
            self.tile::<DIRECT, CLAMP, 16>(k, stop, column, out);
            column += 16;
        }
        if rest & 8 != 0 {
            self.tile::<DIRECT, CLAMP, 8>(k, stop, column, out);
            column += 8;
        }
        if rest & 4 != 0 {
            self.tile::<DIRECT, CLAMP, 4>(k, stop, column, out);
            column += 4;
        }
        if rest & 2 != 0 {
            self.tile::<DIRECT, CLAMP, 2>(k, stop, column, out);
            column += 2;
        }
        if rest & 1 != 0 {
            self.tile::<DIRECT, CLAMP, 1>(k, stop, column, out);
        }
    }

    /// Columns `column..column + N` of the sum, held in registers.
    #[inline(always)]
    fn tile<const DIRECT: bool, const CLAMP: bool, const N: usize>(
        &self,
        k: usize,
        stop: usize,
        column: usize,
        out: &mut [f32],
    ) {
        let bound = self.max_gradient.unwrap_or(f32::INFINITY);
        let mut sum = [0.0_f32; N];
        for k in k..stop {
            let (side, row, scale) = self.source::<DIRECT>(k);
            let upstream = self.upstream.row(side, row, column, N);
            let upstream: &[f32; N] = upstream.try_into().expect("invariant: N long");
            for (sum, &g) in sum.iter_mut().zip(upstream) {
                let g = if DIRECT { g } else { g * scale };
                *sum += if CLAMP { clamp(g, bound) } else { g };
            }
        }
        out[column..column + N].copy_from_slice(&sum);
    }

    /// Side, upstream row and scale of lookup `k`.
    #[inline(always)]
    fn source<const DIRECT: bool>(&self, k: usize) -> (usize, usize, f32) {
        let low = self.keys.keys[k] & ((1 << self.keys.low_bits) - 1);
        if DIRECT {
            let side = low >> self.keys.sample_bits;
            let sample = low & ((1 << self.keys.sample_bits) - 1);
            (side as usize, sample as usize, 1.0)
        } else {
            let source = self.keys.sources[low as usize];
            (source.side as usize, source.row as usize, source.scale)
        }
    }

    /// Prefetches what lookups `DISTANCE` after `k..stop` need, now and when the rule runs.
    #[inline(always)]
    fn prefetch_ahead<const DIRECT: bool>(&self, k: usize, stop: usize) {
        let dim = self.table.dim;
        // A run longer than this would only push out what it brings in.
        let stop = stop.min(k + DISTANCE);
        let mut last = u64::MAX;
        for ahead in k + DISTANCE..(stop + DISTANCE).min(self.end) {
            let (side, upstream, _) = self.source::<DIRECT>(ahead);
            prefetch(self.upstream.row(side, upstream, 0, dim));
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
