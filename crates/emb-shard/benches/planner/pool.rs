//! A SYNTHETIC pool of 856 tables with the published statistics of a real one: [`pool`].
//!
//! The pool of the planner papers, `dlrm_datasets` of Meta (commit 6f46ba7, MIT), has 856 tables and
//! a batch of 65,536 samples. Its tables are not to be had, only sums over all of them. The tables
//! here are drawn so that their sums are those: look-ups, distinct rows, and how both spread over
//! rows by the number of their uses in the batch. What the sums leave open is assumed, and said
//! where it is.

use crate::draw::Draw;
use emb_shard::{Bucket, Histogram};

/// Tables.
pub(crate) const TABLES: usize = 856;

/// Samples of the batch.
pub(crate) const BATCH: u64 = 65_536;

/// Look-ups of the batch, all tables: `fbgemm_t856_bs65536.pt`.
const LOOKUPS: f64 = 887_017_990.0;

/// Distinct rows among them.
const DISTINCT: f64 = 128_435_723.0;

/// Part of the distinct rows by uses in the batch: 1, 2, 3 to 4, 5 to 8, ... 16,385 to 32,768, more.
const ROWS_BY_USES: [f64; BINS] = [
    0.473, 0.152, 0.139, 0.112, 0.072, 0.032, 0.011, 0.005, 0.002, 0.001, 0.0, 0.0, 0.0, 0.0, 0.0,
    0.0, 0.0,
];

/// Part of the look-ups that go to these rows.
const LOOKUPS_BY_USES: [f64; BINS] = [
    0.069, 0.044, 0.068, 0.101, 0.121, 0.104, 0.073, 0.058, 0.052, 0.05, 0.049, 0.048, 0.048,
    0.043, 0.031, 0.023, 0.019,
];

const BINS: usize = 17;

/// Assumed: ids a bag of the tables are log-normal with this deviation of the logarithm.
const POOLING_DEVIATION: f64 = 1.2;

/// Assumed: the look-ups of a table lean to often used rows as `uses^lean`, with this deviation of
/// `lean` over tables.
const LEAN_DEVIATION: f64 = 0.2;

/// Assumed: a table has up to so many times the rows that a batch uses, evenly in the logarithm.
const MOST_ROWS_OVER_USED: f64 = 64.0;

/// Fewest rows of a table in NeuroShard's pool (commit ec7ca74).
const LEAST_ROWS: u64 = 100;

/// A table without a dim, which tasks give it.
#[derive(Clone, Debug)]
pub(crate) struct PoolTable {
    pub(crate) rows: u64,
    pub(crate) pooling_factor: f64,
    /// Look-ups of the batch.
    pub(crate) used: Histogram,
}

/// The pool; the same each time.
pub(crate) fn pool() -> Vec<PoolTable> {
    let draw = Draw::new(856);
    let lookups = lookups_by_table(draw.stream(0));
    let by_uses = spread(&lookups, draw.stream(1));
    // Parts of rows are left for the next table, so that sums come out even for rare rows.
    let mut left = [0.0; BINS];
    let tables = lookups.iter().zip(&by_uses).enumerate();
    tables
        .map(|(number, (&lookups, by_uses))| {
            let used = histogram(lookups, by_uses, &mut left);
            let most = MOST_ROWS_OVER_USED.powf(draw.stream(2).unit(number as u64));
            let rows = ((used.rows() as f64 * most) as u64).max(used.rows()).max(LEAST_ROWS);
            PoolTable { rows, pooling_factor: lookups / BATCH as f64, used }
        })
        .collect()
}

/// Mean uses of a row of each bin: as the two distributions give it, where rounding to a thousandth
/// leaves them a meaning, else the mean of rows evenly in the logarithm.
fn uses() -> [f64; BINS] {
    std::array::from_fn(|bin| {
        let most = 2_f64.powi(bin as i32);
        let least = if bin == 0 { 1.0 } else { most / 2.0 };
        if ROWS_BY_USES[bin] < 0.002 {
            return (most - least) / 2_f64.ln();
        }
        let mean = LOOKUPS_BY_USES[bin] * LOOKUPS / (ROWS_BY_USES[bin] * DISTINCT);
        mean.clamp(least, most)
    })
}

fn lookups_by_table(draw: Draw) -> Vec<f64> {
    let drawn = (0..TABLES as u64).map(|table| (POOLING_DEVIATION * draw.normal(table)).exp());
    let drawn: Vec<f64> = drawn.collect();
    let sum: f64 = drawn.iter().sum();
    drawn.iter().map(|weight| weight / sum * LOOKUPS).collect()
}

/// Look-ups of every table by uses of their rows, so that both sums are as given: proportional
/// fitting in turn (Deming and Stephan, 1940).
fn spread(lookups: &[f64], draw: Draw) -> Vec<[f64; BINS]> {
    let (uses, sum) = (uses(), LOOKUPS_BY_USES.iter().sum::<f64>());
    let lean = |table| LEAN_DEVIATION * draw.normal(table);
    let leaning =
        |lean: f64| std::array::from_fn(|bin| LOOKUPS_BY_USES[bin] * uses[bin].powf(lean));
    let mut cells: Vec<[f64; BINS]> =
        (0..lookups.len() as u64).map(|table| leaning(lean(table))).collect();
    for _ in 0..100 {
        for bin in 0..BINS {
            let wanted = LOOKUPS * LOOKUPS_BY_USES[bin] / sum;
            let factor = wanted / cells.iter().map(|table| table[bin]).sum::<f64>();
            for table in &mut cells {
                table[bin] *= factor;
            }
        }
        for (table, wanted) in cells.iter_mut().zip(lookups) {
            let factor = wanted / table.iter().sum::<f64>();
            for cell in table {
                *cell *= factor;
            }
        }
    }
    cells
}

/// Whole rows of every bin, most used first.
fn histogram(lookups: f64, by_uses: &[f64; BINS], left: &mut [f64; BINS]) -> Histogram {
    let uses = uses();
    let mut buckets = Vec::new();
    for bin in (0..BINS).rev() {
        left[bin] += by_uses[bin] / uses[bin];
        // A single row does not take most of a small table.
        let most = (0.5 * lookups / uses[bin]).floor();
        let rows = left[bin].floor().min(most);
        left[bin] -= rows;
        if rows > 0.0 {
            let lookups = (rows * uses[bin]).round() as u64;
            buckets.push(Bucket { rows: rows as u64, lookups });
        }
    }
    if buckets.is_empty() {
        buckets.push(Bucket { rows: 1, lookups: (lookups as u64).max(1) });
    }
    Histogram::new(buckets).expect("bins descend")
}
