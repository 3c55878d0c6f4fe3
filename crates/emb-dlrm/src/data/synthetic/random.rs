//! Random numbers from counters: cheap to start anywhere.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014): a bijection of 64 bits.
#[inline]
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A key for `name`, of which every byte counts.
pub(super) fn key(seed: u64, name: &str) -> u64 {
    let start = mix(seed.wrapping_add(GAMMA));
    name.bytes().fold(start, |key, byte| mix((key ^ u64::from(byte)).wrapping_add(GAMMA)))
}

/// A standardised, nearly normal number from 64 random bits: the sum of four uniform 16-bit
/// numbers (Irwin-Hall), mean 0, variance 1, within 3.47.
#[inline]
pub(super) fn normal(bits: u64) -> f64 {
    let sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    // Four uniforms over 65536 have mean 2 * 65535 and variance (65536^2 - 1) / 3.
    (sum as f64 - 131_070.0) * (3.0_f64.sqrt() / 65_536.0)
}

/// The random numbers of one sample: `SplitMix64` from a start that depends on seed and index.
#[derive(Debug)]
pub(super) struct Stream(u64);

impl Stream {
    #[inline]
    pub(super) fn new(seed: u64, index: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(GAMMA)) ^ index.wrapping_mul(GAMMA)))
    }

    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number from `[0, 1)` with 53 random bits.
    #[inline]
    pub(super) fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}
