//! Which shards a rank has, found without searching: [`MeshIndex`].

use super::{Exchange, ReplicaSync, TablePlan};
use crate::{Mesh, PartBytes, Result, Table, TableId, Tables, TypedVec};

/// A column block of a tier of a table, by positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockRef {
    pub(crate) table: TableId,
    pub(crate) tier: u32,
    pub(crate) block: u32,
}

/// The shards of all tiers over one mesh, by position in the group.
///
/// Memory grows with the shards of one group, not with the replicas; blocks that give position `k`
/// their part `k` (row-wise over the whole group) take no entry per position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeshIndex {
    pub(crate) mesh: Mesh,
    /// Blocks whose part `k` belongs to position `k`, for all positions.
    pub(crate) everyone: Vec<BlockRef>,
    /// `[S + 1]`: position `k` has `some[starts[k]..starts[k + 1]]`.
    starts: Vec<u32>,
    some: Vec<(BlockRef, u32)>,
    /// `[S]`
    pub(crate) bytes: Vec<PartBytes>,
}

/// All tiers that one exchange serves: what one collective a stage carries for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeClass {
    /// The groups.
    pub mesh: Mesh,
    /// The exchange.
    pub exchange: Exchange,
    /// Tables and tiers, in table order.
    pub tiers: Vec<(TableId, usize)>,
    /// Whether columns of any of them are cut.
    pub columns_cut: bool,
}

/// All tiers whose replicas one sync keeps equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncClass {
    /// The groups; each replica set has one rank of each.
    pub mesh: Mesh,
    /// The sync, never [`ReplicaSync::None`].
    pub sync: ReplicaSync,
    /// Tables and tiers, in table order.
    pub tiers: Vec<(TableId, usize)>,
}

impl MeshIndex {
    /// Blocks and parts of position `position`, those of `everyone` not included.
    pub(crate) fn some_of(&self, position: usize) -> &[(BlockRef, u32)] {
        &self.some[self.starts[position] as usize..self.starts[position + 1] as usize]
    }
}

/// An index for every mesh that tiers use, in the order of first use.
pub(super) fn meshes(
    tables: &Tables,
    placed: &TypedVec<TableId, TablePlan>,
) -> Result<Vec<MeshIndex>> {
    let mut found: Vec<Mesh> = Vec::new();
    for tier in placed.as_slice().iter().flat_map(|table| &table.tiers) {
        if !found.contains(&tier.mesh) {
            found.push(tier.mesh);
        }
    }
    found.into_iter().map(|mesh| index(mesh, tables, placed)).collect()
}

fn index(mesh: Mesh, tables: &Tables, placed: &TypedVec<TableId, TablePlan>) -> Result<MeshIndex> {
    let group = mesh.group_ranks();
    let mut bytes = vec![PartBytes::default(); group as usize];
    let (mut everyone, mut entries) = (Vec::new(), Vec::new());
    for (id, plan) in placed.iter() {
        let table: &Table = &tables.tables()[id];
        for (tier_number, tier) in (0u32..).zip(&plan.tiers) {
            for (block_number, block) in (0u32..).zip(&tier.blocks) {
                if tier.mesh != mesh {
                    continue;
                }
                let at = BlockRef { table: id, tier: tier_number, block: block_number };
                let all = block.owners.as_span() == Some((0, group));
                if all {
                    everyone.push(at);
                }
                for (part, owner) in block.owners.iter().enumerate() {
                    let rows = block.map.rows_of(part)?;
                    let part_bytes = table.part_bytes(rows, block.columns.columns());
                    bytes[owner as usize] = bytes[owner as usize].plus(part_bytes);
                    if !all && rows > 0 {
                        entries.push((owner, at, part as u32));
                    }
                }
            }
        }
    }
    // Stable: shards of a position stay in table order.
    entries.sort_by_key(|&(owner, ..)| owner);
    let before = |position| entries.partition_point(|&(owner, ..)| owner < position) as u32;
    let starts = (0..=group).map(before).collect();
    let some = entries.into_iter().map(|(_, at, part)| (at, part)).collect();
    Ok(MeshIndex { mesh, everyone, starts, some, bytes })
}

/// The exchanges of all tiers, in the order of first use.
pub(super) fn exchanges(placed: &TypedVec<TableId, TablePlan>) -> Vec<ExchangeClass> {
    let mut classes: Vec<ExchangeClass> = Vec::new();
    for (id, plan) in placed.iter() {
        for (number, tier) in plan.tiers.iter().enumerate() {
            let (mesh, exchange) = (tier.mesh, tier.exchange);
            let same =
                |class: &&mut ExchangeClass| class.mesh == mesh && class.exchange == exchange;
            let cut = tier.blocks.len() > 1;
            if let Some(class) = classes.iter_mut().find(same) {
                class.tiers.push((id, number));
                class.columns_cut |= cut;
            } else {
                let tiers = vec![(id, number)];
                classes.push(ExchangeClass { mesh, exchange, tiers, columns_cut: cut });
            }
        }
    }
    classes
}

/// The syncs of all replicated tiers, in the order of first use.
pub(super) fn syncs(placed: &TypedVec<TableId, TablePlan>) -> Vec<SyncClass> {
    let mut classes: Vec<SyncClass> = Vec::new();
    for (id, plan) in placed.iter() {
        for (number, tier) in plan.tiers.iter().enumerate() {
            let (mesh, sync) = (tier.mesh, tier.sync);
            if sync == ReplicaSync::None {
                continue;
            }
            match classes.iter_mut().find(|class| class.mesh == mesh && class.sync == sync) {
                Some(class) => class.tiers.push((id, number)),
                None => classes.push(SyncClass { mesh, sync, tiers: vec![(id, number)] }),
            }
        }
    }
    classes
}
