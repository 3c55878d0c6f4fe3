//! What a batch takes along from stage to stage: [`Trip`].

use super::rows::Wanted;

/// The host memory of a batch under way, kept from batch to batch.
#[derive(Debug, Default)]
pub(super) struct Trip {
    /// Samples of this rank.
    pub(super) batch: usize,
    /// `[features * batch + 1]`: where the bags of this rank's batch begin.
    pub(super) offsets: Vec<u64>,
    /// `[features, batch]`: what a mean divides by; other features' are left alone.
    pub(super) divisors: Vec<f32>,
    /// Places of ids in the orders of their tables, where there are any.
    pub(super) places: Vec<i64>,
    /// One for each exchange.
    pub(super) legs: Vec<Leg>,
    /// `[batch, width]`: pooled bags; columns before the first feature stay 0.
    pub(super) output: Vec<f32>,
    /// By feature: `[its ids, dim]` of features that are not pooled, else nothing.
    pub(super) sequences: Vec<Vec<f32>>,
}

/// What a batch takes along through one exchange.
#[derive(Debug, Default)]
pub(super) struct Leg {
    /// Bags for their owners, where owners pool.
    pub(super) parcels: Parcels,
    /// Rows that are asked for, where rows travel.
    pub(super) wanted: Wanted,
    /// What others ask of this rank.
    pub(super) arrived: Arrived,
}

/// What one rank sends to the owners of a group: parts one after the other.
#[derive(Debug, Default)]
pub(super) struct Parcels {
    /// By owner, what it is sent.
    pub(super) bags: Vec<Bags>,
    /// For each owner the lengths of its bags, then its ids; unused in groups of one.
    pub(super) words: Vec<i64>,
    /// Words for each owner.
    pub(super) counts: Vec<usize>,
    /// Whether the batch has per-sample weights.
    pub(super) weighted: bool,
    /// Per-sample weights of the ids, where the batch has any; unused in groups of one.
    pub(super) weights: Vec<f32>,
}

/// Bags for one owner.
#[derive(Debug, Default)]
pub(super) struct Bags {
    /// Portion by portion, samples of each.
    pub(super) lengths: Vec<i64>,
    /// Local rows.
    pub(super) ids: Vec<i64>,
    /// Per-sample weights of the ids, where the batch has any.
    pub(super) weights: Vec<f32>,
}

/// Lists of local rows at their owner: bags to pool, or rows to send.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// Samples of each rank of the group; a single 1 where rows are sent.
    pub(super) samples: Vec<usize>,
    /// `[lists * all samples + 1]`; samples by rank.
    pub(super) offsets: Vec<u64>,
    /// Local rows.
    pub(super) ids: Vec<i64>,
    /// Whether any rank of the group has per-sample weights.
    pub(super) weighted: bool,
    /// Those of the ids, where there are any.
    pub(super) weights: Vec<f32>,
}

impl Bags {
    /// No bags.
    pub(super) fn clear(&mut self) {
        self.lengths.clear();
        self.ids.clear();
        self.weights.clear();
    }
}

impl Arrived {
    /// Samples of all ranks of the group.
    pub(super) fn total(&self) -> usize {
        self.samples.iter().sum()
    }

    /// Local rows of list `list`, all ranks of the group.
    pub(super) fn ids_of(&self, list: usize) -> &[i64] {
        let total = self.total();
        let at = |bag: usize| self.offsets[bag] as usize;
        &self.ids[at(list * total)..at((list + 1) * total)]
    }
}
