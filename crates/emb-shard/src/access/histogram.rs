//! Measured look-ups: [`Histogram`].

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Rows that are looked up about equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Rows, at least 1.
    pub rows: u64,
    /// Look-ups of all of them together.
    pub lookups: u64,
}

/// Look-ups of the rows of a table in buckets by descending frequency.
///
/// Written as a list of buckets. Inside a bucket every row counts as equally frequent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Bucket>", into = "Vec<Bucket>")]
pub struct Histogram {
    buckets: Vec<Bucket>,
    rows: u64,
    lookups: u64,
}

/// Buckets of [`Histogram::of_counts`] for each doubling of the count.
const BUCKETS_PER_DOUBLING: f64 = 8.0;

impl Histogram {
    /// Checks and keeps `buckets`.
    ///
    /// # Errors
    /// By number of the bucket: no rows, more look-ups a row than in the bucket before; rows or
    /// look-ups beyond 64 bits in all; no look-up at all.
    pub fn new(buckets: Vec<Bucket>) -> Result<Self> {
        let bad = |what: String| Error::BadAccess { what };
        let (mut rows, mut lookups) = (0_u64, 0_u64);
        for (number, bucket) in buckets.iter().enumerate() {
            if bucket.rows == 0 {
                return Err(bad(format!("bucket {number} of the histogram has no rows")));
            }
            if number > 0 && more_frequent(*bucket, buckets[number - 1]) {
                let what = format!(
                    "bucket {number} of the histogram has more look-ups a row than bucket {}: \
                     buckets must descend",
                    number - 1
                );
                return Err(bad(what));
            }
            let sums = (rows.checked_add(bucket.rows), lookups.checked_add(bucket.lookups));
            let (Some(more_rows), Some(more_lookups)) = sums else {
                return Err(bad(format!("up to bucket {number} the histogram exceeds 64 bits")));
            };
            (rows, lookups) = (more_rows, more_lookups);
        }
        if lookups == 0 {
            return Err(bad("the histogram has no look-ups".into()));
        }
        Ok(Self { buckets, rows, lookups })
    }

    /// The histogram of rows that were looked up `counts` times each, in any order.
    ///
    /// Counts of one bucket differ by at most a factor of `2^(1/8)`, and counts up to 11 have a
    /// bucket each. Distinct rows computed from the buckets instead of the counts are too many by
    /// less than 0.1 %: a mean stands for counts within `q = 2^(1/8)`, and by Jensen's inequality
    /// `1 - e^-x` is off by at most `0.081 (q - 1)^2` of itself.
    ///
    /// # Errors
    /// No count above 0; a sum beyond 64 bits.
    pub fn of_counts(counts: impl IntoIterator<Item = u64>) -> Result<Self> {
        let mut by_size = std::collections::BTreeMap::<u32, Bucket>::new();
        for count in counts {
            let size = match count {
                0 => 0,
                _ => 1 + ((count as f64).log2() * BUCKETS_PER_DOUBLING).floor() as u32,
            };
            let bucket = by_size.entry(size).or_insert(Bucket { rows: 0, lookups: 0 });
            bucket.rows += 1;
            bucket.lookups = bucket.lookups.checked_add(count).ok_or_else(|| Error::BadAccess {
                what: "the counts of the histogram exceed 64 bits".into(),
            })?;
        }
        Self::new(by_size.into_values().rev().collect())
    }

    /// The buckets, most frequent rows first.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Rows of all buckets.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Look-ups of all buckets, at least 1.
    pub fn lookups(&self) -> u64 {
        self.lookups
    }
}

/// Whether rows of `a` have more look-ups than rows of `b`.
fn more_frequent(a: Bucket, b: Bucket) -> bool {
    let product = |x: u64, y: u64| u128::from(x) * u128::from(y);
    product(a.lookups, b.rows) > product(b.lookups, a.rows)
}

impl TryFrom<Vec<Bucket>> for Histogram {
    type Error = Error;

    fn try_from(buckets: Vec<Bucket>) -> Result<Self> {
        Self::new(buckets)
    }
}

impl From<Histogram> for Vec<Bucket> {
    fn from(histogram: Histogram) -> Self {
        histogram.buckets
    }
}
