//! What follows from an access pattern: [`RowFrequencies`].

use super::steps::Steps;
use super::zipf::Zipf;
use super::{Access, Histogram};
use crate::{Error, Result, RowRange};

/// The probabilities of the rows of one table, in order of frequency rank.
///
/// Errors are below 1e-12 of a share and 1e-9 of a number of distinct rows, against the sum row by
/// row over the same law.
///
/// ```
/// use emb_shard::{Access, RowFrequencies};
///
/// let table = RowFrequencies::new(&Access::Zipf { exponent: 1.05 }, 1_000_000_000)?;
/// assert!(table.share_of_top(10_000) > 0.5);
/// // Eight ranks of one node look up 100,000 rows each: many of them are the same.
/// let each = table.expected_unique(1e5)?;
/// let together = table.expected_unique_of_group(1e5, 8)?;
/// assert!(8.0 * each > 370_000.0 && together < 300_000.0);
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RowFrequencies {
    rows: u64,
    law: Law,
}

#[derive(Clone, Debug, PartialEq)]
enum Law {
    Zipf(Zipf),
    Steps(Steps),
}

/// Largest exponent: with it, probabilities of 2^64 rows still are normal numbers.
const MAX_EXPONENT: f64 = 15.0;

impl RowFrequencies {
    /// `access` over a table of `rows` rows.
    ///
    /// # Errors
    /// No rows; an exponent outside `0..=15`; a histogram of more rows than the table.
    pub fn new(access: &Access, rows: u64) -> Result<Self> {
        if rows == 0 {
            return Err(Error::BadAccess { what: "there are no rows".into() });
        }
        let law = match access {
            Access::Uniform => Law::Steps(Steps::uniform(rows)),
            Access::Zipf { exponent } => Law::Zipf(zipf(*exponent, rows)?),
            Access::Histogram(histogram) => Law::Steps(steps(histogram, rows)?),
        };
        Ok(Self { rows, law })
    }

    /// Rows of the table, at least 1.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Probability that one look-up asks for the row of frequency rank `rank`, from 0.
    ///
    /// # Errors
    /// A rank outside the table.
    pub fn probability(&self, rank: u64) -> Result<f64> {
        if rank >= self.rows {
            return Err(Error::NoSuch { kind: "row", index: rank, count: self.rows });
        }
        Ok(match &self.law {
            Law::Zipf(zipf) => zipf.probability(rank),
            Law::Steps(steps) => steps.probability(rank),
        })
    }

    /// Part of the look-ups, `0..=1`, that the `rows` most frequent rows take; 1 from all rows on.
    pub fn share_of_top(&self, rows: u64) -> f64 {
        if rows >= self.rows {
            return 1.0;
        }
        match &self.law {
            Law::Zipf(zipf) => zipf.share_of_top(rows),
            Law::Steps(steps) => steps.share_of_top(rows),
        }
    }

    /// Fewest rows, most frequent first, that take at least `share` of the look-ups; some more where
    /// they have less than what shares are rounded by.
    ///
    /// # Errors
    /// A share outside `0..=1`.
    pub fn rows_for_share(&self, share: f64) -> Result<u64> {
        if !(0.0..=1.0).contains(&share) {
            let what = format!("a share of {share} of the look-ups: must be in 0..=1");
            return Err(Error::BadAccess { what });
        }
        let looked_up = match &self.law {
            Law::Zipf(_) => self.rows,
            Law::Steps(steps) => steps.rows(),
        };
        if share == 1.0 {
            return Ok(looked_up);
        }
        let (mut low, mut high) = (0, looked_up);
        while low < high {
            let middle = u64::midpoint(low, high);
            if self.share_of_top(middle) >= share {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// Expected number of distinct rows among `lookups` independent look-ups: the sum over the rows
    /// of `1 - (1 - p)^lookups`.
    ///
    /// `lookups` may be a mean, such as samples times a pooling factor.
    ///
    /// # Errors
    /// Look-ups that are negative or not finite.
    pub fn expected_unique(&self, lookups: f64) -> Result<f64> {
        self.expected_unique_between(0, self.rows, lookups)
    }

    /// As [`RowFrequencies::expected_unique`], counting only rows of the frequency ranks `rows`:
    /// `lookups` are those of the whole table, `rows` a tier of it.
    ///
    /// # Errors
    /// Look-ups that are negative or not finite; ranks outside the table.
    pub fn expected_unique_in(&self, rows: RowRange, lookups: f64) -> Result<f64> {
        if rows.end() > self.rows {
            return Err(Error::NoSuch { kind: "row", index: rows.end() - 1, count: self.rows });
        }
        self.expected_unique_between(rows.start(), rows.end(), lookups)
    }

    /// Expected number of distinct rows among the look-ups of `ranks` ranks together, each with
    /// `lookups_per_rank`: what a node fetches that asks for every row once.
    ///
    /// # Errors
    /// Look-ups that are negative or not finite.
    pub fn expected_unique_of_group(&self, lookups_per_rank: f64, ranks: u32) -> Result<f64> {
        self.expected_unique(lookups_per_rank * f64::from(ranks))
    }

    fn expected_unique_between(&self, start: u64, end: u64, lookups: f64) -> Result<f64> {
        if !(lookups.is_finite() && lookups >= 0.0) {
            let what = format!("{lookups} look-ups: must be finite and at least 0");
            return Err(Error::BadAccess { what });
        }
        Ok(match &self.law {
            Law::Zipf(zipf) => zipf.sum_touched(start, end, lookups),
            Law::Steps(steps) => steps.sum(start, end, |p| touched(p, lookups)),
        })
    }
}

/// `1 - (1 - p)^n` without cancellation for small `p`.
pub(super) fn touched(p: f64, n: f64) -> f64 {
    // 0 times the infinite logarithm of a certain row would not be a number.
    if n == 0.0 { 0.0 } else { -(n * (-p).ln_1p()).exp_m1() }
}

fn zipf(exponent: f64, rows: u64) -> Result<Zipf> {
    if !(0.0..=MAX_EXPONENT).contains(&exponent) {
        let what = format!("a Zipf exponent of {exponent}: must be in 0..={MAX_EXPONENT}");
        return Err(Error::BadAccess { what });
    }
    Ok(Zipf::new(exponent, rows))
}

fn steps(histogram: &Histogram, rows: u64) -> Result<Steps> {
    if histogram.rows() > rows {
        let what = format!("a histogram of {} rows for a table of {rows}", histogram.rows());
        return Err(Error::BadAccess { what });
    }
    Ok(Steps::of(histogram))
}
