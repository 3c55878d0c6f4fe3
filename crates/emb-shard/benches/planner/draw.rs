//! Numbers that look random, each found by its place: [`Draw`].

/// A stream of numbers that are the same on every machine, in any order of asking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    seed: u64,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// A stream of its own.
    pub(crate) fn stream(self, number: u64) -> Self {
        Self { seed: mix(self.seed ^ mix(number)) }
    }

    fn bits(self, place: u64) -> u64 {
        mix(self.seed.wrapping_add(mix(place)))
    }

    /// In `0..1`.
    pub(crate) fn unit(self, place: u64) -> f64 {
        (self.bits(place) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// In `0..count`.
    pub(crate) fn below(self, place: u64, count: u64) -> u64 {
        ((u128::from(self.bits(place)) * u128::from(count)) >> 64) as u64
    }

    /// Normal, of mean 0 and deviation 1 (Box and Muller, 1958).
    pub(crate) fn normal(self, place: u64) -> f64 {
        // Never the logarithm of 0.
        let radius = (-2.0 * (1.0 - self.unit(2 * place)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit(2 * place + 1)).cos()
    }
}

/// `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014).
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
