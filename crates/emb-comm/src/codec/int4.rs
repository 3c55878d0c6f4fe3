//! 4-bit integers with a scale and a bias for each group of columns.

use super::Wire;
use super::rows::{RowCodec, extent, round};

/// Columns that share a scale and a bias; the last group of a row may have fewer.
///
/// The scale and the bias of a group are 4 bytes, one bit for each of 32 values: 5 bits a value in
/// all. Groups of 16 would take 6, a quarter more than the values themselves.
pub(super) const GROUP: usize = 32;

/// Bytes behind the values, of each group: scale and bias.
const SUFFIX: usize = 4;

/// The largest value of 4 bits.
const LEVELS: f32 = 15.0;

/// [`Wire::Int4`].
pub(super) struct Int4;

/// Scale and bias of a group, upper halves of `f32`.
#[derive(Clone, Copy)]
struct Grid {
    scale: u16,
    bias: u16,
}

impl Grid {
    /// The bias is at most the smallest value, and the scale at least what reaches the largest one:
    /// rounded outwards, so that no value is cut off.
    #[inline(always)]
    fn new(group: &[f32]) -> Self {
        let (min, max) = extent(group);
        let bias = round_down(min);
        let scale = ((max - wide(bias)) / LEVELS).max(f32::MIN_POSITIVE);
        // Positive: upwards is away from zero.
        Self { scale: ((scale.to_bits() + 0xFFFF) >> 16) as u16, bias }
    }

    /// Whether every code is a number, in the two roundings of `decode`: the product alone may be
    /// beyond the largest number where the sum is not.
    #[inline(always)]
    fn is_finite(self) -> bool {
        (LEVELS * wide(self.scale) + wide(self.bias)).is_finite()
    }
}

/// The largest number that ends in 16 zero bits and is not above `value`.
#[inline(always)]
fn round_down(value: f32) -> u16 {
    let bits = value.to_bits();
    let away = if bits >> 31 == 1 { 0xFFFF } else { 0 };
    ((bits + away) >> 16) as u16
}

#[inline(always)]
fn wide(upper: u16) -> f32 {
    f32::from_bits(u32::from(upper) << 16)
}

impl RowCodec for Int4 {
    const WIRE: Wire = Wire::Int4;

    fn row_bytes(dim: usize) -> Option<usize> {
        dim.div_ceil(2).checked_add(dim.div_ceil(GROUP).checked_mul(SUFFIX)?)
    }

    #[inline(always)]
    fn holds(row: &[f32]) -> bool {
        row.chunks(GROUP).all(|group| Grid::new(group).is_finite())
    }

    #[inline(always)]
    fn encode(row: &[f32], out: &mut [u8]) {
        let (packed, suffix) = out.split_at_mut(row.len().div_ceil(2));
        let grids = suffix.as_chunks_mut::<SUFFIX>().0;
        for ((group, packed), out) in row.chunks(GROUP).zip(packed.chunks_mut(GROUP / 2)).zip(grids)
        {
            let grid = Grid::new(group);
            let (bias, inverse) = (wide(grid.bias), 1.0 / wide(grid.scale));
            let quantize = |value: f32| round(((value - bias) * inverse).clamp(0.0, LEVELS));
            let (pairs, last) = group.as_chunks::<2>();
            for (pair, packed) in pairs.iter().zip(&mut *packed) {
                *packed = quantize(pair[0]) | quantize(pair[1]) << 4;
            }
            if let [value] = last {
                packed[pairs.len()] = quantize(*value);
            }
            let [low, high] = grid.scale.to_le_bytes();
            let [bias_low, bias_high] = grid.bias.to_le_bytes();
            *out = [low, high, bias_low, bias_high];
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8], out: &mut [f32]) {
        let (packed, suffix) = bytes.split_at(out.len().div_ceil(2));
        let grids = suffix.as_chunks::<SUFFIX>().0;
        for ((group, packed), grid) in
            out.chunks_mut(GROUP).zip(packed.chunks(GROUP / 2)).zip(grids)
        {
            let scale = wide(u16::from_le_bytes([grid[0], grid[1]]));
            let bias = wide(u16::from_le_bytes([grid[2], grid[3]]));
            // The product is exact, 4 bits by 8, and a number in what `holds` lets through.
            let value = |quantized: u8| f32::from(quantized) * scale + bias;
            let (pairs, last) = group.as_chunks_mut::<2>();
            let (whole, half) = packed.split_at(pairs.len());
            for (pair, packed) in pairs.iter_mut().zip(whole) {
                *pair = [value(packed & 15), value(packed >> 4)];
            }
            if let ([last], [packed]) = (last, half) {
                *last = value(packed & 15);
            }
        }
    }
}
