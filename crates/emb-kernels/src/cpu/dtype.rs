//! Stored element types: conversions in integer arithmetic, bitwise equal on every machine.

use crate::Dtype;
use half::{bf16, f16};

#[cfg(test)]
mod tests;

/// One stored weight. All conversions are branch-free, so loops over them become vector code.
pub(crate) trait Element: bytemuck::Pod + Send + Sync {
    /// The dtype this is.
    const DTYPE: Dtype;

    /// The value in `f32`; exact.
    fn load(self) -> f32;

    /// The nearest representable value, ties to even.
    fn nearest(x: f32) -> Self;

    /// One of the two representable neighbours of `x`: the one further from zero when the
    /// fraction between them exceeds `bits / 2^16`. Representable values, infinities and NaN
    /// never change. Beyond the largest finite value the neighbour is infinity.
    fn stochastic(x: f32, bits: u16) -> Self;
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;

    #[inline(always)]
    fn load(self) -> f32 {
        self
    }

    #[inline(always)]
    fn nearest(x: f32) -> Self {
        x
    }

    #[inline(always)]
    fn stochastic(x: f32, _bits: u16) -> Self {
        x
    }
}

impl Element for bf16 {
    const DTYPE: Dtype = Dtype::Bf16;

    #[inline(always)]
    fn load(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn nearest(x: f32) -> Self {
        let bits = x.to_bits();
        let rounded = (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16;
        Self::from_bits(if is_finite(bits) { rounded } else { special_bf16(bits) })
    }

    #[inline(always)]
    fn stochastic(x: f32, random: u16) -> Self {
        let bits = x.to_bits();
        let rounded = (bits.wrapping_add(u32::from(!random)) >> 16) as u16;
        Self::from_bits(if is_finite(bits) { rounded } else { special_bf16(bits) })
    }
}

impl Element for f16 {
    const DTYPE: Dtype = Dtype::F16;

    #[inline(always)]
    fn load(self) -> f32 {
        let half = u32::from(self.to_bits());
        let magnitude = half & 0x7fff;
        // Exponent and fraction moved to their place in an f32 are 2^-112 times the value, for
        // normal and subnormal numbers alike; the product is exact.
        let finite = (f32::from_bits(magnitude << 13) * f32::from_bits((254 - 15) << 23)).to_bits();
        let special = magnitude << 13 | 0x7f80_0000;
        let bits = if magnitude < 0x7c00 { finite } else { special };
        f32::from_bits(bits | (half & 0x8000) << 16)
    }

    #[inline(always)]
    fn nearest(x: f32) -> Self {
        let magnitude = x.to_bits() & 0x7fff_ffff;
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_add(0xfff + odd).wrapping_sub(REBIAS) >> 13;
        // Adding 0.5 shifts a subnormal's fraction into the lowest bits, rounded by the adder.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        encode_f16(x, normal, subnormal)
    }

    #[inline(always)]
    fn stochastic(x: f32, random: u16) -> Self {
        let magnitude = x.to_bits() & 0x7fff_ffff;
        let normal = magnitude.wrapping_add(u32::from(!random) >> 3).wrapping_sub(REBIAS) >> 13;
        // Multiples of the subnormal step 2^-24; the clamp keeps the unused lane in range.
        let steps = (f32::from_bits(magnitude) * 16_777_216.0).min(1024.0);
        let whole = steps as u32;
        let up = (steps - whole as f32) * 65_536.0 > f32::from(random);
        encode_f16(x, normal, whole + u32::from(up))
    }
}

/// Difference of the exponent biases of `f32` and `f16`, at the exponent's place.
const REBIAS: u32 = 112 << 23;

#[inline(always)]
fn is_finite(bits: u32) -> bool {
    bits & 0x7fff_ffff < 0x7f80_0000
}

/// Infinity as it is; NaN with a bit set that keeps it one whatever its payload.
#[inline(always)]
fn special_bf16(bits: u32) -> u16 {
    let quiet = if bits.trailing_zeros() >= 23 { 0 } else { 0x40 };
    (bits >> 16) as u16 | quiet
}

/// Chooses between the encodings of `x` by its range.
#[inline(always)]
fn encode_f16(x: f32, normal: u32, subnormal: u32) -> f16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let nan = 0x7e00 | (magnitude >> 13 & 0x1ff);
    let large = if magnitude > 0x7f80_0000 { nan } else { 0x7c00 };
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let half = if magnitude < 0x4780_0000 { finite } else { large };
    f16::from_bits((half | (bits >> 16 & 0x8000)) as u16)
}
