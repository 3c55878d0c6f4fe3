//! Thresholds of all tables under one budget: [`TierSolver`].

use super::kind::{TierBytes, TierKind};
use super::table::{Kinds, TieredTable, Travel};
use crate::{Result, TierCut, TierTraffic};

/// Chooses the tiers of all tables at once.
///
/// A row that a rank asks for `x` times a step costs `c_k(x)` seconds in tier `k` and `m_k(x)` bytes
/// of the rank, both linear in `x` ([`tiers`](crate::TieredLookups)). To minimise the sum of `c`
/// with the sum of `m` within a budget, every row takes, independently of all others, the tier of
/// least
///
/// ```text
///   c_k(x) + multiplier * m_k(x)
/// ```
///
/// for one multiplier of all tables (reconstruction of `FlexShard`, arXiv 2301.02959, as a
/// Lagrangian: costs and bytes add up over rows). Tiers that are stored more often have the
/// gentler line, so a table's tiers are cut by two thresholds of `x`, which are found by binary
/// search in the order of frequency: no time or memory grows with the rows. The multiplier is
/// bisected until the bytes fit; of rows that are indifferent then, as many as fit take the
/// cheaper and larger tier. The result is the optimum up to the row that would not fit whole.
///
/// Bytes of a row stored once in groups of `g` ranks are `stored / g`, the gradients that replicas
/// sum, and, where rows travel, buffers for it and its gradient as sent and as received. So a
/// look-up that is kept off the exchange pays for rows that are stored more often.
///
/// A table whose sums travel ([`Travel::Sums`]) takes part as a whole.
#[derive(Clone, Copy, Debug)]
pub struct TierSolver {
    kinds: Kinds,
}

/// The tiers of all tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TierSolution {
    /// `[tables]`
    pub cuts: Vec<TierCut>,
    /// What a byte of memory is worth, in seconds; 0 where the budget does not bind.
    pub multiplier: f64,
    /// Seconds of exchange and sync in a step.
    pub seconds: f64,
    /// Bytes of the fullest rank: weights, state and buffers.
    pub bytes: f64,
}

/// With it bytes decide alone, and products with bytes stay finite.
const BYTES_DECIDE: f64 = 1e200;

impl TierSolver {
    /// Tiers of these kinds; where the kind of a hot tier is `None`, there is none.
    pub fn new(rest: TierKind, in_node: Option<TierKind>, replicated: Option<TierKind>) -> Self {
        Self { kinds: Kinds { replicated, in_node, rest } }
    }

    /// The best tiers within `budget` bytes of every rank; `None` where no tiers are.
    ///
    /// Rows that are to be replicated in any case are not where only that lets all tables fit.
    ///
    /// # Errors
    /// Look-ups of a table that are negative or not finite.
    pub fn solve(&self, tables: &[TieredTable<'_>], budget: f64) -> Result<Option<TierSolution>> {
        if let Some(solution) = self.within(tables, budget)? {
            return Ok(Some(solution));
        }
        let free = tables.iter().map(|table| TieredTable { least_replicated: 0, ..*table });
        let free: Vec<TieredTable<'_>> = free.collect();
        self.within(&free, budget)
    }

    /// The tiers that take fewest bytes.
    ///
    /// # Errors
    /// Look-ups of a table that are negative or not finite.
    pub fn leanest(&self, tables: &[TieredTable<'_>]) -> Result<TierSolution> {
        let lean = self.solution(tables, self.best(tables, BYTES_DECIDE)?, BYTES_DECIDE)?;
        let row_wise = self.solution(tables, self.row_wise(tables), BYTES_DECIDE)?;
        // Bytes of a row are counted in parts of it, those of a rank in whole rows.
        Ok(if row_wise.bytes < lean.bytes { row_wise } else { lean })
    }

    /// Seconds of exchange and sync of a step with these cuts, table by table summed.
    ///
    /// # Errors
    /// More hot rows than a table has; look-ups that are negative or not finite.
    pub fn seconds(&self, tables: &[TieredTable<'_>], cuts: &[TierCut]) -> Result<f64> {
        let each = tables.iter().zip(cuts).map(|(table, &cut)| table.seconds(&self.kinds, cut));
        each.sum()
    }

    /// Bytes of the fullest rank with these cuts, weights, state and buffers.
    ///
    /// # Errors
    /// As [`seconds`](Self::seconds).
    pub fn bytes(&self, tables: &[TieredTable<'_>], cuts: &[TierCut]) -> Result<f64> {
        let each = tables.iter().zip(cuts).map(|(table, &cut)| table.bytes(&self.kinds, cut));
        each.sum()
    }

    /// Rows, gradients and ids that a rank sends in a step for one table.
    ///
    /// # Errors
    /// As [`seconds`](Self::seconds).
    pub fn traffic(&self, table: &TieredTable<'_>, cut: TierCut) -> Result<TierTraffic> {
        table.traffic(&self.kinds, cut)
    }

    /// What a rank sends for each tier of all tables: every row, the next ones, the rest.
    pub(super) fn sent(
        &self,
        tables: &[TieredTable<'_>],
        cuts: &[TierCut],
    ) -> Result<[TierBytes; 3]> {
        let mut all = [TierBytes::default(); 3];
        for (table, &cut) in tables.iter().zip(cuts) {
            for (all, own) in all.iter_mut().zip(table.sent(&self.kinds, cut)?) {
                *all = all.plus(own);
            }
        }
        Ok(all)
    }

    fn within(&self, tables: &[TieredTable<'_>], budget: f64) -> Result<Option<TierSolution>> {
        let free = self.solution(tables, self.best(tables, 0.0)?, 0.0)?;
        if free.bytes <= budget {
            return Ok(Some(free));
        }
        let lean = self.leanest(tables)?;
        if lean.bytes > budget {
            return Ok(None);
        }
        let (mut over, mut fits) = (free, lean);
        // Positive numbers are in the order of their bits, so this halves what is left of them.
        while fits.multiplier.to_bits() - over.multiplier.to_bits() > 1 && !next_to(&over, &fits) {
            let bits = u64::midpoint(over.multiplier.to_bits(), fits.multiplier.to_bits());
            let multiplier = f64::from_bits(bits);
            let tried = self.solution(tables, self.best(tables, multiplier)?, multiplier)?;
            if tried.bytes > budget {
                over = tried;
            } else {
                fits = tried;
            }
        }
        self.fill(tables, &over, fits, budget).map(Some)
    }

    fn best(&self, tables: &[TieredTable<'_>], multiplier: f64) -> Result<Vec<TierCut>> {
        tables.iter().map(|table| table.best(&self.kinds, multiplier)).collect()
    }

    fn row_wise(&self, tables: &[TieredTable<'_>]) -> Vec<TierCut> {
        let cut = |table: &TieredTable<'_>| table.least(&self.kinds);
        tables.iter().map(|table| TierCut { replicated: cut(table), in_node: 0 }).collect()
    }

    fn solution(
        &self,
        tables: &[TieredTable<'_>],
        cuts: Vec<TierCut>,
        multiplier: f64,
    ) -> Result<TierSolution> {
        let (seconds, bytes) = (self.seconds(tables, &cuts)?, self.bytes(tables, &cuts)?);
        Ok(TierSolution { cuts, multiplier, seconds, bytes })
    }

    /// Takes rows from `fits` to where `over` has them as long as the bytes allow it, table by
    /// table. Both have the same cost with the multiplier, so which rows does not matter.
    fn fill(
        &self,
        tables: &[TieredTable<'_>],
        over: &TierSolution,
        fits: TierSolution,
        budget: f64,
    ) -> Result<TierSolution> {
        let mut cuts = fits.cuts.clone();
        let mut bytes = fits.bytes;
        for (number, table) in tables.iter().enumerate() {
            let (from, to) = (cuts[number], over.cuts[number]);
            let others = bytes - table.bytes(&self.kinds, from)?;
            let fitting = |cut| Ok(others + table.bytes(&self.kinds, cut)? <= budget);
            cuts[number] = match table.travel {
                _ if from == to || fitting(to)? => to,
                Travel::Sums { .. } => from,
                Travel::Lookups | Travel::Distinct => {
                    furthest(from, to, table.frequencies.rows(), fitting)?
                }
            };
            bytes = others + table.bytes(&self.kinds, cuts[number])?;
        }
        let filled = self.solution(tables, cuts, fits.multiplier)?;
        // Sums in another order may round to the other side.
        Ok(if filled.bytes <= budget { filled } else { fits })
    }
}

/// The cut nearest to `to`, which does not fit, on the way from `from`, which does.
fn furthest(
    from: TierCut,
    to: TierCut,
    rows: u64,
    fitting: impl Fn(TierCut) -> Result<bool>,
) -> Result<TierCut> {
    let (mut low, mut high) = (0, rows);
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if fitting(between(from, to, middle))? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(between(from, to, low))
}

/// Whether no threshold differs by more than a row.
fn next_to(a: &TierSolution, b: &TierSolution) -> bool {
    a.cuts
        .iter()
        .zip(&b.cuts)
        .all(|(a, b)| a.replicated.abs_diff(b.replicated) <= 1 && a.hot().abs_diff(b.hot()) <= 1)
}

/// `from`, with the hottest `moved` rows in the tiers that `to` has them in. Rows in other tiers
/// than before are equally hot, so that their number in each tier is all that counts.
fn between(from: TierCut, to: TierCut, moved: u64) -> TierCut {
    let first = |from: u64, to: u64| to.min(moved) + from.saturating_sub(moved);
    let replicated = first(from.replicated, to.replicated);
    TierCut { replicated, in_node: first(from.hot(), to.hot()) - replicated }
}
