//! Products with one column or one row, which the tiles would mostly compute for nothing.

#[cfg(target_arch = "x86_64")]
use std::arch::is_x86_feature_detected;

use crate::cpu::shape::{row, row_mut};
use crate::{Accumulate, Mat, Transpose};

/// Sums kept side by side; also the order of the sum, so it is the same on every machine.
const LANES: usize = 32;

/// Whether the product is of rows and one column that lies in one piece.
pub(super) fn fits(
    a: &Mat<&[f32]>,
    transpose_a: Transpose,
    b: &Mat<&[f32]>,
    transpose_b: Transpose,
    n: usize,
    k: usize,
) -> bool {
    let piece = transpose_b == Transpose::Yes || b.stride == 1 || k <= 1;
    n == 1 && transpose_a == Transpose::No && piece && a.cols > 0
}

/// `out[i] (+)= <row first + i of a, b>`.
pub(super) fn rows_times_column(
    a: &Mat<&[f32]>,
    b: &[f32],
    first: usize,
    accumulate: Accumulate,
    out: Mat<&mut [f32]>,
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the features of the function were detected just now.
        return unsafe { fma::rows_times_column(a, b, first, accumulate, out) };
    }
    dots(a, b, first, accumulate, out);
}

/// `out[i] (+)= sum over k of op(a)[first + i, k] * (row k of b)`; the same chains as the tiles'.
pub(super) fn rows_times_rows(
    a: &Mat<&[f32]>,
    transpose_a: Transpose,
    b: &Mat<&[f32]>,
    first: usize,
    accumulate: Accumulate,
    mut out: Mat<&mut [f32]>,
) {
    #[cfg(target_arch = "x86_64")]
    let fused = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    for i in 0..out.rows {
        let (start, step) = match transpose_a {
            Transpose::No => ((first + i) * a.stride, 1),
            Transpose::Yes => (first + i, a.stride),
        };
        let out = row_mut(&mut out, i);
        if accumulate == Accumulate::Replace {
            out.fill(0.0);
        }
        let scales = (0..b.rows).map(|k| a.data[start + k * step]);
        #[cfg(target_arch = "x86_64")]
        if fused {
            // SAFETY: the features of the function were detected just now.
            unsafe { fma::add_rows(scales, b, out) };
            continue;
        }
        for (k, scale) in scales.enumerate() {
            for (out, b) in out.iter_mut().zip(row(b, k)) {
                *out += scale * b;
            }
        }
    }
}

#[inline(always)]
fn dots(
    a: &Mat<&[f32]>,
    b: &[f32],
    first: usize,
    accumulate: Accumulate,
    mut out: Mat<&mut [f32]>,
) {
    for i in 0..out.rows {
        let dot = dot(row(a, first + i), b);
        let out = &mut row_mut(&mut out, i)[0];
        match accumulate {
            Accumulate::Replace => *out = dot,
            Accumulate::Add => *out += dot,
        }
    }
}

/// The inner product: lane `l` adds the elements `l`, `l + 32`, .. in turn, then halves of the
/// lanes are added, then what is left over in turn. Not fused, so every machine agrees.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_lines, a_rest) = a.as_chunks::<LANES>();
    let (b_lines, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for (a, b) in a_lines.iter().zip(b_lines) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        let (low, high) = lanes.split_at_mut(width);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        width /= 2;
    }
    a_rest.iter().zip(b_rest).fold(lanes[0], |sum, (a, b)| sum + a * b)
}

/// The same loops with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
mod fma {
    use super::{Accumulate, Mat, dots, row};

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn rows_times_column(
        a: &Mat<&[f32]>,
        b: &[f32],
        first: usize,
        accumulate: Accumulate,
        out: Mat<&mut [f32]>,
    ) {
        dots(a, b, first, accumulate, out);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add_rows(scales: impl Iterator<Item = f32>, b: &Mat<&[f32]>, out: &mut [f32]) {
        for (k, scale) in scales.enumerate() {
            for (out, b) in out.iter_mut().zip(row(b, k)) {
                *out = scale.mul_add(*b, *out);
            }
        }
    }
}
