//! Ids that are looked up.

use crate::sizes::Shape;
use std::collections::HashSet;

/// Exponent of the power law.
pub(crate) const ALPHA: f64 = 1.15;

/// Spreads the hot ids of a power law over their table: an odd prime, larger than any table here,
/// hence no two ids meet. (2^32 - 5.)
const SPREAD: u64 = 4_294_967_291;

/// `[tables, batch, ids]`: every row as likely as any other.
pub(crate) fn uniform(shape: &Shape) -> Vec<i64> {
    let mut random = Random(1);
    (0..shape.lookups()).map(|_| random.below(shape.rows) as i64).collect()
}

/// `[tables, batch, ids]`: row `k` (from 1) with density `k^-ALPHA`, by inversion of the continuous
/// power law on `[1, rows + 1)`; the ids of a bag are distinct, as those of cuEmbed's benchmark.
pub(crate) fn power_law(shape: &Shape) -> Vec<i64> {
    let mut random = Random(2);
    let gamma = 1.0 - ALPHA;
    let end = (shape.rows as f64 + 1.0).powf(gamma);
    let mut draw = || {
        let k = (random.unit() * (end - 1.0) + 1.0).powf(1.0 / gamma) as u64;
        ((k - 1).min(shape.rows - 1) * SPREAD % shape.rows) as i64
    };
    let mut ids = Vec::with_capacity(shape.lookups() as usize);
    for _ in 0..shape.tables * shape.batch {
        let bag = ids.len();
        while ids.len() < bag + shape.ids {
            let id = draw();
            if !ids[bag..].contains(&id) {
                ids.push(id);
            }
        }
    }
    ids
}

/// Distinct rows of all tables.
pub(crate) fn distinct(shape: &Shape, ids: &[i64]) -> u64 {
    let of_table = ids.chunks(shape.batch * shape.ids);
    of_table.map(|ids| ids.iter().collect::<HashSet<_>>().len() as u64).sum()
}

/// `xorshift64*` (Vigna 2016, arXiv 1402.6246).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Below `end`, by the high half of a product.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// In `[0, 1)`.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
