//! Row-wise 8-bit integers on the wire.
//!
//! The arithmetic is that of FBGEMM's `FloatToFused8BitRowwiseQuantized` and its inverse, single
//! operation by single operation, so that the bytes are the same.

use crate::{Error, Result};

/// Bytes behind the values of a row: scale and bias.
pub(super) const SUFFIX: usize = 8;

/// Keeps the inverse scale of a row of equal values finite.
const EPSILON: f32 = 1e-8;

/// 2^23: adding it to a value of `0..2^23` leaves the value, rounded to the nearest integer with
/// ties to even, in the low bits of the sum.
const ROUND: f32 = 8_388_608.0;

pub(super) fn check_rows(values: &[f32], dim: usize) -> Result<()> {
    for (row, values) in values.chunks_exact(dim).enumerate() {
        if let Some(column) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NotFinite { row, column, value: values[column] });
        }
        let (min, max) = extent(values);
        if !(max - min).is_finite() {
            return Err(Error::RangeTooWide { row, min, max });
        }
    }
    Ok(())
}

pub(super) fn encode(values: &[f32], dim: usize, out: &mut [u8]) {
    for (values, out) in values.chunks_exact(dim).zip(out.chunks_exact_mut(dim + SUFFIX)) {
        let (min, max) = extent(values);
        let range = max - min;
        let inverse_scale = 255.0 / (range + EPSILON);
        let (quantized, suffix) = out.split_at_mut(dim);
        for (value, quantized) in values.iter().zip(quantized) {
            *quantized = round((value - min) * inverse_scale);
        }
        suffix[..4].copy_from_slice(&(range / 255.0).to_le_bytes());
        suffix[4..].copy_from_slice(&min.to_le_bytes());
    }
}

pub(super) fn decode(bytes: &[u8], dim: usize, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the instructions were detected on this machine in the line above.
        return unsafe { decode_avx2(bytes, dim, out) };
    }
    decode_rows(bytes, dim, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn decode_avx2(bytes: &[u8], dim: usize, out: &mut [f32]) {
    decode_rows(bytes, dim, out);
}

/// One rounding a value (a fused multiply-add), with the machine's instruction or without.
#[inline(always)]
fn decode_rows(bytes: &[u8], dim: usize, out: &mut [f32]) {
    for (bytes, out) in bytes.chunks_exact(dim + SUFFIX).zip(out.chunks_exact_mut(dim)) {
        let (quantized, suffix) = bytes.split_at(dim);
        let [scale, bias] = [&suffix[..4], &suffix[4..]]
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        for (quantized, value) in quantized.iter().zip(out) {
            *value = f32::from(*quantized).mul_add(scale, bias);
        }
    }
}

/// Smallest and largest value of a row.
fn extent(values: &[f32]) -> (f32, f32) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(min, max), &value| {
        (if value < min { value } else { min }, if value > max { value } else { max })
    })
}

/// The integer nearest to a value of `0..=255`, ties to even.
fn round(value: f32) -> u8 {
    (value + ROUND).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_with_ties_to_even() {
        let quarters = (0..=4 * 255).map(|quarters| quarters as f32 / 4.0);
        let mut edges = Vec::new();
        for value in quarters {
            edges.extend([value.next_down().max(0.0), value, value.next_up()]);
        }
        for value in edges {
            assert_eq!(round(value), value.round_ties_even() as u8, "{value}");
        }
    }

    #[test]
    fn decoding_gives_the_same_bits_with_and_without_the_instruction() {
        let dim = 37; // vector body and tail
        let values: Vec<f32> = (0..200 * dim).map(|i| (i as f32 * 0.37).sin().powi(3)).collect();
        let mut bytes = vec![0; 200 * (dim + SUFFIX)];
        encode(&values, dim, &mut bytes);
        let (mut dispatched, mut portable) = (vec![0.0; values.len()], vec![0.0; values.len()]);
        decode(&bytes, dim, &mut dispatched);
        decode_rows(&bytes, dim, &mut portable);
        assert_eq!(dispatched, portable);
    }
}
