//! Counting distinct ids: exactly while they are few, by estimate beyond.

use std::collections::HashSet;

use serde::Serialize;

/// Most ids of a column that are kept to count exactly.
const EXACT_IDS: usize = 1 << 18;
const REGISTER_BITS: u32 = 14;

/// A number of distinct ids.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distinct {
    /// Counted, up to 262,144.
    Exact(u64),
    /// Estimated.
    Estimate {
        /// The estimate.
        count: u64,
        /// Its standard error, relative.
        relative_error: f64,
    },
}

impl Distinct {
    /// The number, counted or estimated.
    pub fn count(self) -> u64 {
        match self {
            Self::Exact(count) | Self::Estimate { count, .. } => count,
        }
    }
}

/// Takes ids and counts the distinct ones in at most a few MiB.
///
/// Beyond the exact limit this is `HyperLogLog` with 2^14 registers (Flajolet et al.,
/// "`HyperLogLog`: the analysis of a near-optimal cardinality estimation algorithm", 2007): each id
/// is hashed, its first bits choose a register, which keeps the longest run of leading zeros seen
/// in the others; the harmonic mean of `2^register` gives the count with standard error
/// `1.04 / sqrt(2^14)`.
#[derive(Debug)]
pub(crate) struct Counter {
    exact: Option<HashSet<u32>>,
    registers: Vec<u8>,
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self { exact: Some(HashSet::new()), registers: vec![0; 1 << REGISTER_BITS] }
    }

    pub(crate) fn add(&mut self, id: u32) {
        let hash = mix(u64::from(id));
        let register = (hash >> (64 - REGISTER_BITS)) as usize;
        // The bit set at the low end bounds the run of zeros.
        let run = ((hash << REGISTER_BITS) | 1 << (REGISTER_BITS - 1)).leading_zeros() as u8 + 1;
        self.registers[register] = self.registers[register].max(run);
        if let Some(ids) = &mut self.exact {
            ids.insert(id);
            if ids.len() > EXACT_IDS {
                self.exact = None;
            }
        }
    }

    pub(crate) fn distinct(&self) -> Distinct {
        if let Some(ids) = &self.exact {
            return Distinct::Exact(ids.len() as u64);
        }
        let registers = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|&run| (-f64::from(run)).exp2()).sum();
        // alpha_m of the paper, figure 3. Counts beyond the exact limit, 16 a register, are far
        // above the range that needs its small-range correction.
        let alpha = 0.7213 / (1.0 + 1.079 / registers);
        let count = (alpha * registers * registers / sum).round() as u64;
        Distinct::Estimate { count, relative_error: 1.04 / registers.sqrt() }
    }
}

/// Spreads an id over 64 bits (the finalizer of `SplitMix64`, Steele et al., 2014).
pub(crate) fn mix(id: u64) -> u64 {
    let id = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let id = (id ^ (id >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = (id ^ (id >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ (id >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_counted_and_many_estimated_within_four_standard_errors() {
        let mut counter = Counter::new();
        for id in 0..EXACT_IDS as u32 {
            counter.add(id.wrapping_mul(0x9e37_79b1));
            counter.add(id.wrapping_mul(0x9e37_79b1));
        }
        assert_eq!(counter.distinct(), Distinct::Exact(EXACT_IDS as u64));
        for (next, expected) in [(1 << 20, 1_048_576.0), (5_000_000, 5_000_000.0)] {
            for id in 0..next {
                counter.add(id * 7 % 0xffff_fffb);
            }
            // The ids added first are other ones, but few among so many.
            let Distinct::Estimate { count, relative_error } = counter.distinct() else {
                panic!("beyond the limit nothing is exact");
            };
            let low = expected * (1.0 - 4.0 * relative_error);
            let high = (expected + EXACT_IDS as f64) * (1.0 + 4.0 * relative_error);
            assert!((low..=high).contains(&(count as f64)), "{count} for {expected}");
        }
    }
}
