//! Which position of a group stores what of the tables of one exchange, from the plan alone:
//! [`Layout`].

use super::check::gradient_scale;
use super::error::Result;
use emb_kernels::{RowNumbers, TableSpec, Window};
use emb_optim::{Optimizer, ReplicaRule, ReplicaScaling};
use emb_shard::{Exchange, Mesh, Plan, Rank, ReplicaSync, RowMap, RowMapKind, RowOrder, TableId};
use std::ops::Range;

/// The tiers that share an exchange.
#[derive(Clone, Debug)]
pub(super) struct Members {
    pub(super) mesh: Mesh,
    pub(super) exchange: Exchange,
    /// Tables and tiers, in table order.
    pub(super) tiers: Vec<(TableId, usize)>,
}

/// A block of rows of a table.
#[derive(Clone, Debug)]
pub(super) struct Tier {
    /// Position of the table.
    pub(super) table: usize,
    /// Its rows, by place in the order of the table.
    pub(super) places: Range<u64>,
    /// Whether it is all of the table.
    pub(super) alone: bool,
    /// All its columns, in order.
    pub(super) blocks: Vec<Block>,
    /// What gradients are multiplied by.
    pub(super) scale: f32,
    /// Whether replicas sum gradients.
    pub(super) sums: bool,
}

/// Columns of a tier.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// First column in the table.
    pub(super) column: usize,
    pub(super) width: usize,
    /// Which part has which row of the tier.
    pub(super) map: RowMap,
    /// By part: its shard, or [`Block::NOBODY`].
    pub(super) shards: Vec<usize>,
    /// Where an earlier block's rows are cut alike: who gets the same ids as whom.
    pub(super) repeats: Option<Vec<Repeat>>,
}

/// An owner of columns that gets the ids of an owner of other columns of the same rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    pub(super) from: usize,
    /// Shards of the tier that the first owner has behind the one that is repeated, by then.
    pub(super) after: usize,
    pub(super) to: usize,
}

/// Rows and columns of a tier that one position stores; at least a row.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    /// Position of the tier in [`Layout::tiers`].
    pub(super) tier: usize,
    pub(super) block: usize,
    pub(super) part: usize,
    /// Position in the group.
    pub(super) owner: usize,
    pub(super) width: usize,
}

/// The tables of one exchange, as the ranks of one group share them.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// This rank's position.
    pub(super) position: usize,
    /// In table order.
    pub(super) tiers: Vec<Tier>,
    /// By tier, column block and row part.
    pub(super) shards: Vec<Shard>,
    /// By position of the group, its shards in their order.
    pub(super) owned: Vec<Vec<usize>>,
}

impl Block {
    /// A part without rows.
    pub(super) const NOBODY: usize = usize::MAX;

    /// Parts that have rows.
    pub(super) fn parts(&self) -> usize {
        self.shards.iter().filter(|&&shard| shard != Self::NOBODY).count()
    }
}

impl Layout {
    /// The layout of `members` as `rank` sees it.
    pub(super) fn new(
        plan: &Plan,
        members: &Members,
        specs: &[TableSpec],
        rank: Rank,
    ) -> Result<Self> {
        let position = members.mesh.replica_set_of(rank)?.get() as usize;
        let mut owned = vec![Vec::new(); members.mesh.group_ranks() as usize];
        let (mut tiers, mut shards) = (Vec::new(), Vec::new());
        for &(table, number) in &members.tiers {
            let planned = plan.tier(table, number)?;
            let mut blocks: Vec<Block> = Vec::new();
            for (block, cut) in planned.blocks.iter().enumerate() {
                let width = cut.columns.columns();
                let mut of_part = vec![Block::NOBODY; cut.owners.len()];
                for (part, owner) in cut.owners.iter().enumerate() {
                    if cut.map.rows_of(part)? > 0 {
                        of_part[part] = shards.len();
                        owned[owner as usize].push(shards.len());
                        let (tier, owner) = (tiers.len(), owner as usize);
                        shards.push(Shard { tier, block, part, owner, width });
                    }
                }
                let same = blocks.iter().position(|other| other.map == cut.map);
                let repeats = same.map(|same| repeats(&shards, &blocks[same..], &of_part));
                let (column, map) = (cut.columns.start(), cut.map.clone());
                blocks.push(Block { column, width, map, shards: of_part, repeats });
            }
            let table = table.get() as usize;
            let scale = gradient_scale(&specs[table], planned);
            let places = planned.rows.start()..planned.rows.end();
            let alone = plan.placed()[TableId::new(table as u32)].tiers.len() == 1;
            let sums = planned.sync == ReplicaSync::Gradients;
            tiers.push(Tier { table, places, alone, blocks, scale, sums });
        }
        Ok(Self { position, tiers, shards, owned })
    }

    /// What this rank stores, in order.
    pub(super) fn stored(&self) -> impl ExactSizeIterator<Item = &Shard> + Clone {
        self.owned[self.position].iter().map(|&shard| &self.shards[shard])
    }

    /// The tier and the column block of a shard.
    pub(super) fn of(&self, shard: &Shard) -> (&Tier, &Block) {
        let tier = &self.tiers[shard.tier];
        (tier, &tier.blocks[shard.block])
    }

    /// The tiers of a table, and their positions.
    pub(super) fn tiers_of(&self, table: usize) -> impl Iterator<Item = (usize, &Tier)> {
        self.tiers.iter().enumerate().filter(move |(_, tier)| tier.table == table)
    }

    /// The stored shards as tables of a backend.
    pub(super) fn specs(
        &self,
        plan: &Plan,
        mesh: Mesh,
        specs: &[TableSpec],
    ) -> Result<Vec<TableSpec>> {
        let spec = |shard: &Shard| {
            let (tier, block) = self.of(shard);
            let spec = &specs[tier.table];
            let placed = &plan.placed()[TableId::new(tier.table as u32)];
            let mut window = Window::whole(spec.dim);
            window.first_column = block.column;
            number_rows(&mut window, tier, block, shard.part, placed.order.as_ref());
            let optimizer = if placed.tiers.len() > 1 {
                of_replicas(&spec.optimizer, mesh.replicas(), tier.sums)?
            } else {
                spec.optimizer
            };
            let rows = block.map.rows_of(shard.part)?;
            Ok(TableSpec { rows, dim: block.width, window, optimizer, ..spec.clone() })
        };
        self.stored().map(spec).collect()
    }

    /// The row of the table that the stored shard `number` has as row `local`.
    pub(super) fn table_row(&self, plan: &Plan, number: usize, local: u64) -> Result<u64> {
        let shard = &self.shards[self.owned[self.position][number]];
        let (tier, block) = self.of(shard);
        let place = tier.places.start + block.map.global(shard.part, local)?;
        let placed = &plan.placed()[TableId::new(tier.table as u32)];
        Ok(placed.order.as_ref().map_or(place, |order| order.row(place)))
    }
}

/// Who gets the ids of the first of `blocks` again, for a block whose parts are `shards`, part by
/// part.
fn repeats(all: &[Shard], blocks: &[Block], shards: &[usize]) -> Vec<Repeat> {
    let (first, between) = (&blocks[0], &blocks[1..]);
    let mut repeats = Vec::with_capacity(shards.len());
    for (part, &shard) in shards.iter().enumerate().filter(|(_, shard)| **shard != Block::NOBODY) {
        let (from, to) = (all[first.shards[part]].owner, all[shard].owner);
        let before = between.iter().flat_map(|block| &block.shards).chain(&shards[..part]);
        let after = before.filter(|&&shard| shard != Block::NOBODY && all[shard].owner == from);
        repeats.push(Repeat { from, after: after.count(), to });
    }
    repeats
}

/// Says which rows of the table the rows of a part are.
fn number_rows(
    window: &mut Window,
    tier: &Tier,
    block: &Block,
    part: usize,
    order: Option<&RowOrder>,
) {
    let first = tier.places.start;
    match block.map.kind() {
        RowMapKind::Range(starts) if order.is_none() => window.first_row = first + starts[part],
        RowMapKind::Modulo { owners } if order.is_none() => {
            (window.first_row, window.row_step) = (first + part as u64, owners as u64);
        }
        _ => {
            let (map, order) = (block.map.clone(), order.cloned());
            window.rows = Some(RowNumbers::new(move |local| {
                let row = map.global(part, local).expect("invariant: a row of the part");
                order.as_ref().map_or(first + row, |order| order.row(first + row))
            }));
        }
    }
}

/// The same optimizer in a tier of `replicas` replicas, which sum gradients or not.
fn of_replicas(optimizer: &Optimizer, replicas: u32, sums: bool) -> Result<Optimizer> {
    let mut config = *optimizer.config();
    config.replica = ReplicaScaling { replicas, ..config.replica };
    if sums && config.replica.rule != ReplicaRule::None {
        config.replica.rule = ReplicaRule::Exact;
    }
    Ok(config.build()?)
}

/// Tells `each` the part and the local row of every row of a map, in order.
///
/// The rule of the map is looked at once, not for every row.
pub(super) fn locate_all(
    map: &RowMap,
    rows: impl Iterator<Item = u64>,
    mut each: impl FnMut(usize, u64),
) {
    match map.kind() {
        RowMapKind::Range([_, _]) => rows.for_each(|row| each(0, row)),
        RowMapKind::Range(starts) => rows.for_each(|row| {
            // The last start at or before it: earlier equal starts are empty parts.
            let part = starts.partition_point(|&start| start <= row) - 1;
            each(part, row - starts[part]);
        }),
        RowMapKind::Modulo { owners } => {
            let owners = owners as u64;
            rows.for_each(|row| each((row % owners) as usize, row / owners));
        }
        RowMapKind::Permuted { .. } => rows.for_each(|row| {
            let place = map.locate(row).expect("invariant: rows of the map");
            each(place.owner, place.local);
        }),
    }
}
