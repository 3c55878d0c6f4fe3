//! Ids of the benches.

/// `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Uniform ids, or Zipf 1.05 over ranks by inversion of the distribution, spread over the rows.
pub(crate) fn draw_ids(n: usize, rows: u64, distribution: &str) -> Vec<i64> {
    let mut random = Random(11);
    if distribution == "uniform" {
        return (0..n).map(|_| (random.unit() * rows as f64) as i64).collect();
    }
    let mut sums: Vec<f64> = Vec::with_capacity(rows as usize);
    let mut total = 0.0;
    for rank in 1..=rows {
        total += (rank as f64).powf(-1.05);
        sums.push(total);
    }
    let spread = |rank: u64| ((rank * 61_803 + 17) % rows) as i64;
    let mut rank = || {
        let at = random.unit() * total;
        sums.partition_point(|&sum| sum < at) as u64
    };
    (0..n).map(|_| spread(rank().min(rows - 1))).collect()
}
