//! 8-bit floats with a scale for each row.
//!
//! The encodings are those of the OCP 8-bit Floating Point Specification (revision 1.0, 2023):
//!
//! ```text
//!          sign  exponent  mantissa  bias  largest          special
//!   E4M3   1     4         3         7     448   (S.1111.110)  NaN S.1111.111, no infinity
//!   E5M2   1     5         2         15    57344 (S.11110.11)  infinity S.11111.00, NaN above
//! ```

use super::Wire;
use super::rows::{RowCodec, largest, read_f32};

/// Bytes behind the values of a row: the scale.
const SUFFIX: usize = 4;

/// [`Wire::Fp8E4m3`].
pub(super) struct E4m3;

/// [`Wire::Fp8E5m2`].
pub(super) struct E5m2;

/// What tells the encodings apart.
trait Float8 {
    const MANTISSA_BITS: u32;
    const BIAS: u32;
    /// The code of the largest finite magnitude.
    const LARGEST: u32;
    const LARGEST_VALUE: f32;
    /// The magnitude of codes above the largest, as bits of an `f32`.
    fn special(code: u32) -> u32;
}

impl Float8 for E4m3 {
    const MANTISSA_BITS: u32 = 3;
    const BIAS: u32 = 7;
    const LARGEST: u32 = 0x7E;
    const LARGEST_VALUE: f32 = 448.0;

    #[inline(always)]
    fn special(_: u32) -> u32 {
        f32::NAN.to_bits()
    }
}

impl Float8 for E5m2 {
    const MANTISSA_BITS: u32 = 2;
    const BIAS: u32 = 15;
    const LARGEST: u32 = 0x7B;
    const LARGEST_VALUE: f32 = 57344.0;

    #[inline(always)]
    fn special(code: u32) -> u32 {
        if code == 0x7C { f32::INFINITY.to_bits() } else { f32::NAN.to_bits() }
    }
}

/// Bits of the mantissa of an `f32`, and its bias.
const BITS: u32 = 23;
const BIAS: u32 = 127;

/// The code nearest to a finite value, ties to even; beyond the largest, the largest.
#[inline(always)]
fn code<F: Float8>(value: f32) -> u8 {
    let drop = BITS - F::MANTISSA_BITS;
    let bits = value.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    // Normal: the mantissa is cut, a half rounds to even, a carry goes to the exponent.
    let odd = (magnitude >> drop) & 1;
    let rounded = (magnitude + (1 << (drop - 1)) - 1 + odd) >> drop;
    let normal = rounded.wrapping_sub((BIAS - F::BIAS) << F::MANTISSA_BITS);
    // Subnormal: the sum with a number whose last bit has the worth of the smallest code.
    let magic = (BIAS + 1 - F::BIAS + drop) << BITS;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(magic)).to_bits() - magic;
    let smallest_normal = (BIAS + 1 - F::BIAS) << BITS;
    let code = if magnitude < smallest_normal { subnormal } else { normal.min(F::LARGEST) };
    (code | (bits >> 24 & 0x80)) as u8
}

/// The value of a code.
#[inline(always)]
fn value<F: Float8>(code: u8) -> f32 {
    let (sign, code) = (u32::from(code & 0x80) << 24, u32::from(code & 0x7F));
    let bits = (code << (BITS - F::MANTISSA_BITS)) + ((BIAS - F::BIAS) << BITS);
    // Subnormal: the fraction behind the smallest normal number, which is taken off again.
    let smallest = f32::from_bits((BIAS + 1 - F::BIAS) << BITS);
    let subnormal = f32::from_bits(bits + (1 << BITS)) - smallest;
    let magnitude = if code >> F::MANTISSA_BITS == 0 { subnormal.to_bits() } else { bits };
    let magnitude = if code > F::LARGEST { F::special(code) } else { magnitude };
    f32::from_bits(magnitude | sign)
}

#[inline(always)]
fn encode<F: Float8>(row: &[f32], out: &mut [u8]) {
    let most = f32::from_bits(largest(row));
    // Below, the inverse would be infinite.
    let scale = (most / F::LARGEST_VALUE).max(f32::MIN_POSITIVE);
    let inverse = 1.0 / scale;
    let (codes, suffix) = out.split_at_mut(row.len());
    for (&x, out) in row.iter().zip(codes) {
        *out = code::<F>(x * inverse);
    }
    suffix.copy_from_slice(&scale.to_le_bytes());
}

#[inline(always)]
fn decode<F: Float8>(bytes: &[u8], out: &mut [f32]) {
    let (codes, suffix) = bytes.split_at(out.len());
    let scale = read_f32(suffix);
    for (&code, out) in codes.iter().zip(out) {
        *out = value::<F>(code) * scale;
    }
}

macro_rules! row_codec {
    ($type:ident, $wire:ident) => {
        impl RowCodec for $type {
            const WIRE: Wire = Wire::$wire;

            fn row_bytes(dim: usize) -> Option<usize> {
                dim.checked_add(SUFFIX)
            }

            #[inline(always)]
            fn holds(_: &[f32]) -> bool {
                true
            }

            #[inline(always)]
            fn encode(row: &[f32], out: &mut [u8]) {
                encode::<Self>(row, out);
            }

            #[inline(always)]
            fn decode(bytes: &[u8], out: &mut [f32]) {
                decode::<Self>(bytes, out);
            }
        }
    };
}

row_codec!(E4m3, Fp8E4m3);
row_codec!(E5m2, Fp8E5m2);

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
