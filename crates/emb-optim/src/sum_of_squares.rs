//! Sums of squares in one fixed order, for the statistic of row-wise rules and for norms.
//!
//! The order is part of the contract, because it decides the last bits:
//!
//! 1. element `i` is converted to `f64`, squared (exact: 48 bits) and added to partial sum
//!    `i % 16`, in ascending `i`;
//! 2. the 16 partial sums are folded by halves: `s[j] += s[j + 8]` for `j < 8`, then `j + 4` for
//!    `j < 4`, then `j + 2` for `j < 2`, then `s[0] + s[1]`.
//!
//! Every vector width that divides 16 computes this without a change of order, and since each
//! square is exact in `f64` a fused multiply-add rounds to the same bits as a multiplication and an
//! addition. Scalar code, AVX2, AVX-512 and a GPU twin therefore agree bitwise.

/// Partial sums of step 1: two AVX-512 registers, four AVX2 registers.
const LANES: usize = 16;

/// Sum of `x^2` in the order of this file.
#[inline(always)]
pub fn sum_of_squares(values: &[f32]) -> f64 {
    let (whole, tail) = values.as_chunks::<LANES>();
    let mut lanes = [0.0_f64; LANES];
    for chunk in whole {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(x) * f64::from(x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(tail) {
        *lane += f64::from(x) * f64::from(x);
    }
    fold(lanes)
}

/// Sum of `(g + l2 * w)^2` in the order of this file; the inner expression is rounded to `f32`
/// after the multiplication and after the addition, as the step of a rule computes it.
///
/// `row` and `grad` have the same length (extra elements of the longer one are ignored).
#[inline(always)]
pub fn sum_of_squares_decayed(row: &[f32], grad: &[f32], l2: f32) -> f64 {
    let columns = row.len().min(grad.len());
    let (rows, row_tail) = row[..columns].as_chunks::<LANES>();
    let (grads, grad_tail) = grad[..columns].as_chunks::<LANES>();
    let mut lanes = [0.0_f64; LANES];
    for (w, g) in rows.iter().zip(grads) {
        for ((lane, &w), &g) in lanes.iter_mut().zip(w).zip(g) {
            let x = f64::from(g + l2 * w);
            *lane += x * x;
        }
    }
    for ((lane, &w), &g) in lanes.iter_mut().zip(row_tail).zip(grad_tail) {
        let x = f64::from(g + l2 * w);
        *lane += x * x;
    }
    fold(lanes)
}

/// Scales `row` down to the Euclidean norm `max_norm` if it is longer; `None` leaves it.
///
/// The row must be whole: a column cut does not know the norm.
#[inline(always)]
pub fn limit_norm(row: &mut [f32], max_norm: Option<f32>) {
    if let Some(limit) = max_norm {
        let norm = sum_of_squares(row).sqrt();
        if norm > f64::from(limit) {
            let scale = (f64::from(limit) / norm) as f32;
            for w in row {
                *w *= scale;
            }
        }
    }
}

/// Step 2 of the order.
#[inline(always)]
fn fold(lanes: [f64; LANES]) -> f64 {
    // Compilers that see the fold plan the whole sum in vectors of two, as wide as its last step.
    // The barrier lets step 1 have vectors as wide as the machine's: 3 times fewer instructions.
    let lanes = std::hint::black_box(lanes);
    let lanes: [f64; 8] = halve(lanes);
    let lanes: [f64; 4] = halve(lanes);
    let lanes: [f64; 2] = halve(lanes);
    lanes[0] + lanes[1]
}

/// `s[j] + s[j + N / 2]` for `j < N / 2`.
#[inline(always)]
fn halve<const N: usize, const HALF: usize>(lanes: [f64; N]) -> [f64; HALF] {
    const { assert!(2 * HALF == N) };
    std::array::from_fn(|j| lanes[j] + lanes[j + HALF])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented order, written with indices only.
    fn by_the_book(values: &[f32]) -> f64 {
        let mut s = [0.0_f64; 16];
        for (i, &x) in values.iter().enumerate() {
            s[i % 16] = f64::from(x).mul_add(f64::from(x), s[i % 16]);
        }
        for j in 0..8 {
            s[j] += s[j + 8];
        }
        for j in 0..4 {
            s[j] += s[j + 4];
        }
        (s[0] + s[2]) + (s[1] + s[3])
    }

    #[test]
    fn order_is_the_documented_one_for_every_length() {
        let values: Vec<f32> =
            (0..1300).map(|i| ((i * 7919 % 1009) as f32 - 500.0) * 1.234e-3).collect();
        for length in 0..values.len() {
            let v = &values[..length];
            assert_eq!(sum_of_squares(v).to_bits(), by_the_book(v).to_bits(), "length {length}");
        }
    }

    #[test]
    fn decayed_sum_is_the_sum_of_the_decayed_gradient() {
        let row: Vec<f32> = (0..777).map(|i| (i as f32 * 0.37).sin()).collect();
        let grad: Vec<f32> = (0..777).map(|i| (i as f32 * 0.91).cos()).collect();
        let sum: Vec<f32> = row.iter().zip(&grad).map(|(w, g)| g + 0.03 * w).collect();
        assert_eq!(sum_of_squares_decayed(&row, &grad, 0.03), sum_of_squares(&sum));
    }

    #[test]
    fn limit_norm_shortens_long_rows_only() {
        let mut long = [3.0_f32, 4.0];
        limit_norm(&mut long, Some(1.0));
        assert!((long[0] - 0.6).abs() < 1e-7 && (long[1] - 0.8).abs() < 1e-7, "{long:?}");
        let mut short = [0.3_f32, 0.4];
        limit_norm(&mut short, Some(1.0));
        limit_norm(&mut short, None);
        assert_eq!(short, [0.3, 0.4]);
    }
}
