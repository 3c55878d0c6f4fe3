//! 8-bit floats against their definition, code by code.

use super::*;
use half::f16;

/// The value of a code as the specification writes it: fields to powers of two.
fn defined<F: Float8>(code: u8) -> f64 {
    let (exponent, mantissa) = (
        u32::from(code & 0x7F) >> F::MANTISSA_BITS,
        u32::from(code) & ((1 << F::MANTISSA_BITS) - 1),
    );
    let fraction = f64::from(mantissa) / f64::from(1 << F::MANTISSA_BITS);
    let bias = F::BIAS as i32;
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        e => (1.0 + fraction) * 2f64.powi(e as i32 - bias),
    };
    let magnitude = match u32::from(code & 0x7F) {
        c if c <= F::LARGEST => magnitude,
        0x7C if F::MANTISSA_BITS == 2 => f64::INFINITY,
        _ => f64::NAN,
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The nearest finite code by trying all of them, of two the even one; the sign is kept.
fn nearest<F: Float8>(value: f32) -> u8 {
    let magnitude = f64::from(value.abs());
    let apart = |code: u8| (defined::<F>(code) - magnitude).abs();
    let mut best = 0_u8;
    for code in 1..=F::LARGEST as u8 {
        if apart(code) < apart(best) || (apart(code) == apart(best) && code % 2 == 0) {
            best = code;
        }
    }
    if value.is_sign_negative() { best | 0x80 } else { best }
}

fn all_codes<F: Float8>() {
    for byte in 0..=u8::MAX {
        let (got, expected) = (value::<F>(byte), defined::<F>(byte));
        if expected.is_nan() {
            assert!(got.is_nan(), "{byte:#x}");
            continue;
        }
        assert_eq!(f64::from(got).to_bits(), expected.to_bits(), "{byte:#x}");
        if expected.is_finite() {
            assert_eq!(code::<F>(got), byte, "{got} comes back");
        }
    }
}

fn all_halves<F: Float8>() {
    for bits in 0..=u16::MAX {
        let x = f16::from_bits(bits).to_f32_const();
        if x.is_finite() {
            assert_eq!(code::<F>(x), nearest::<F>(x), "{x}");
        }
    }
}

/// Numbers beside the ties of all neighbours, which no 16-bit float has.
fn all_ties<F: Float8>() {
    for low in 0..F::LARGEST as u8 {
        let tie = f64::midpoint(defined::<F>(low), defined::<F>(low + 1)) as f32;
        for x in [tie.next_down(), tie, tie.next_up(), -tie] {
            assert_eq!(code::<F>(x), nearest::<F>(x), "{x}");
        }
    }
    for x in [F::LARGEST_VALUE.next_up(), 1e6, f32::MIN_POSITIVE, 1e-45, -1e-45] {
        assert_eq!(code::<F>(x), nearest::<F>(x), "{x}");
    }
    assert_eq!(u32::from(code::<F>(f32::MAX)), F::LARGEST);
}

#[test]
fn every_code_has_the_value_of_its_definition_and_comes_back() {
    all_codes::<E4m3>();
    all_codes::<E5m2>();
}

#[test]
fn every_half_becomes_the_nearest_code() {
    all_halves::<E4m3>();
    all_halves::<E5m2>();
}

#[test]
fn numbers_beside_ties_round_the_right_way_and_large_ones_saturate() {
    all_ties::<E4m3>();
    all_ties::<E5m2>();
}
