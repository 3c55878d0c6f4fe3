//! Sizes, and the ids that are looked up.

use std::collections::HashSet;
use std::path::PathBuf;

/// One problem size.
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) tables: usize,
    pub(crate) rows: u64,
    pub(crate) dim: usize,
    pub(crate) batch: usize,
    pub(crate) ids: usize,
}

pub(crate) const CONFIGS: [Config; 3] = [
    Config { name: "a", tables: 8, rows: 1_000_000, dim: 64, batch: 2048, ids: 20 },
    Config { name: "b", tables: 26, rows: 100_000, dim: 128, batch: 2048, ids: 1 },
    Config { name: "c", tables: 8, rows: 1_000_000, dim: 128, batch: 512, ids: 50 },
];

/// Batches drawn where none are given.
const DRAWN: usize = 8;

/// Exponent of the Zipf distribution over ranks.
const ALPHA: f64 = 1.05;

/// `[batches, tables, batch, ids]` row ids.
pub(crate) struct Indices {
    values: Vec<i64>,
    per_batch: usize,
    /// Ids of a bag.
    pub(crate) ids: usize,
    /// Mean number of distinct rows of a batch, over all tables.
    pub(crate) distinct_rows: f64,
}

impl Indices {
    pub(crate) fn load(config: &Config, distribution: &str) -> Self {
        let per_batch = config.tables * config.batch * config.ids;
        let values = std::env::var_os("PEER_DATA")
            .map(|folder| {
                let file = format!("idx_{}_{distribution}.bin", config.name);
                PathBuf::from(folder).join(file)
            })
            .and_then(|path| std::fs::read(path).ok())
            .map_or_else(
                || draw(config, distribution),
                |bytes| {
                    let ids = bytes.chunks_exact(8);
                    ids.map(|id| i64::from_le_bytes(id.try_into().expect("eight bytes"))).collect()
                },
            );
        let bags = config.batch * config.ids;
        let distinct: usize =
            values.chunks(bags).map(|ids| ids.iter().collect::<HashSet<_>>().len()).sum();
        let batches = (values.len() / per_batch) as f64;
        Self { values, per_batch, ids: config.ids, distinct_rows: distinct as f64 / batches }
    }

    pub(crate) fn batches(&self) -> usize {
        self.values.len() / self.per_batch
    }

    pub(crate) fn batch(&self, batch: usize) -> &[i64] {
        &self.values[batch * self.per_batch..(batch + 1) * self.per_batch]
    }
}

/// Ids of the same kind as the files: uniform, or Zipf over ranks with a shuffle for each table.
fn draw(config: &Config, distribution: &str) -> Vec<i64> {
    let mut random = Random(20_261_129);
    let bag = config.batch * config.ids;
    let mut values = vec![0; DRAWN * config.tables * bag];
    let mut cdf: Vec<f64> = (1..=config.rows).map(|rank| (rank as f64).powf(-ALPHA)).collect();
    let mut sum = 0.0;
    for p in &mut cdf {
        sum += *p;
        *p = sum;
    }
    for table in 0..config.tables {
        let mut row_of_rank: Vec<i64> = (0..config.rows as i64).collect();
        for i in (1..row_of_rank.len()).rev() {
            row_of_rank.swap(i, random.below(i as u64 + 1) as usize);
        }
        for batch in 0..DRAWN {
            let start = (batch * config.tables + table) * bag;
            for id in &mut values[start..start + bag] {
                *id = if distribution == "uniform" {
                    random.below(config.rows) as i64
                } else {
                    let at = random.unit() * sum;
                    row_of_rank[cdf.partition_point(|&p| p < at).min(row_of_rank.len() - 1)]
                };
            }
        }
    }
    values
}

/// `SplitMix64`.
pub(crate) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
