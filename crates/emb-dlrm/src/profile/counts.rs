//! Look-ups of each row of a table, in bounded memory: [`RowCounts`].

use crate::data::{Distinct, mix};
use emb_shard::{Bucket, Histogram};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a count of its own for each row of a table.
const DENSE_ROW_BYTES: u64 = 8;
/// Bytes of a slot of a hash map from row to count: both, and the map's own byte.
const SLOT_BYTES: u64 = 17;
/// Marks the counts of rows that stay whatever their hash.
const HOT: u64 = 1 << 63;
/// Makes the sample independent of where rows lie in the hash map.
const SALT: u64 = 0x5851_f42d_4c95_7f2d;

/// Counts how often each row of a table is looked up.
///
/// A table whose rows fit into the memory has a count for each. Any other is counted in a hash map;
/// as long as the rows seen fit there, the counts are exact, too. When it is full for the first
/// time, the most frequent quarter of the rows in it stays for good, and the others become a
/// sample: rows whose hash ends in `level` zero bits, where `level` grows by one each time the map
/// is full again. Whether a row is in the sample depends on the row alone (distinct sampling,
/// Gibbons, VLDB 2001), and a row that is in it now has been since the beginning, so its count is
/// exact; each stands for `2^level` rows. Sampling the rare rows alone keeps the error small: what
/// varies between samples is the weight of the frequent ones.
///
/// The same look-ups in the same order give the same result.
#[derive(Clone, Debug)]
pub struct RowCounts {
    rows: u64,
    lookups: u64,
    counts: Counts,
}

#[derive(Clone, Debug)]
enum Counts {
    Dense(Vec<u64>),
    Hashed(Hashed),
}

#[derive(Clone, Debug)]
struct Hashed {
    by_row: HashMap<u64, u64, BuildHasherDefault<RowHasher>>,
    /// Most rows in it: half of what it was made for, beyond which it might grow.
    most: usize,
    level: u32,
}

/// Hashes the one number that a row is.
#[derive(Clone, Copy, Debug, Default)]
struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

impl RowCounts {
    /// Fewest bytes that a table can be counted in.
    pub const LEAST_BYTES: u64 = 64 << 10;

    /// Bytes with which every row of a table has a count of its own.
    pub fn bytes_wanted(rows: u64) -> u64 {
        rows.saturating_mul(DENSE_ROW_BYTES).max(Self::LEAST_BYTES)
    }

    /// For a table of `rows` rows, in at most `bytes` bytes, of which
    /// [`LEAST_BYTES`](Self::LEAST_BYTES) are taken in any case.
    pub fn new(rows: u64, bytes: u64) -> Self {
        let bytes = bytes.max(Self::LEAST_BYTES);
        let counts = if Self::bytes_wanted(rows) <= bytes {
            Counts::Dense(vec![0; rows as usize])
        } else {
            Counts::Hashed(Hashed::new(bytes))
        };
        Self { rows, lookups: 0, counts }
    }

    /// Counts one look-up of `row`.
    ///
    /// # Panics
    /// If the table has no such row.
    pub fn add(&mut self, row: u64) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.lookups += 1;
        match &mut self.counts {
            Counts::Dense(counts) => counts[row as usize] += 1,
            Counts::Hashed(hashed) => hashed.add(row),
        }
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Look-ups counted, always exact.
    pub fn lookups(&self) -> u64 {
        self.lookups
    }

    /// Rows that were looked up at least once.
    pub fn seen(&self) -> Distinct {
        match &self.counts {
            Counts::Dense(counts) => {
                Distinct::Exact(counts.iter().filter(|&&count| count > 0).count() as u64)
            }
            Counts::Hashed(hashed) => hashed.seen(self.rows),
        }
    }

    /// The most frequent rows among those that have a count of their own, by count, equal ones
    /// ascending: `most` at most, each looked up at least twice. Once is no sign of being hot.
    ///
    /// Rows without a count of their own may be as frequent as the last ones here, where
    /// [`seen`](Self::seen) is an estimate.
    pub fn hot(&self, most: usize) -> Vec<u64> {
        let of_row = |row: u64| match &self.counts {
            Counts::Dense(counts) => counts[row as usize],
            Counts::Hashed(hashed) => hashed.by_row.get(&row).map_or(0, |&count| count & !HOT),
        };
        let least = match &self.counts {
            Counts::Dense(counts) => least_of_most(counts.iter().copied(), most),
            Counts::Hashed(hashed) => least_of_most(hashed.counts(), most),
        };
        let mut hot: Vec<u64> = match &self.counts {
            Counts::Dense(_) => (0..self.rows).filter(|&row| of_row(row) >= least).collect(),
            Counts::Hashed(hashed) => {
                hashed.by_row.keys().copied().filter(|&row| of_row(row) >= least).collect()
            }
        };
        hot.sort_unstable_by_key(|&row| (Reverse(of_row(row)), row));
        hot.truncate(most);
        hot
    }

    /// The counts in buckets; `None` without look-ups. Estimated where [`seen`](Self::seen) is.
    pub fn histogram(&self) -> Option<Histogram> {
        match &self.counts {
            Counts::Dense(counts) => of_counts(counts.iter().copied().filter(|&count| count > 0)),
            Counts::Hashed(hashed) => hashed.histogram(self.rows),
        }
    }
}

impl Hashed {
    fn new(bytes: u64) -> Self {
        // A power of two of slots, of which seven eighths are used before the map grows. With half
        // of those it never does: removals leave marks, and a map that is less than half full
        // removes them in place.
        let slots = ((bytes / SLOT_BYTES + 1).next_power_of_two() / 2) as usize;
        let made_for = slots / 8 * 7;
        let by_row = HashMap::with_capacity_and_hasher(made_for, BuildHasherDefault::default());
        Self { by_row, most: made_for / 2, level: 0 }
    }

    fn add(&mut self, row: u64) {
        if let Some(count) = self.by_row.get_mut(&row) {
            *count += 1;
        } else if level_of(row) >= self.level {
            while self.by_row.len() >= self.most {
                self.thin();
            }
            if level_of(row) >= self.level {
                self.by_row.insert(row, 1);
            }
        }
    }

    /// Takes rows out of the full map: half of those that are in the sample by their hash.
    fn thin(&mut self) {
        if self.level == 0 {
            let hot_from = self.hot_from();
            for count in self.by_row.values_mut().filter(|count| **count >= hot_from) {
                *count |= HOT;
            }
        }
        self.level += 1;
        let level = self.level;
        self.by_row.retain(|&row, count| *count & HOT != 0 || level_of(row) >= level);
    }

    /// All counts.
    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_row.values().map(|count| count & !HOT)
    }

    /// The least count with which at most a quarter of the rows has as many look-ups or more.
    fn hot_from(&self) -> u64 {
        let mut rows_of_count = BTreeMap::<u64, usize>::new();
        for &count in self.by_row.values() {
            *rows_of_count.entry(count).or_default() += 1;
        }
        let mut hot = 0;
        for (count, rows) in rows_of_count.into_iter().rev() {
            hot += rows;
            if hot > self.most / 4 {
                return count + 1;
            }
        }
        0
    }

    /// Counts of the rows that stay in any case, and of the sample.
    fn parts(&self) -> (Vec<u64>, Vec<u64>) {
        let (hot, sample): (Vec<u64>, _) =
            self.by_row.values().partition(|&&count| count & HOT != 0);
        (hot.into_iter().map(|count| count & !HOT).collect(), sample)
    }

    fn seen(&self, rows: u64) -> Distinct {
        let (hot, sample) = self.parts();
        let (hot, sample) = (hot.len() as u64, sample.len() as u64);
        if self.level == 0 {
            return Distinct::Exact(hot + sample);
        }
        // Each of n rows is in the sample with probability p = 2^-level: the number s of rows in it
        // is binomial, s / p has the variance n (1 - p) / p.
        let estimate = (sample << self.level) as f64;
        let part_left_out = 1.0 - (-f64::from(self.level)).exp2();
        let deviation = (estimate * part_left_out / (1.0 - part_left_out)).sqrt();
        let count = (hot + (sample << self.level)).min(rows);
        Distinct::Estimate { count, relative_error: deviation / count.max(1) as f64 }
    }

    fn histogram(&self, rows: u64) -> Option<Histogram> {
        let (hot, sample) = self.parts();
        let level = self.level;
        let of = |counts: Vec<u64>| {
            of_counts(counts.into_iter()).map_or_else(Vec::new, Vec::<Bucket>::from)
        };
        let times = |bucket: Bucket| Bucket {
            rows: bucket.rows << level,
            lookups: bucket.lookups << level,
        };
        let mut buckets = of(hot);
        buckets.extend(of(sample).into_iter().map(times));
        // Compared as products, which are exact: look-ups a row, descending.
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        buckets.sort_by(|a, b| product(b.lookups, a.rows).cmp(&product(a.lookups, b.rows)));
        cut(&mut buckets, rows);
        Histogram::new(buckets).ok()
    }
}

/// Takes the rows off the end that an estimate has more than the table.
fn cut(buckets: &mut Vec<Bucket>, rows: u64) {
    let mut left = rows;
    for bucket in buckets.iter_mut() {
        if bucket.rows > left {
            let share = u128::from(bucket.lookups) * u128::from(left) / u128::from(bucket.rows);
            (bucket.rows, bucket.lookups) = (left, share as u64);
        }
        left -= bucket.rows;
    }
    buckets.retain(|bucket| bucket.rows > 0);
}

/// The largest count that `most` rows or more have or exceed; at least 2.
fn least_of_most(counts: impl Iterator<Item = u64>, most: usize) -> u64 {
    let mut rows_of_count = BTreeMap::<u64, usize>::new();
    for count in counts.filter(|&count| count >= 2) {
        *rows_of_count.entry(count).or_default() += 1;
    }
    let mut rows = 0;
    for (count, more) in rows_of_count.into_iter().rev() {
        rows += more;
        if rows >= most {
            return count;
        }
    }
    2
}

fn of_counts(counts: impl Iterator<Item = u64>) -> Option<Histogram> {
    // The only errors are no look-ups, and sums beyond 64 bits, which are look-ups counted one by
    // one.
    Histogram::of_counts(counts).ok()
}

/// Zero bits that the hash of a row ends in: `n` or more for one row in `2^n`.
fn level_of(row: u64) -> u32 {
    mix(row ^ SALT).trailing_zeros()
}
