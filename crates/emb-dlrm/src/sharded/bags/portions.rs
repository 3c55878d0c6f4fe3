//! What each owner pools, and where its columns go: [`Portion`].

use crate::sharded::layout::{Block, Layout};
use crate::sharded::wire::{Kind, Parcel, merged};
use emb_kernels::{Feature, FeatureMap, Pooling};

/// One feature over one column block of a tier at one owner.
#[derive(Clone, Debug)]
pub(super) struct Portion {
    /// Position of the feature.
    pub(super) feature: usize,
    /// The shard that it looks up.
    pub(super) shard: usize,
    /// Tier of the layout and column block in it.
    pub(super) block: (usize, usize),
    /// Columns here.
    pub(super) width: usize,
    /// First column in what this owner sends.
    pub(super) column: usize,
    /// First column in the whole output.
    pub(super) output: usize,
    /// Whether it is all there is in these columns; else parts are added up.
    pub(super) whole: bool,
    /// Whether the destination divides by the weight of the bag.
    pub(super) divide: bool,
    /// What gradients are multiplied by.
    pub(super) scale: f32,
}

/// What one position of a group, or a node, has of the columns of a sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Owned {
    /// In the order of features, tiers and columns.
    pub(super) portions: Vec<Portion>,
    /// Columns of all of them.
    pub(super) width: usize,
    /// The portions, those that lie side by side here and in the output as one.
    pub(super) runs: Vec<Portion>,
    /// The portions as rows on the wire, and those of one width side by side as one.
    by_tier: Vec<Kind>,
    kinds: Vec<Kind>,
}

impl Owned {
    /// Finds the runs of the portions: one wide copy is faster than many narrow ones.
    pub(super) fn find_runs(&mut self) {
        for portion in &self.portions {
            match self.runs.last_mut() {
                Some(last) if last.goes_on_with(portion) => last.width += portion.width,
                _ => self.runs.push(portion.clone()),
            }
        }
        let kind = |portion: &Portion| Kind { rows: 1, dim: portion.width, tier: portion.block.0 };
        self.by_tier = self.portions.iter().map(kind).collect();
        self.kinds = merged(&self.by_tier);
    }

    /// The columns of so many samples.
    pub(super) fn parcel(&self, samples: usize) -> Parcel<'_> {
        Parcel { times: samples, kinds: &self.kinds, by_tier: &self.by_tier }
    }
}

impl Portion {
    /// Whether `next` begins where this ends and is treated alike.
    fn goes_on_with(&self, next: &Self) -> bool {
        let alike = |of: &Self| (of.whole, of.divide, of.scale.to_bits());
        self.column + self.width == next.column
            && self.output + self.width == next.output
            && alike(self) == alike(next)
            && !self.divide
    }
}

/// A feature and the tiers of its table that share the exchange.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// Position of the feature.
    pub(super) feature: usize,
    /// Positions in [`Layout::tiers`].
    pub(super) tiers: Vec<usize>,
}

/// The features whose tables are in the layout.
pub(super) fn routes(layout: &Layout, map: &FeatureMap) -> Vec<Route> {
    let route = |(feature, of): (usize, &Feature)| Route {
        feature,
        tiers: layout.tiers_of(of.table).map(|(number, _)| number).collect(),
    };
    let all = map.features().iter().enumerate().map(route);
    all.filter(|route| !route.tiers.is_empty()).collect()
}

/// By position of the group, its portions.
pub(super) fn owned(
    layout: &Layout,
    map: &FeatureMap,
    routes: &[Route],
    divided: &[bool],
) -> Vec<Owned> {
    let mut owned = vec![Owned::default(); layout.owned.len()];
    for route in routes {
        for (number, tier) in route.tiers.iter().map(|&tier| (tier, &layout.tiers[tier])) {
            for (column, block) in tier.blocks.iter().enumerate() {
                for &shard in block.shards.iter().filter(|&&shard| shard != Block::NOBODY) {
                    let owned = &mut owned[layout.shards[shard].owner];
                    owned.portions.push(Portion {
                        feature: route.feature,
                        shard,
                        block: (number, column),
                        width: block.width,
                        column: owned.width,
                        output: map.column(route.feature) + block.column,
                        // Other tiers have other rows of the bag, in this exchange or in others.
                        whole: tier.alone && block.parts() == 1,
                        divide: divided[route.feature],
                        scale: tier.scale,
                    });
                    owned.width += block.width;
                }
            }
        }
    }
    owned.iter_mut().for_each(Owned::find_runs);
    owned
}

/// The features of a backend that pool the portions of this rank.
pub(super) fn features(
    own: &Owned,
    layout: &Layout,
    map: &FeatureMap,
    divided: &[bool],
) -> Vec<Feature> {
    let stored = &layout.owned[layout.position];
    let features = own.portions.iter().map(|portion| {
        let feature = &map.features()[portion.feature];
        let table = stored.iter().position(|&shard| shard == portion.shard);
        let shard = &layout.shards[portion.shard];
        Feature {
            // One feature may look up several parts of its table here.
            name: format!("{} (tier {}, columns {})", feature.name, shard.tier, shard.block),
            table: table.expect("invariant: portions are of stored shards"),
            // Owners of a part of the bag sum; the destination knows the whole bag.
            pooling: if divided[portion.feature] { Pooling::Sum } else { feature.pooling },
        }
    });
    features.collect()
}
