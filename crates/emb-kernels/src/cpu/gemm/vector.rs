//! Products with one column or one row, which the tiles would mostly compute for nothing.

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
/// lanes are added, then what is left over in turn.
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

/// `out (+)= sum over k of a[k] * (row k of b)` for one row of output; the same chains as the tiles'.
pub(super) fn row_times_rows(
    a: &Mat<&[f32]>,
    transpose_a: Transpose,
    b: &Mat<&[f32]>,
    accumulate: Accumulate,
    mut out: Mat<&mut [f32]>,
) {
    let out = row_mut(&mut out, 0);
    if accumulate == Accumulate::Replace {
        out.fill(0.0);
    }
    let step = if transpose_a == Transpose::Yes { a.stride } else { 1 };
    let scales = (0..b.rows).map(|k| a.data[k * step]);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the features of the function were detected just now.
        return unsafe { add_rows_fma(scales, b, out) };
    }
    for (k, scale) in scales.enumerate() {
        for (out, b) in out.iter_mut().zip(row(b, k)) {
            *out += scale * b;
        }
    }
}

/// `out += sum of scale[k] * (row k of b)`, each step fused.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_rows_fma(scales: impl Iterator<Item = f32>, b: &Mat<&[f32]>, out: &mut [f32]) {
    for (k, scale) in scales.enumerate() {
        for (out, b) in out.iter_mut().zip(row(b, k)) {
            *out = scale.mul_add(*b, *out);
        }
    }
}
