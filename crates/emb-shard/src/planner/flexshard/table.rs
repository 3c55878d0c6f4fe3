//! One table for the solver: [`TieredTable`], what a cut of it costs and where its best cut is.

use super::kind::{TierBytes, TierKind};
use crate::{Result, RowFrequencies, RowRange, TierCut, TierTraffic};

/// What travels for the look-ups of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Travel {
    /// A row for every look-up ([`Exchange::Rows`](crate::Exchange::Rows)).
    Lookups,
    /// A row for every distinct row among the look-ups of a rank
    /// ([`Exchange::Unique`](crate::Exchange::Unique), per rank).
    Distinct,
    /// A sum for every bag and every rank of the group
    /// ([`Exchange::Reduce`](crate::Exchange::Reduce), flat), whatever rows it has: hot rows of
    /// their own tier save ids only, so that such a table is one tier.
    Sums {
        /// Bags of a rank.
        bags: f64,
        /// Bytes of a bag's length, which goes to every rank of the group.
        length_bytes: f64,
    },
}

/// A table as the solver sees it; bytes are those of one row.
#[derive(Clone, Copy, Debug)]
pub struct TieredTable<'a> {
    /// How often each row is looked up.
    pub frequencies: &'a RowFrequencies,
    /// Look-ups of one rank in a step, `n`.
    pub lookups: f64,
    /// What travels for them.
    pub travel: Travel,
    /// Bytes of a row on the wire, the mean of it and its gradient.
    pub row_bytes: f64,
    /// Bytes of an id on the wire.
    pub id_bytes: f64,
    /// Bytes of the gradient of a row that replicas sum.
    pub summed_bytes: f64,
    /// Bytes of weights and optimizer state.
    pub stored_bytes: f64,
    /// Rows that are on every rank in any case, the hottest ones.
    pub least_replicated: u64,
}

/// The kinds of tiers that there are; the hottest rows' first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    pub(super) replicated: Option<TierKind>,
    pub(super) in_node: Option<TierKind>,
    pub(super) rest: TierKind,
}

impl Kinds {
    /// In the order of tiers; of one that there is not, that of all other rows.
    fn in_order(&self) -> [&TierKind; 3] {
        let rest = &self.rest;
        [self.replicated.as_ref().unwrap_or(rest), self.in_node.as_ref().unwrap_or(rest), rest]
    }
}

/// What a row costs in a tier: `fixed + each x`, where it is asked for `x` times a step.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: f64,
    each: f64,
}

impl Line {
    /// The `x` above which a row is cheaper as `other`, which is stored more often.
    fn crossing(self, other: Self) -> f64 {
        let (dearer, saved) = (other.fixed - self.fixed, self.each - other.each);
        // A tie is no reason to store a row more often.
        if saved > 0.0 { (dearer / saved).max(0.0) } else { f64::INFINITY }
    }
}

impl TieredTable<'_> {
    /// The cut of least `seconds + multiplier * bytes`.
    pub(super) fn best(&self, kinds: &Kinds, multiplier: f64) -> Result<TierCut> {
        if let Travel::Sums { .. } = self.travel {
            return self.best_whole(kinds, multiplier);
        }
        let line = |kind: &TierKind| self.line(kind, multiplier);
        let rest = line(&kinds.rest);
        let in_node = kinds.in_node.as_ref().map(line);
        let replicated = kinds.replicated.as_ref().map(line);
        let over =
            |line: Option<Line>, from: Line| line.map_or(f64::INFINITY, |l| from.crossing(l));
        let mut pays = over(replicated, rest);
        if let Some(in_node) = in_node {
            pays = pays.max(over(replicated, in_node));
        }
        let replicated = self.rows_above(pays)?.max(self.least(kinds));
        let hot = self.rows_above(over(in_node, rest))?.max(replicated);
        Ok(TierCut { replicated, in_node: hot - replicated })
    }

    /// The best of the cuts with one tier beside the rows that are replicated in any case.
    fn best_whole(&self, kinds: &Kinds, multiplier: f64) -> Result<TierCut> {
        let (rows, least) = (self.frequencies.rows(), self.least(kinds));
        let row_wise = TierCut { replicated: least, in_node: 0 };
        let node = TierCut { replicated: least, in_node: rows - least };
        let everywhere = TierCut { replicated: rows, in_node: 0 };
        let cost = |cut| -> Result<f64> {
            Ok(self.seconds(kinds, cut)? + multiplier * self.bytes(kinds, cut)?)
        };
        let (mut best, mut lowest) = (row_wise, cost(row_wise)?);
        let others = [kinds.in_node.map(|_| node), kinds.replicated.map(|_| everywhere)];
        for cut in others.into_iter().flatten() {
            let cost = cost(cut)?;
            if cost < lowest {
                (best, lowest) = (cut, cost);
            }
        }
        Ok(best)
    }

    /// Rows that are replicated in any case.
    pub(super) fn least(&self, kinds: &Kinds) -> u64 {
        kinds.replicated.map_or(0, |_| self.least_replicated.min(self.frequencies.rows()))
    }

    /// Rows that a rank asks for more than `x` times a step: as often as it looks them up, or with
    /// the chance that it does, `1 - (1 - p)^n`.
    fn rows_above(&self, x: f64) -> Result<u64> {
        let n = self.lookups;
        if x == f64::INFINITY || n <= 0.0 {
            return Ok(0);
        }
        match self.travel {
            // In logarithms, so that small chances keep their digits.
            Travel::Distinct => rows_while(self.frequencies, |p| -(n * (-p).ln_1p()).exp_m1() > x),
            Travel::Lookups | Travel::Sums { .. } => rows_while(self.frequencies, |p| n * p > x),
        }
    }

    fn line(&self, kind: &TierKind, multiplier: f64) -> Line {
        // Forward and backward a row, and its id once.
        let each = kind.exchange_seconds.dot(kind.spread.fetched())
            * (2.0 * self.row_bytes + self.id_bytes);
        let fixed = kind.sync_seconds.dot(kind.spread.summed()) * self.summed_bytes;
        let stored = (self.stored_bytes + kind.replicated(self.summed_bytes)) * kind.stored();
        Line {
            fixed: fixed + multiplier * stored,
            each: each + multiplier * kind.exchanged(self.buffer_bytes()),
        }
    }

    /// Bytes of buffers for a row that travels: sent and received, it and its gradient, and its id.
    fn buffer_bytes(&self) -> f64 {
        4.0 * self.row_bytes + 2.0 * self.id_bytes
    }

    /// Seconds of the exchange and sync of a step.
    pub(super) fn seconds(&self, kinds: &Kinds, cut: TierCut) -> Result<f64> {
        let mut seconds = 0.0;
        for (kind, rows) in self.tiers(kinds, cut)? {
            let asked = self.asked(kind, rows)?;
            let exchanged = kind.exchange_seconds.dot(kind.spread.fetched());
            seconds += exchanged * (2.0 * self.row_bytes * asked.vectors + asked.id_bytes);
            let summed = kind.spread.summed().times(rows.rows() as f64);
            seconds += kind.sync_seconds.dot(summed) * self.summed_bytes;
        }
        Ok(seconds)
    }

    /// Rows, gradients and ids of a step.
    pub(super) fn traffic(&self, kinds: &Kinds, cut: TierCut) -> Result<TierTraffic> {
        let mut traffic = TierTraffic::default();
        for (kind, rows) in self.tiers(kinds, cut)? {
            let asked = self.asked(kind, rows)?;
            let ids = if self.id_bytes > 0.0 { asked.id_bytes / self.id_bytes } else { 0.0 };
            let fetched = kind.spread.fetched();
            traffic = traffic.plus(TierTraffic {
                rows: fetched.times(2.0 * asked.vectors),
                summed: kind.spread.summed().times(rows.rows() as f64),
                ids: fetched.times(ids),
            });
        }
        Ok(traffic)
    }

    /// What a rank sends for each tier.
    pub(super) fn sent(&self, kinds: &Kinds, cut: TierCut) -> Result<[TierBytes; 3]> {
        let mut sent = [TierBytes::default(); 3];
        let tiers = kinds.in_order().into_iter().zip(cut.tiers(self.frequencies.rows())?);
        for (sent, (kind, rows)) in sent.iter_mut().zip(tiers) {
            let (asked, summed) = (self.asked(kind, rows)?, rows.rows() as f64 * self.summed_bytes);
            sent.exchanged = kind.spread.fetched().times(self.row_bytes * asked.vectors);
            sent.synced = kind.spread.summed_in_a_hop().times(summed);
        }
        Ok(sent)
    }

    /// Bytes of the fullest rank: weights, state and the buffers of a step.
    pub(super) fn bytes(&self, kinds: &Kinds, cut: TierCut) -> Result<f64> {
        let mut bytes = 0.0;
        for (kind, rows) in self.tiers(kinds, cut)? {
            let owned = rows.rows().div_ceil(u64::from(kind.spread.group_ranks())) as f64;
            bytes += owned * (self.stored_bytes + kind.replicated(self.summed_bytes));
            let asked = self.asked(kind, rows)?;
            bytes += kind.exchanged(4.0 * self.row_bytes * asked.vectors + 2.0 * asked.id_bytes);
        }
        Ok(bytes)
    }

    /// What a rank asks of a tier.
    fn asked(&self, kind: &TierKind, rows: RowRange) -> Result<Asked> {
        let law = self.frequencies;
        let share = || law.share_of_top(rows.end()) - law.share_of_top(rows.start());
        let group = f64::from(kind.spread.group_ranks());
        Ok(match self.travel {
            Travel::Lookups => {
                let vectors = self.lookups * share();
                Asked { vectors, id_bytes: vectors * self.id_bytes }
            }
            Travel::Distinct => {
                let vectors = law.expected_unique_in(rows, self.lookups)?;
                Asked { vectors, id_bytes: vectors * self.id_bytes }
            }
            Travel::Sums { bags, length_bytes } => Asked {
                vectors: group * bags,
                id_bytes: self.lookups * share() * self.id_bytes + group * bags * length_bytes,
            },
        })
    }

    /// The tiers that have rows.
    fn tiers<'k>(
        &self,
        kinds: &'k Kinds,
        cut: TierCut,
    ) -> Result<impl Iterator<Item = (&'k TierKind, RowRange)> + use<'k>> {
        let tiers = kinds.in_order().into_iter().zip(cut.tiers(self.frequencies.rows())?);
        Ok(tiers.filter(|(_, rows)| rows.rows() > 0))
    }
}

/// What a rank asks of a tier in a step.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Rows or sums that reach it, its own among them.
    vectors: f64,
    /// Bytes of ids and lengths that leave it.
    id_bytes: f64,
}

/// The hottest rows for whose probability `hot` holds; it must hold for all above one.
pub(super) fn rows_while(frequencies: &RowFrequencies, hot: impl Fn(f64) -> bool) -> Result<u64> {
    let (mut low, mut high) = (0, frequencies.rows());
    while low < high {
        let middle = u64::midpoint(low, high);
        if hot(frequencies.probability(middle)?) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
