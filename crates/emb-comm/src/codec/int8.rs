//! Row-wise 8-bit integers on the wire.
//!
//! The arithmetic is that of FBGEMM's `FloatToFused8BitRowwiseQuantized` and its inverse, single
//! operation by single operation, so that the bytes are the same.

use super::Wire;
use super::rows::{RowCodec, extent, read_f32, round};

/// Bytes behind the values of a row: scale and bias.
const SUFFIX: usize = 8;

/// Keeps the inverse scale of a row of equal values finite.
pub(super) const EPSILON: f32 = 1e-8;

/// The largest value of 8 bits.
const LEVELS: f32 = 255.0;

/// [`Wire::Int8Rowwise`].
pub(super) struct Int8;

impl RowCodec for Int8 {
    const WIRE: Wire = Wire::Int8Rowwise;

    fn row_bytes(dim: usize) -> Option<usize> {
        dim.checked_add(SUFFIX)
    }

    #[inline(always)]
    fn holds(row: &[f32]) -> bool {
        let (min, max) = extent(row);
        // The range and its 255th part are rounded, so that the last step may end beyond `max`.
        LEVELS.mul_add((max - min) / LEVELS, min).is_finite()
    }

    #[inline(always)]
    fn encode(row: &[f32], out: &mut [u8]) {
        let (min, max) = extent(row);
        let range = max - min;
        let inverse_scale = LEVELS / (range + EPSILON);
        let (quantized, suffix) = out.split_at_mut(row.len());
        for (value, quantized) in row.iter().zip(quantized) {
            *quantized = round((value - min) * inverse_scale);
        }
        suffix[..4].copy_from_slice(&(range / LEVELS).to_le_bytes());
        suffix[4..].copy_from_slice(&min.to_le_bytes());
    }

    /// One rounding a value (a fused multiply-add), with the machine's instruction or without.
    #[inline(always)]
    fn decode(bytes: &[u8], out: &mut [f32]) {
        let (quantized, suffix) = bytes.split_at(out.len());
        let (scale, bias) = (read_f32(suffix), read_f32(&suffix[4..]));
        for (quantized, value) in quantized.iter().zip(out) {
            *value = f32::from(*quantized).mul_add(scale, bias);
        }
    }
}
