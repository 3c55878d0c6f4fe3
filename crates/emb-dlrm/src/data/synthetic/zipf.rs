//! Zipf-distributed ranks in constant memory.

use super::random::Stream;

/// `P(k) ~ k^-s` for `k` in `1..=n`, by rejection-inversion.
///
/// Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", 1996: the integral `H` of `h(x) = x^-s` over `[k - 1/2, k + 1/2]` covers
/// `h(k)`, so a point drawn uniformly under `h` is rounded to a rank and nearly always accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    n: f64,
    s: f64,
    /// `H(3/2) - h(1)` and `H(n + 1/2)`, the ends of the range of `u`.
    low: f64,
    high: f64,
    /// Points at most this far below their rank are accepted without a test.
    sure: f64,
}

impl Zipf {
    /// Ranks `1..=n` with exponent `s >= 0`; `n` below 2^53.
    pub(super) fn new(n: u64, s: f64) -> Self {
        let n = n as f64;
        let sure = 2.0 - inverse(integral(2.5, s) - density(2.0, s), s);
        Self { n, s, low: integral(1.5, s) - 1.0, high: integral(n + 0.5, s), sure }
    }

    #[inline]
    pub(super) fn sample(&self, random: &mut Stream) -> u64 {
        loop {
            let u = self.high + random.uniform() * (self.low - self.high);
            let x = inverse(u, self.s);
            // Rounding may leave the range by one at its ends.
            let k = ((x + 0.5) as u64 as f64).clamp(1.0, self.n);
            if k - x <= self.sure || u >= integral(k + 0.5, self.s) - density(k, self.s) {
                return k as u64;
            }
        }
    }
}

/// `h(x) = x^-s`.
fn density(x: f64, s: f64) -> f64 {
    (-s * x.ln()).exp()
}

/// `H(x) = (x^(1-s) - 1) / (1 - s)`, the integral of `h` from 1; `ln x` for `s = 1`.
fn integral(x: f64, s: f64) -> f64 {
    if s == 1.0 { x.ln() } else { ((1.0 - s) * x.ln()).exp_m1() / (1.0 - s) }
}

/// The inverse of [`integral`].
#[inline]
fn inverse(y: f64, s: f64) -> f64 {
    if s == 1.0 {
        return y.exp();
    }
    let t = ((1.0 - s) * y).max(-1.0);
    // The plain logarithm is twice as fast; near s = 1 its rounding would be magnified.
    let log = if (1.0 - s).abs() > 1e-3 { (1.0 + t).ln() } else { t.ln_1p() };
    (log / (1.0 - s)).exp()
}
