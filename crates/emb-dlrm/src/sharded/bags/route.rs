//! Which owner gets which id of a bag.

use super::BagsWay;
use super::portions::Route;
use crate::sharded::layout::{Block, Layout, Repeat, Tier};
use crate::sharded::trip::{Bags, Parcels};
use emb_kernels::{Backend, JaggedRef};
use emb_shard::RowMapKind;
use std::ops::Range;

impl<B: Backend> BagsWay<B> {
    /// Sorts the ids of a batch, whose `places` are those of its ids in their tables, by owner;
    /// ids were checked.
    pub(in crate::sharded) fn route(
        &self,
        layout: &Layout,
        batch: JaggedRef<'_>,
        places: &[i64],
        parcels: &mut Parcels,
    ) {
        parcels.bags.resize_with(layout.owned.len(), Bags::default);
        parcels.bags.iter_mut().for_each(Bags::clear);
        parcels.weighted = batch.weights.is_some();
        let batch = JaggedRef { values: places, ..batch };
        for Route { feature, tiers } in &self.routes {
            for tier in tiers.iter().map(|&tier| &layout.tiers[tier]) {
                route_tier(layout, tier, batch, *feature, &mut parcels.bags);
            }
        }
    }
}

impl Parcels {
    /// One list of words for all owners, as a collective takes it.
    pub(super) fn pack(&mut self) {
        self.words.clear();
        self.counts.clear();
        self.weights.clear();
        for bags in &self.bags {
            self.words.extend_from_slice(&bags.lengths);
            self.words.extend_from_slice(&bags.ids);
            self.counts.push(bags.lengths.len() + bags.ids.len());
            self.weights.extend_from_slice(&bags.weights);
        }
    }
}

fn route_tier(
    layout: &Layout,
    tier: &Tier,
    batch: JaggedRef<'_>,
    feature: usize,
    all: &mut [Bags],
) {
    for block in &tier.blocks {
        if let Some(repeats) = &block.repeats {
            for &Repeat { from, after, to } in repeats {
                repeat(all, (from, after), to, batch.batch);
            }
            continue;
        }
        let shards = block.shards.iter().filter(|&&shard| shard != Block::NOBODY);
        let mut owners = shards.map(|&shard| layout.shards[shard].owner);
        match block.map.kind() {
            RowMapKind::Range(starts) if starts.len() == 2 && tier.alone => {
                owners.for_each(|owner| copy(&mut all[owner], batch, feature));
                continue;
            }
            _ => {}
        }
        for owner in owners.by_ref() {
            let lengths = &mut all[owner].lengths;
            lengths.resize(lengths.len() + batch.batch, 0);
        }
        let cut = Cut { layout, block, places: tier.places.clone(), batch, feature };
        match block.map.kind() {
            RowMapKind::Range(starts) => cut.run(all, |row| {
                // The last start at or before it: earlier equal starts are empty parts.
                let part = starts.partition_point(|&start| start <= row) - 1;
                (part, row - starts[part])
            }),
            RowMapKind::Modulo { owners } => cut.run(all, |row| {
                let owners = owners as u64;
                ((row % owners) as usize, row / owners)
            }),
            RowMapKind::Permuted { .. } => cut.run(all, |row| {
                let place = block.map.locate(row).expect("invariant: ids were checked");
                (place.owner, place.local)
            }),
        }
    }
}

/// Whole bags to the owner of all rows.
fn copy(bags: &mut Bags, batch: JaggedRef<'_>, feature: usize) {
    let first = feature * batch.batch;
    let offsets = &batch.offsets[first..=first + batch.batch];
    let range = batch.feature_range(feature);
    bags.lengths.extend(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as i64));
    bags.ids.extend_from_slice(&batch.values[range.clone()]);
    if let Some(weights) = batch.weights {
        bags.weights.extend_from_slice(&weights[range]);
    }
}

/// The ids of one feature in one tier, to the owners of one column block.
struct Cut<'a> {
    layout: &'a Layout,
    block: &'a Block,
    places: Range<u64>,
    batch: JaggedRef<'a>,
    feature: usize,
}

impl Cut<'_> {
    /// Every id to the owner of its row; `part_of` says which part has a row of the tier, and as
    /// which local one.
    fn run(&self, all: &mut [Bags], part_of: impl Fn(u64) -> (usize, u64)) {
        let Self { layout, block, places, batch, feature } = self;
        let samples = batch.batch;
        for b in 0..samples {
            for k in batch.bag_range(*feature, b) {
                let place = batch.values[k] as u64;
                if !places.contains(&place) {
                    continue;
                }
                let (part, local) = part_of(place - places.start);
                let bags = &mut all[layout.shards[block.shards[part]].owner];
                let length = bags.lengths.len() - samples + b;
                bags.lengths[length] += 1;
                bags.ids.push(local as i64);
                if let Some(weights) = batch.weights {
                    bags.weights.push(weights[k]);
                }
            }
        }
    }
}

/// Gives one owner bags of another: those of `samples` samples before its last `after` portions.
fn repeat(all: &mut [Bags], (from, after): (usize, usize), to: usize, samples: usize) {
    let ids_of = |lengths: &[i64]| lengths.iter().sum::<i64>() as usize;
    let lengths = &all[from].lengths;
    let end = lengths.len() - after * samples;
    let bags = end - samples..end;
    let (skip, ids) = (ids_of(&lengths[end..]), ids_of(&lengths[bags.clone()]));
    let end = all[from].ids.len() - skip;
    let ids = end - ids..end;
    let weights = if all[from].weights.is_empty() { 0..0 } else { ids.clone() };
    if from == to {
        let own = &mut all[to];
        own.lengths.extend_from_within(bags);
        own.ids.extend_from_within(ids);
        own.weights.extend_from_within(weights);
        return;
    }
    let [from, to] = all.get_disjoint_mut([from, to]).expect("invariant: two owners");
    to.lengths.extend_from_slice(&from.lengths[bags]);
    to.ids.extend_from_slice(&from.ids[ids]);
    to.weights.extend_from_slice(&from.weights[weights]);
}
