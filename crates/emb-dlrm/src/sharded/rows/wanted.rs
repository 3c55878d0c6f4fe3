//! Which rows a batch needs, from whom, and which lookup uses which: [`Wanted`].

use super::RowsWay;
use super::distinct::Distinct;
use super::relay::Relayed;
use crate::sharded::layout::{Layout, Tier, locate_all};
use emb_kernels::{Backend, JaggedRef};

/// The rows of one exchange that a batch needs.
#[derive(Debug, Default)]
pub(in crate::sharded) struct Wanted {
    /// By shard of the layout, its rows in the order in which they come.
    pub(super) lists: Vec<Vec<i64>>,
    /// By tier of the layout.
    pub(super) tiers: Vec<TierRows>,
    /// What this rank asks owners for in the name of its node.
    pub(super) relayed: Relayed,
    /// By shard, the next element of its rows.
    cursors: Vec<usize>,
}

/// The rows of a tier that a batch needs.
#[derive(Debug, Default)]
pub(super) struct TierRows {
    /// By feature of the table.
    pub(super) lookups: Vec<Lookups>,
    /// By lookup, all features after each other: which of the rows it uses.
    pub(super) row_of: Vec<u32>,
    /// By column block: where each of the rows begins in what is received.
    pub(super) starts: Vec<Vec<usize>>,
    rows: Distinct,
}

/// The lookups of one feature in one tier.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// By sample, how many.
    pub(super) lengths: Vec<u32>,
    /// Each one's position among all ids of the feature.
    pub(super) positions: Vec<usize>,
    /// Their per-sample weights, where the batch has any.
    pub(super) weights: Vec<f32>,
}

impl<B: Backend> RowsWay<B> {
    /// Lists the rows that a batch needs; `places` are those of its ids, which were checked.
    pub(in crate::sharded) fn route(
        &self,
        layout: &Layout,
        batch: JaggedRef<'_>,
        places: &[i64],
        wanted: &mut Wanted,
    ) {
        let Wanted { lists, tiers, cursors, .. } = wanted;
        lists.resize_with(layout.shards.len(), Vec::new);
        lists.iter_mut().for_each(Vec::clear);
        tiers.resize_with(layout.tiers.len(), TierRows::default);
        for ((tier, targets), of) in layout.tiers.iter().zip(&self.features).zip(&mut *tiers) {
            of.rows.clear();
            of.lookups.resize_with(targets.len(), Lookups::default);
            for (target, lookups) in targets.iter().zip(&mut of.lookups) {
                lookups.fill(tier, batch, places, target.feature, &mut of.rows);
            }
            if self.unique {
                of.rows.number(&mut of.row_of);
            } else {
                of.row_of.clear();
                of.row_of.extend(0..of.rows.as_slice().len() as u32);
            }
            of.list(tier, lists);
        }
        cursors.clear();
        cursors.resize(layout.shards.len(), 0);
        let mut next = 0;
        for &shard in &self.wire {
            cursors[shard] = next;
            next += lists[shard].len() * layout.shards[shard].width;
        }
        for (tier, of) in layout.tiers.iter().zip(tiers) {
            for (block, starts) in tier.blocks.iter().zip(&mut of.starts) {
                // Each start was its shard so far.
                for start in starts {
                    let cursor = &mut cursors[*start];
                    *start = *cursor;
                    *cursor += block.width;
                }
            }
        }
    }
}

impl TierRows {
    /// Adds the rows to the lists of their shards, and says in `starts` which these are.
    fn list(&mut self, tier: &Tier, lists: &mut [Vec<i64>]) {
        self.starts.resize_with(tier.blocks.len(), Vec::new);
        for (block, starts) in tier.blocks.iter().zip(&mut self.starts) {
            starts.clear();
            locate_all(&block.map, self.rows.as_slice().iter().copied(), |part, local| {
                let shard = block.shards[part];
                lists[shard].push(local as i64);
                starts.push(shard);
            });
        }
    }
}

impl Lookups {
    /// The lookups of `feature` that are in `tier`, whose rows are added to `rows`.
    fn fill(
        &mut self,
        tier: &Tier,
        batch: JaggedRef<'_>,
        places: &[i64],
        feature: usize,
        rows: &mut Distinct,
    ) {
        self.lengths.clear();
        self.positions.clear();
        self.weights.clear();
        let range = batch.feature_range(feature);
        if tier.alone {
            let bags = feature * batch.batch..=(feature + 1) * batch.batch;
            let offsets = batch.offsets[bags].windows(2);
            self.lengths.extend(offsets.map(|pair| (pair[1] - pair[0]) as u32));
            self.positions.extend(0..range.len());
            self.weights.extend_from_slice(batch.weights.map_or(&[], |all| &all[range.clone()]));
            rows.extend(&places[range]);
            return;
        }
        let first = range.start;
        for b in 0..batch.batch {
            let before = self.positions.len();
            for k in batch.bag_range(feature, b) {
                let place = places[k] as u64;
                if tier.places.contains(&place) {
                    rows.push(place - tier.places.start);
                    self.positions.push(k - first);
                    self.weights.extend(batch.weights.map(|weights| weights[k]));
                }
            }
            self.lengths.push((self.positions.len() - before) as u32);
        }
    }
}
