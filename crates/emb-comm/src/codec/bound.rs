//! How far a value may be from what was sent: [`Wire::max_error`].

use super::int4::GROUP;
use super::{Wire, int8};

impl Wire {
    /// The largest error of any value of a row, when it comes back from this format.
    ///
    /// `docs/wire.md` derives the bounds. They hold for every row that
    /// [`encode`](Self::encode) takes; infinite for [`Wire::F16`] and [`Wire::Bf16`] where a value
    /// is beyond the largest of the format.
    pub fn max_error(self, row: &[f32]) -> f64 {
        match self {
            Self::F32 => 0.0,
            Self::F16 => float(row, 11, -25, 65520.0),
            Self::Bf16 => float(row, 8, -134, 2f64.powi(128) - 2f64.powi(119)),
            Self::Int8Rowwise => int8(row),
            Self::Fp8E4m3 => fp8(row, 448.0, 1.0 / 28.0, 4, -10),
            Self::Fp8E5m2 => fp8(row, 57344.0, 1.0 / 14.0, 3, -17),
            Self::Int4 => row.chunks(GROUP).map(int4).fold(0.0, f64::max),
        }
    }
}

/// Roundings of `f32` on the way there and back, fewer than four of values up to `most`.
fn roundings(most: f64) -> f64 {
    most * 2f64.powi(-22) + 2f64.powi(-148)
}

fn most(row: &[f32]) -> f64 {
    row.iter().fold(0.0, |most, &value| f64::max(most, f64::from(value).abs()))
}

fn extent(row: &[f32]) -> (f64, f64) {
    row.iter()
        .map(|&value| f64::from(value))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
            (min.min(value), max.max(value))
        })
}

/// Half of the last of `bits` bits, of subnormal numbers `2^least`; infinite from `end` on.
fn float(row: &[f32], bits: i32, least: i32, end: f64) -> f64 {
    let most = most(row);
    if most >= end { f64::INFINITY } else { f64::max(most * 2f64.powi(-bits), 2f64.powi(least)) }
}

/// Half a step; the constant that keeps inverse scales finite moves narrow rows.
fn int8(row: &[f32]) -> f64 {
    let (min, max) = extent(row);
    let range = max - min;
    let epsilon = f64::from(int8::EPSILON);
    let moved = range * (epsilon / (range + epsilon));
    // The scale of a tiny range is subnormal: 255 times its rounding.
    range / 510.0 + moved + 2.0 * roundings(most(row)) + 2f64.powi(-141)
}

/// Half the distance of the two largest codes, times the scale; where the scale is as small as it
/// may be, half of the last of `bits` bits, or `2^least` of it.
fn fp8(row: &[f32], largest: f64, half: f64, bits: i32, least: i32) -> f64 {
    let most = most(row);
    let smallest = f64::from(f32::MIN_POSITIVE);
    let error = if most / largest >= smallest {
        most * half
    } else {
        f64::max(most * 2f64.powi(-bits), smallest * 2f64.powi(least))
    };
    error + roundings(most)
}

/// Half a scale, which is rounded up to 8 bits, as the bias is rounded down.
fn int4(group: &[f32]) -> f64 {
    let (min, max) = extent(group);
    let range = max - min + min.abs() * 2f64.powi(-7) + 2f64.powi(-133);
    let scale = f64::max(range / 15.0 * (1.0 + 2f64.powi(-7)), f64::from(f32::MIN_POSITIVE));
    scale / 2.0 + 2.0 * roundings(most(group))
}
