//! What parts of tiers are asked for, from the access pattern alone.

use crate::case::Case;
use emb_shard::{Block, ReplicaSync, RowFrequencies, RowMap, RowMapKind, TableId, TablePlan, Tier};

/// What one rank asks of one part of the rows of a column block, as means of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) rows: u64,
    pub(crate) bags: f64,
    pub(crate) lookups: f64,
    /// Distinct rows among the look-ups of one rank, of its node, of a group, of all ranks.
    pub(crate) of_rank: f64,
    pub(crate) of_node: f64,
    pub(crate) of_group: f64,
    pub(crate) of_world: f64,
    /// Of a group and of all ranks between two syncs of touched rows.
    pub(crate) of_group_since: f64,
    pub(crate) of_world_since: f64,
}

pub(crate) struct Asking<'a> {
    pub(crate) case: &'a Case,
    pub(crate) table: TableId,
    pub(crate) plan: &'a TablePlan,
    pub(crate) tier: &'a Tier,
    /// Ranks of a group on a node.
    pub(crate) node: u32,
}

impl Asking<'_> {
    fn frequencies(&self) -> &RowFrequencies {
        &self.case.workload.frequencies()[self.table]
    }

    fn samples(&self) -> f64 {
        let world = self.case.topology.world();
        let all = self.case.workload.batch().global(world).expect("a batch");
        all as f64 / f64::from(world)
    }

    /// What a rank asks of the rows `start..end` of the table, in the order of frequency.
    pub(crate) fn rows(&self, start: u64, end: u64) -> Asked {
        let table = &self.case.workload.tables().tables()[self.table];
        let (frequencies, samples) = (self.frequencies(), self.samples());
        let all = samples * table.lookups();
        let range = emb_shard::RowRange::new(start, end).expect("ascends");
        let distinct = |times: f64| {
            frequencies.expected_unique_in(range, all * times).expect("rows of the table")
        };
        let mesh = self.tier.mesh;
        let (group, world) = (f64::from(mesh.group_ranks()), f64::from(mesh.world()));
        let steps = match self.tier.sync {
            ReplicaSync::TouchedRows { every } => f64::from(every.get()),
            _ => 1.0,
        };
        Asked {
            rows: end - start,
            bags: samples * table.features().len() as f64,
            lookups: all * (frequencies.share_of_top(end) - frequencies.share_of_top(start)),
            of_rank: distinct(1.0),
            of_node: distinct(f64::from(self.node)),
            of_group: distinct(group),
            of_world: distinct(world),
            of_group_since: distinct(group * steps),
            of_world_since: distinct(world * steps),
        }
    }

    /// What a rank asks of every part of a block, with its owner; parts without rows are left out.
    pub(crate) fn parts(&self, block: &Block) -> Vec<(u32, Asked)> {
        let ordered = self.plan.order.is_some() || self.plan.tiers.len() > 1;
        let first = self.tier.rows.start();
        let owned = block.owners.iter().enumerate();
        let owned = owned.map(|(part, owner)| (part, owner, rows_of(&block.map, part)));
        let owned: Vec<_> = owned.filter(|(.., rows)| *rows > 0).collect();
        if let (RowMapKind::Range(starts), true) = (block.map.kind(), ordered) {
            let parts = owned.into_iter().map(|(part, owner, _)| {
                (owner, self.rows(first + starts[part], first + starts[part + 1]))
            });
            return parts.collect();
        }
        let shuffled = matches!(block.map.kind(), RowMapKind::Permuted { .. });
        let turn = if ordered && !shuffled { 0 } else { self.table.get() as usize };
        let tier = self.rows(first, self.tier.rows.end());
        // One of the hottest rows for every part; the parts have the others in proportion.
        let mut hot = vec![0.0; owned.len()];
        if owned.len() > 1 {
            for rank in 0..tier.rows.min(owned.len() as u64) {
                let row = self.frequencies().probability(first + rank).expect("a row");
                hot[(turn + rank as usize) % owned.len()] += row;
            }
        }
        let all: f64 = hot.iter().sum();
        let mine = tier.lookups / (self.samples() * self.lookups());
        owned
            .iter()
            .zip(hot)
            .map(|(&(_, owner, rows), hot)| {
                let even = rows as f64 / tier.rows as f64;
                // The others are as often looked up as one another.
                let others = if owned.len() > 1 { owned.len() as u64 } else { 0 };
                let cold = (mine - all).max(0.0) / (tier.rows - others).max(1) as f64;
                let mut own = even;
                if mine > 0.0 {
                    let of_part = rows - u64::from(others > 0);
                    own = (of_part as f64 * cold + hot) / mine;
                }
                let least = |distinct: f64| (distinct * even).min(rows as f64);
                let asked = Asked {
                    rows,
                    bags: tier.bags,
                    lookups: tier.lookups * own,
                    of_rank: least(tier.of_rank),
                    of_node: least(tier.of_node),
                    of_group: least(tier.of_group),
                    of_world: least(tier.of_world),
                    of_group_since: least(tier.of_group_since),
                    of_world_since: least(tier.of_world_since),
                };
                (owner, asked)
            })
            .collect()
    }

    fn lookups(&self) -> f64 {
        self.case.workload.tables().tables()[self.table].lookups()
    }
}

/// Counts where it is cheap, so that maps are not taken at their word.
fn rows_of(map: &RowMap, part: usize) -> u64 {
    let said = map.rows_of(part).expect("a part");
    if map.rows() <= 100 {
        let counted = (0..map.rows()).filter(|&row| map.locate(row).expect("a row").owner == part);
        assert_eq!(counted.count() as u64, said);
    }
    said
}
