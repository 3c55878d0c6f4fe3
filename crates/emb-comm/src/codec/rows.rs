//! Formats that code a row at a time: [`RowCodec`], with the instructions that the machine has.

use super::Wire;
use crate::{Error, Result};

/// A format whose rows have a scale. Implementations inline into loops compiled for the machine at
/// hand; each operation is one of IEEE 754, so that the bits don't depend on the machine.
pub(super) trait RowCodec {
    /// The format.
    const WIRE: Wire;

    /// Bytes of a row; `None` where they can't be addressed.
    fn row_bytes(dim: usize) -> Option<usize>;

    /// Writes a row that the format can hold.
    fn encode(row: &[f32], out: &mut [u8]);

    /// Reads a row.
    fn decode(bytes: &[u8], out: &mut [f32]);

    /// Whether a finite row is one that the format can hold.
    fn holds(row: &[f32]) -> bool;
}

/// 2^126: values below are never too far apart for any format.
const SAFE: f32 = f32::from_bits((127 + 126) << 23);

/// Refuses what a format can't hold, by row and column.
pub(super) fn check<C: RowCodec>(values: &[f32], dim: usize) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if detected() {
        // SAFETY: the instructions were detected on this machine in the line above.
        return unsafe { check_avx2::<C>(values, dim) };
    }
    check_rows::<C>(values, dim)
}

/// Writes rows that were checked.
pub(super) fn encode<C: RowCodec>(values: &[f32], dim: usize, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if detected() {
        // SAFETY: the instructions were detected on this machine in the line above.
        return unsafe { encode_avx2::<C>(values, dim, out) };
    }
    encode_rows::<C>(values, dim, out);
}

/// Reads rows.
pub(super) fn decode<C: RowCodec>(bytes: &[u8], dim: usize, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if detected() {
        // SAFETY: the instructions were detected on this machine in the line above.
        return unsafe { decode_avx2::<C>(bytes, dim, out) };
    }
    decode_rows::<C>(bytes, dim, out);
}

#[cfg(target_arch = "x86_64")]
fn detected() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn check_avx2<C: RowCodec>(values: &[f32], dim: usize) -> Result<()> {
    check_rows::<C>(values, dim)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn encode_avx2<C: RowCodec>(values: &[f32], dim: usize, out: &mut [u8]) {
    encode_rows::<C>(values, dim, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn decode_avx2<C: RowCodec>(bytes: &[u8], dim: usize, out: &mut [f32]) {
    decode_rows::<C>(bytes, dim, out);
}

#[inline(always)]
fn check_rows<C: RowCodec>(values: &[f32], dim: usize) -> Result<()> {
    // All values at once first: there is nearly never one that is refused.
    match largest(values) {
        most if most < SAFE.to_bits() => return Ok(()),
        most if most >= f32::INFINITY.to_bits() => return Err(not_finite::<C>(values, dim)),
        _ => {}
    }
    match values.chunks_exact(dim).position(|row| !C::holds(row)) {
        Some(row) => Err(too_wide::<C>(values, dim, row)),
        None => Ok(()),
    }
}

#[cold]
fn not_finite<C: RowCodec>(values: &[f32], dim: usize) -> Error {
    let at = values.iter().position(|value| !value.is_finite()).unwrap_or(0);
    Error::NotFinite { wire: C::WIRE, row: at / dim, column: at % dim, value: values[at] }
}

#[cold]
fn too_wide<C: RowCodec>(values: &[f32], dim: usize, row: usize) -> Error {
    let (min, max) = extent(&values[row * dim..][..dim]);
    Error::RangeTooWide { wire: C::WIRE, row, min, max }
}

#[inline(always)]
fn encode_rows<C: RowCodec>(values: &[f32], dim: usize, out: &mut [u8]) {
    let bytes = out.len() / (values.len() / dim).max(1);
    for (row, out) in values.chunks_exact(dim).zip(out.chunks_exact_mut(bytes.max(1))) {
        C::encode(row, out);
    }
}

#[inline(always)]
fn decode_rows<C: RowCodec>(bytes: &[u8], dim: usize, out: &mut [f32]) {
    let row = bytes.len() / (out.len() / dim).max(1);
    for (bytes, out) in bytes.chunks_exact(row.max(1)).zip(out.chunks_exact_mut(dim)) {
        C::decode(bytes, out);
    }
}

/// The bits of the largest magnitude: those of infinity or more where a value is not finite.
#[inline(always)]
pub(super) fn largest(row: &[f32]) -> u32 {
    row.iter().fold(0, |most, value| most.max(value.to_bits() & 0x7FFF_FFFF))
}

/// Values that are compared at a time.
const LANES: usize = 8;

/// Smallest and largest value of a row, of equal ones the first.
#[inline(always)]
pub(super) fn extent(row: &[f32]) -> (f32, f32) {
    let less = |a: f32, b: f32| if b < a { b } else { a };
    let more = |a: f32, b: f32| if b > a { b } else { a };
    let (mut min, mut max) = (f32::INFINITY, f32::NEG_INFINITY);
    let (blocks, rest) = row.as_chunks::<LANES>();
    if !blocks.is_empty() {
        let (mut low, mut high) = ([min; LANES], [max; LANES]);
        for block in blocks {
            for lane in 0..LANES {
                low[lane] = less(low[lane], block[lane]);
                high[lane] = more(high[lane], block[lane]);
            }
        }
        min = low.into_iter().fold(min, less);
        max = high.into_iter().fold(max, more);
    }
    min = rest.iter().copied().fold(min, less);
    max = rest.iter().copied().fold(max, more);
    // 0 and -0 are equal, and of other bits.
    let first = |zero: f32| if zero == 0.0 { first_zero(row) } else { zero };
    (first(min), first(max))
}

fn first_zero(row: &[f32]) -> f32 {
    row.iter().copied().find(|&value| value == 0.0).unwrap_or(0.0)
}

/// 2^23: adding it to a value of `0..2^23` leaves the value, rounded to the nearest integer with
/// ties to even, in the low bits of the sum.
const ROUND: f32 = 8_388_608.0;

/// The integer nearest to a value of `0..=255`, ties to even.
#[inline(always)]
pub(super) fn round(value: f32) -> u8 {
    (value + ROUND).to_bits() as u8
}

/// The number in the first bytes.
#[inline(always)]
pub(super) fn read_f32(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::super::{fp8, int4, int8};
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
    fn the_first_of_equal_zeros_is_the_smallest_and_the_largest() {
        for dim in [1, 2, 7, 8, 9, 40] {
            for first in [0.0_f32, -0.0] {
                let mut row = vec![-first; dim];
                row[0] = first;
                let (min, max) = extent(&row);
                assert_eq!((min.to_bits(), max.to_bits()), (first.to_bits(), first.to_bits()));
            }
        }
        assert_eq!(extent(&[2.0, -1.0, 0.0, 7.0, 1.0, 1.0, 1.0, 1.0, 9.0, -3.0]), (-3.0, 9.0));
    }

    fn same_bits<C: RowCodec>() {
        for dim in [1, 3, 16, 37, 128] {
            let values: Vec<f32> = (0..50 * dim).map(|i| (i as f32 * 0.37).sin().powi(3)).collect();
            let row = C::row_bytes(dim).expect("fits");
            let (mut here, mut portable) = (vec![0xAB; 50 * row], vec![0xAB; 50 * row]);
            encode::<C>(&values, dim, &mut here);
            encode_rows::<C>(&values, dim, &mut portable);
            assert_eq!(here, portable, "{}", C::WIRE);
            let (mut back, mut portable) = (vec![0.0; values.len()], vec![0.0; values.len()]);
            decode::<C>(&here, dim, &mut back);
            decode_rows::<C>(&here, dim, &mut portable);
            assert_eq!(back, portable, "{}", C::WIRE);
        }
    }

    #[test]
    fn the_bits_are_the_same_with_and_without_the_instructions() {
        same_bits::<int8::Int8>();
        same_bits::<int4::Int4>();
        same_bits::<fp8::E4m3>();
        same_bits::<fp8::E5m2>();
    }
}
