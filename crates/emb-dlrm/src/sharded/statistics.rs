//! Statistics of whole rows where their columns are cut: [`Statistics`].
//!
//! A row-wise rule needs the statistic of the whole row. Owners of a row's column blocks were asked
//! for the same rows, so they touch the same; each tells the others what it has of every row, and
//! all add that up in the order of columns.

use super::error::Result;
use super::layout::{Block, Layout, Tier, locate_all};
use emb_comm::Collective;
use emb_kernels::RowGradients;

/// What the owners of columns tell each other, and memory for it.
#[derive(Debug)]
pub(super) struct Statistics {
    /// Tiers of the layout whose rows are cut and whose rule wants to know.
    tiers: Vec<usize>,
    /// By stored shard: whether it is of such a tier.
    shared: Vec<bool>,
    /// By stored shard, `[blocks, touched rows]`.
    of_blocks: Vec<Vec<f64>>,
    /// By stored shard, of whole rows.
    totals: Vec<Vec<f64>>,
    /// Of a shard at hand, in the order of the tier: rows and their places in the list.
    rows: Vec<(u64, usize)>,
    send: Vec<f64>,
    received: Vec<f64>,
    /// By position of the group: values for it, and from it.
    send_counts: Vec<usize>,
    counts: Vec<usize>,
    cursors: Vec<usize>,
}

/// A stored shard of a tier at hand.
#[derive(Clone, Copy)]
struct Stored {
    /// Place among those stored.
    number: usize,
    block: usize,
    part: usize,
}

impl Statistics {
    /// `wants` says which tables have rules that need statistics.
    pub(super) fn new(layout: &Layout, wants: impl Fn(usize) -> bool) -> Self {
        let cut = |tier: &Tier| tier.blocks.len() > 1 && wants(tier.table);
        let tiers = layout.tiers.iter().enumerate().filter(|(_, tier)| cut(tier));
        let tiers: Vec<usize> = tiers.map(|(number, _)| number).collect();
        let stored = layout.stored().len();
        Self {
            shared: layout.stored().map(|shard| tiers.contains(&shard.tier)).collect(),
            tiers,
            of_blocks: vec![Vec::new(); stored],
            totals: vec![Vec::new(); stored],
            rows: Vec::new(),
            send: Vec::new(),
            received: Vec::new(),
            send_counts: Vec::new(),
            counts: Vec::new(),
            cursors: Vec::new(),
        }
    }

    /// Whether there is anything to tell, for any rank of the group.
    pub(super) fn any(&self) -> bool {
        !self.tiers.is_empty()
    }

    /// The statistics of the rows that stored shard `number` touched.
    pub(super) fn of_rows<'a>(&'a self, number: usize, touched: &'a RowGradients) -> &'a [f64] {
        if self.shared[number] { &self.totals[number] } else { touched.statistics(number) }
    }

    /// All columns are here.
    pub(super) fn add_own(&mut self, layout: &Layout, touched: &RowGradients) {
        self.begin(layout, touched);
        self.finish(layout, touched);
    }

    /// Tells and asks the other owners of columns; one collective for all tables.
    pub(super) fn exchange<C: Collective>(
        &mut self,
        layout: &Layout,
        group: &mut C,
        touched: &RowGradients,
    ) -> Result<()> {
        self.begin(layout, touched);
        self.pack(layout, touched);
        self.received.resize(self.counts.iter().sum(), 0.0);
        let (send, counts) = (&self.send_counts, &self.counts);
        group.all_to_all_v::<f64>(&self.send, send, &mut self.received, counts)?;
        self.unpack(layout, touched);
        self.finish(layout, touched);
        Ok(())
    }

    /// Puts what is known here in its place.
    fn begin(&mut self, layout: &Layout, touched: &RowGradients) {
        for n in 0..self.tiers.len() {
            let tier = self.tiers[n];
            let blocks = layout.tiers[tier].blocks.len();
            let rows = |stored: Stored| touched.rows(stored.number).len();
            each_stored(layout, tier, |stored| {
                let of_blocks = &mut self.of_blocks[stored.number];
                of_blocks.clear();
                of_blocks.resize(blocks * rows(stored), 0.0);
            });
            // Blocks of the same rows may lie on one rank.
            each_stored(layout, tier, |to| {
                each_stored(layout, tier, |from| self.take_own(layout, tier, (from, to), touched));
            });
        }
    }

    /// Statistics of one stored shard for another, of the rows that both have.
    fn take_own(
        &mut self,
        layout: &Layout,
        tier: usize,
        (from, to): (Stored, Stored),
        touched: &RowGradients,
    ) {
        let rows = touched.rows(to.number);
        let own = touched.statistics(from.number);
        let column = &mut self.of_blocks[to.number][from.block * rows.len()..][..rows.len()];
        if from.number == to.number {
            column.copy_from_slice(own);
            return;
        }
        let blocks = &layout.tiers[tier].blocks;
        in_tier_order(&blocks[to.block], to.part, rows, &mut self.rows);
        let (places, theirs) = (&self.rows, touched.rows(from.number));
        let tier_rows = places.iter().map(|&(row, _)| row);
        let mut places = places.iter();
        locate_all(&blocks[from.block].map, tier_rows, |part, local| {
            let &(_, place) = places.next().expect("invariant: one for each row");
            if part == from.part
                && let Ok(at) = theirs.binary_search(&local)
            {
                column[place] = own[at];
            }
        });
    }

    /// Lays out what every other position is told, in the order of tiers, its blocks and theirs.
    fn pack(&mut self, layout: &Layout, touched: &RowGradients) {
        let positions = layout.owned.len();
        for count in [&mut self.send_counts, &mut self.counts] {
            count.clear();
            count.resize(positions, 0);
        }
        let Self { tiers, rows, send, send_counts, counts, cursors, .. } = self;
        for &tier in &*tiers {
            each_told(layout, tier, touched, rows, |owner, _, _| send_counts[owner] += 1);
        }
        cursors.clear();
        let mut start = 0;
        for count in &*send_counts {
            cursors.push(start);
            start += count;
        }
        send.resize(start, 0.0);
        for &tier in &*tiers {
            each_told(layout, tier, touched, rows, |owner, stored, place| {
                send[cursors[owner]] = touched.statistics(stored.number)[place];
                cursors[owner] += 1;
            });
            each_heard(layout, tier, touched, rows, |owner, _, _, _| counts[owner] += 1);
        }
    }

    /// Takes what the other positions told.
    fn unpack(&mut self, layout: &Layout, touched: &RowGradients) {
        let Self { tiers, rows, received, counts, cursors, of_blocks, .. } = self;
        cursors.clear();
        let mut start = 0;
        for count in &*counts {
            cursors.push(start);
            start += count;
        }
        for &tier in &*tiers {
            each_heard(layout, tier, touched, rows, |owner, block, stored, place| {
                let len = touched.rows(stored.number).len();
                of_blocks[stored.number][block * len + place] = received[cursors[owner]];
                cursors[owner] += 1;
            });
        }
    }

    /// Adds the blocks up, in the order of columns.
    fn finish(&mut self, layout: &Layout, touched: &RowGradients) {
        for n in 0..self.tiers.len() {
            let tier = self.tiers[n];
            each_stored(layout, tier, |stored| {
                let rows = touched.rows(stored.number).len();
                let totals = &mut self.totals[stored.number];
                totals.clear();
                let mut blocks = self.of_blocks[stored.number].chunks_exact(rows.max(1));
                totals.extend_from_slice(blocks.next().unwrap_or_default());
                for block in blocks {
                    totals.iter_mut().zip(block).for_each(|(total, part)| *total += part);
                }
            });
        }
    }
}

/// Tells `each` the stored shards of a tier, by column block.
fn each_stored(layout: &Layout, tier: usize, mut each: impl FnMut(Stored)) {
    for (number, shard) in layout.stored().enumerate() {
        if shard.tier == tier {
            each(Stored { number, block: shard.block, part: shard.part });
        }
    }
}

/// Tells `each` the position that is told, the shard and the place of the row in its list: by block
/// that tells, block that is told, and row of the tier.
fn each_told(
    layout: &Layout,
    tier: usize,
    touched: &RowGradients,
    rows: &mut Vec<(u64, usize)>,
    mut each: impl FnMut(usize, Stored, usize),
) {
    let blocks = &layout.tiers[tier].blocks;
    for told in 0..blocks.len() * blocks.len() {
        let (from, to) = (told / blocks.len(), told % blocks.len());
        each_stored(layout, tier, |stored| {
            if stored.block == from && from != to {
                others(
                    layout,
                    &blocks[to],
                    &blocks[from],
                    stored,
                    touched,
                    rows,
                    |owner, place| {
                        each(owner, stored, place);
                    },
                );
            }
        });
    }
}

/// Tells `each` the position that tells, its block, the shard here and the place of the row in its
/// list, in the order of [`each_told`].
fn each_heard(
    layout: &Layout,
    tier: usize,
    touched: &RowGradients,
    rows: &mut Vec<(u64, usize)>,
    mut each: impl FnMut(usize, usize, Stored, usize),
) {
    let blocks = &layout.tiers[tier].blocks;
    for told in 0..blocks.len() * blocks.len() {
        let (from, to) = (told / blocks.len(), told % blocks.len());
        each_stored(layout, tier, |stored| {
            if stored.block == to && from != to {
                others(
                    layout,
                    &blocks[from],
                    &blocks[to],
                    stored,
                    touched,
                    rows,
                    |owner, place| {
                        each(owner, from, stored, place);
                    },
                );
            }
        });
    }
}

/// Tells `each` the owner of the columns of `other` of every row that a stored shard touched, if
/// that is not this rank, by row of the tier.
fn others(
    layout: &Layout,
    other: &Block,
    own: &Block,
    stored: Stored,
    touched: &RowGradients,
    rows: &mut Vec<(u64, usize)>,
    mut each: impl FnMut(usize, usize),
) {
    in_tier_order(own, stored.part, touched.rows(stored.number), rows);
    let mut places = rows.iter();
    locate_all(&other.map, rows.iter().map(|&(row, _)| row), |part, _| {
        let &(_, place) = places.next().expect("invariant: one for each row");
        let owner = layout.shards[other.shards[part]].owner;
        if owner != layout.position {
            each(owner, place);
        }
    });
}

/// Rows of the tier of the local rows of a part, ascending, with the place of each in the list.
fn in_tier_order(block: &Block, part: usize, local: &[u64], rows: &mut Vec<(u64, usize)>) {
    rows.clear();
    let row = |&local: &u64| block.map.global(part, local).expect("invariant: a row of the part");
    rows.extend(local.iter().map(row).zip(0..));
    // Only permuted rows are in another order.
    if !rows.is_sorted() {
        rows.sort_unstable();
    }
}
