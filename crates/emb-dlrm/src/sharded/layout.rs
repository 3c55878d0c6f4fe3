//! What each rank of a group does for one class of tables, from the plan alone: [`Layout`].

use super::check::{gradient_scale, tier_of};
use super::error::Result;
use emb_kernels::{Feature, FeatureMap, Pooling, TableSpec, Window};
use emb_shard::{ExchangeClass, Plan, Rank, RowMap, RowMapKind};
use std::collections::BTreeSet;

/// One feature at one owner: which rows and columns it looks up there.
#[derive(Clone, Debug)]
pub(super) struct Portion {
    /// Position of the feature.
    pub(super) feature: usize,
    /// Columns here.
    pub(super) width: usize,
    /// First column in what this owner sends.
    pub(super) column: usize,
    /// First column in the whole output.
    pub(super) output: usize,
    /// Whether other owners have other rows: then parts are added up, in the order of owners.
    pub(super) place: Place,
    /// Whether it is the last to be added.
    pub(super) last: bool,
    /// Whether the destination divides by the weight of the bag.
    pub(super) divide: bool,
    /// What gradients are multiplied by.
    pub(super) scale: f32,
}

/// How a portion comes into the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is all there is.
    Whole,
    /// It is the first part of several.
    First,
    /// It is added to the parts of owners before.
    Later,
}

/// Who gets the ids of one feature.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    /// Position of the feature.
    pub(super) feature: usize,
    /// Parts of the rows of its table.
    pub(super) map: RowMap,
    /// For each column block the owner of every part: a position of the group.
    pub(super) owners: Vec<Vec<usize>>,
}

impl Routes {
    /// Owner of a part without rows.
    pub(super) const NOBODY: usize = usize::MAX;
}

/// What one position of a group owns.
#[derive(Clone, Debug, Default)]
pub(super) struct Owned {
    /// Its features, in the order of the configuration.
    pub(super) portions: Vec<Portion>,
    /// Columns of all of them.
    pub(super) width: usize,
}

/// A part of a table that this rank stores.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// Position of the table.
    pub(super) table: usize,
    /// Column block.
    pub(super) block: usize,
    /// Row part.
    pub(super) part: usize,
}

/// Where a stored part's statistics of one column block come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// The block is here.
    Own,
    /// They come from the other owner: the entry of [`Layout::shared`], all positions in one.
    Shared(usize),
}

/// The tables of one exchange, as the ranks of one group share them.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// What every position of the group owns.
    pub(super) owned: Vec<Owned>,
    /// This rank's position.
    pub(super) position: usize,
    /// What this rank stores, in table order.
    pub(super) stored: Vec<Stored>,
    /// For every position of the group, which stored parts (by place in `stored`) it has other
    /// columns of, and its column block.
    pub(super) shared: Vec<Vec<(usize, usize)>>,
    /// The features of the class.
    pub(super) features: Vec<Routes>,
    /// For each stored part whose columns others have as well, all blocks in column order.
    pub(super) statistics: Vec<Vec<Columns>>,
}

impl Layout {
    /// The layout of `class` as `rank` sees it.
    pub(super) fn new(
        plan: &Plan,
        class: &ExchangeClass,
        specs: &[TableSpec],
        map: &FeatureMap,
        rank: Rank,
    ) -> Result<Self> {
        let position = class.mesh.replica_set_of(rank)?.get() as usize;
        let mut owned = vec![Owned::default(); class.mesh.group_ranks() as usize];
        let mut features = Vec::new();
        for (f, feature) in map.features().iter().enumerate() {
            if !class.tiers.iter().any(|(id, _)| id.get() as usize == feature.table) {
                continue;
            }
            let tier = tier_of(plan, feature.table)?;
            let mut routes =
                Routes { feature: f, map: tier.blocks[0].map.clone(), owners: Vec::new() };
            for block in &tier.blocks {
                let partial = block.owners.len() > 1;
                let mut owners = vec![Routes::NOBODY; block.owners.len()];
                for (part, owner) in block.owners.iter().enumerate() {
                    if block.map.rows_of(part)? == 0 {
                        continue;
                    }
                    owners[part] = owner as usize;
                    let owned = &mut owned[owner as usize];
                    let width = block.columns.columns();
                    owned.portions.push(Portion {
                        feature: f,
                        width,
                        column: owned.width,
                        output: map.column(f) + block.columns.start(),
                        place: if partial { Place::Later } else { Place::Whole },
                        last: false,
                        divide: partial && feature.pooling == Pooling::Mean,
                        scale: gradient_scale(&specs[feature.table], tier),
                    });
                    owned.width += width;
                }
                routes.owners.push(owners);
            }
            features.push(routes);
        }
        mark_ends(&mut owned);
        let mut stored = Vec::new();
        for &(id, _) in &class.tiers {
            let tier = tier_of(plan, id.get() as usize)?;
            for (block, cut) in tier.blocks.iter().enumerate() {
                let part = cut.owners.part_of(position as u32);
                if let Some(part) = part.filter(|&part| cut.map.rows_of(part).is_ok_and(|n| n > 0))
                {
                    stored.push(Stored { table: id.get() as usize, block, part });
                }
            }
        }
        let shared = shared(plan, &stored, position, owned.len())?;
        let statistics = statistics(&stored, &shared);
        Ok(Self { owned, position, stored, shared, features, statistics })
    }

    /// What this rank owns.
    pub(super) fn own(&self) -> &Owned {
        &self.owned[self.position]
    }

    /// The stored parts as tables of a backend.
    pub(super) fn specs(&self, plan: &Plan, specs: &[TableSpec]) -> Result<Vec<TableSpec>> {
        let local = self.stored.iter().map(|stored| {
            let spec = &specs[stored.table];
            let block = &tier_of(plan, stored.table)?.blocks[stored.block];
            let (first_row, row_step) = match block.map.kind() {
                RowMapKind::Range(starts) => (starts[stored.part], 1),
                RowMapKind::Modulo { owners } => (stored.part as u64, owners as u64),
                RowMapKind::Permuted { .. } => (0, 1),
            };
            let window = Window {
                first_row,
                row_step,
                rows: None,
                first_column: block.columns.start(),
                table_dim: spec.dim,
            };
            let rows = block.map.rows_of(stored.part)?;
            Ok(TableSpec { rows, dim: block.columns.columns(), window, ..spec.clone() })
        });
        local.collect()
    }

    /// The features of this rank over its stored parts.
    pub(super) fn map(&self, local: &[TableSpec], map: &FeatureMap) -> Result<FeatureMap> {
        let features = self.own().portions.iter().map(|portion| {
            let feature = &map.features()[portion.feature];
            let table = self.stored.iter().position(|stored| stored.table == feature.table);
            Feature {
                name: feature.name.clone(),
                table: table.expect("invariant: portions are of stored parts"),
                // Owners of a part of the rows sum; the destination knows the whole bag.
                pooling: if portion.divide { Pooling::Sum } else { feature.pooling },
            }
        });
        Ok(FeatureMap::new(features.collect(), local, 0)?)
    }
}

/// Says of every output column which owner's part is the first and which the last.
fn mark_ends(owned: &mut [Owned]) {
    let mut begun = BTreeSet::new();
    for portion in owned.iter_mut().flat_map(|owned| &mut owned.portions) {
        if begun.insert(portion.output) && portion.place == Place::Later {
            portion.place = Place::First;
        }
    }
    let mut ended = BTreeSet::new();
    for portion in owned.iter_mut().rev().flat_map(|owned| &mut owned.portions) {
        portion.last = ended.insert(portion.output);
    }
}

fn statistics(stored: &[Stored], shared: &[Vec<(usize, usize)>]) -> Vec<Vec<Columns>> {
    let all_of = |(place, stored): (usize, &Stored)| {
        let mut blocks = vec![(stored.block, Columns::Own)];
        for (entry, &(of, block)) in shared.iter().flatten().enumerate() {
            if of == place {
                blocks.push((block, Columns::Shared(entry)));
            }
        }
        blocks.sort_unstable_by_key(|&(block, _)| block);
        blocks.into_iter().map(|(_, columns)| columns).collect()
    };
    stored.iter().enumerate().map(all_of).collect()
}

fn shared(
    plan: &Plan,
    stored: &[Stored],
    position: usize,
    positions: usize,
) -> Result<Vec<Vec<(usize, usize)>>> {
    let mut shared = vec![Vec::new(); positions];
    for (place, stored) in stored.iter().enumerate() {
        for (number, block) in tier_of(plan, stored.table)?.blocks.iter().enumerate() {
            let owner = block.owners.get(stored.part).map(|owner| owner as usize);
            let other = number != stored.block;
            if let Some(owner) = owner.filter(|&owner| other && owner != position) {
                shared[owner].push((place, number));
            }
        }
    }
    Ok(shared)
}
