//! Spreads ranks over the rows of a table.

/// The bijection `rank -> (factor * rank + shift) mod rows` of `0..rows`.
///
/// The factor has no divisor in common with `rows`, hence no two ranks meet; it is close to the
/// golden section of `rows`, hence the hottest ranks lie far apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    rows: u64,
    factor: u64,
    shift: u64,
}

impl Permutation {
    /// A permutation of `0..rows` that depends on `key`; `rows` at least 1.
    pub(super) fn new(rows: u64, key: u64) -> Self {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        // Up to a part in 64 off the golden section, so that tables of one size differ.
        let spread = (rows / 64).max(1);
        let mut factor = (rows as f64 * GOLDEN) as u64 + (key >> 32) % spread;
        while gcd(factor, rows) != 1 {
            factor += 1;
        }
        Self { rows, factor: factor % rows, shift: key % rows }
    }

    #[inline]
    pub(super) fn row(&self, rank: u64) -> u64 {
        if self.rows <= 1 << 32 {
            // Below 2^32 * (2^32 - 1) + 2^32 = 2^64, the sum too.
            (self.factor * rank + self.shift) % self.rows
        } else {
            let product = u128::from(self.factor) * u128::from(rank) + u128::from(self.shift);
            (product % u128::from(self.rows)) as u64
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
