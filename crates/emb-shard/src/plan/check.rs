//! When a written plan is a plan: coverage, owners, exchanges and syncs.
//!
//! Coverage is by construction: tiers follow each other from row 0 to the last, column blocks from
//! column 0 to the last, and a [`RowMap`](crate::RowMap) is a bijection of rows to parts. As every
//! group has the same placement by position, a cell is covered once in every group.

use super::{Block, Exchange, PlanFault, ReplicaSync, TablePlan, Tier};
use crate::{Error, NodeSplit, Pooling, Result, RowMapKind, RowRange, Table};

/// Checks one table's placement. `seen` is scratch: positions already met.
pub(super) fn table(
    table: &Table,
    plan: &TablePlan,
    world: u32,
    node_ranks: u32,
    seen: &mut Vec<bool>,
) -> Result<()> {
    let fail = |tier, fault| Error::Plan { table: table.name().to_owned(), tier, fault };
    rows(table, plan).map_err(|(tier, fault)| fail(tier, fault))?;
    for (position, tier) in plan.tiers.iter().enumerate() {
        let fail = |fault| fail(Some(position), fault);
        if tier.mesh.world() != world {
            return Err(fail(PlanFault::World { groups: tier.mesh.world(), world }));
        }
        columns(table, tier).map_err(fail)?;
        for block in &tier.blocks {
            owners(tier, block, seen).map_err(fail)?;
        }
        let even = NodeSplit::new(tier.mesh, node_ranks)?.is_some();
        exchange(table, tier, node_ranks, even).map_err(fail)?;
    }
    Ok(())
}

fn rows(table: &Table, plan: &TablePlan) -> Result<(), (Option<usize>, PlanFault)> {
    if let Some(order) = &plan.order {
        let (order, rows) = (order.rows(), table.rows());
        if order != rows {
            return Err((None, PlanFault::OrderRows { order, rows }));
        }
    }
    let mut expected = 0;
    for (position, tier) in plan.tiers.iter().enumerate() {
        let rows = tier.rows;
        if rows.start() != expected {
            return Err((Some(position), PlanFault::TierStart { rows, expected }));
        }
        if rows.rows() == 0 {
            return Err((Some(position), PlanFault::TierEmpty { rows }));
        }
        expected = rows.end();
    }
    if plan.tiers.is_empty() {
        return Err((None, PlanFault::NoTiers));
    }
    if expected != table.rows() {
        return Err((None, PlanFault::TiersEnd { end: expected, rows: table.rows() }));
    }
    Ok(())
}

fn columns(table: &Table, tier: &Tier) -> Result<(), PlanFault> {
    if tier.blocks.is_empty() {
        return Err(PlanFault::NoBlocks { rows: tier.rows });
    }
    let mut expected = 0;
    for block in &tier.blocks {
        let columns = block.columns;
        if columns.start() != expected {
            return Err(PlanFault::ColumnStart { columns, expected });
        }
        if columns.columns() == 0 {
            return Err(PlanFault::ColumnsEmpty { columns });
        }
        if block.map.rows() != tier.rows.rows() {
            let (map, rows) = (block.map.rows(), tier.rows);
            return Err(PlanFault::MapRows { columns, map, rows });
        }
        expected = columns.end();
    }
    if expected != table.dim() {
        return Err(PlanFault::ColumnsEnd { end: expected, dim: table.dim() });
    }
    Ok(())
}

fn owners(tier: &Tier, block: &Block, seen: &mut Vec<bool>) -> Result<(), PlanFault> {
    let (columns, group_ranks) = (block.columns, tier.mesh.group_ranks());
    let (owners, parts) = (block.owners.len(), block.map.owners());
    if owners != parts {
        return Err(PlanFault::OwnerCount { columns, owners, parts });
    }
    if let Some((first, count)) = block.owners.as_span() {
        // Consecutive owners are distinct; the last one is the one that may be outside.
        let end = u64::from(first) + u64::from(count);
        if end > u64::from(group_ranks) {
            let rows = part_rows(tier, block, owners - 1);
            return Err(PlanFault::OwnerRange { columns, rows, owner: end - 1, group_ranks });
        }
        return Ok(());
    }
    seen.clear();
    seen.resize(group_ranks as usize, false);
    for (part, owner) in block.owners.iter().enumerate() {
        match seen.get_mut(owner as usize) {
            Some(met) if !*met => *met = true,
            Some(_) => {
                let rows = part_rows(tier, block, part);
                let rank = tier.mesh.rank_at(0, owner).get();
                return Err(PlanFault::OwnerTwice { columns, rows, owner, rank });
            }
            None => {
                let (rows, owner) = (part_rows(tier, block, part), u64::from(owner));
                return Err(PlanFault::OwnerRange { columns, rows, owner, group_ranks });
            }
        }
    }
    Ok(())
}

/// Rows of a part in the table's order; all rows of the tier where the part is not a range.
pub(super) fn part_rows(tier: &Tier, block: &Block, part: usize) -> RowRange {
    match block.map.kind() {
        RowMapKind::Range(starts) => {
            let first = tier.rows.start();
            RowRange::new(first + starts[part], first + starts[part + 1])
                .expect("invariant: starts never decrease")
        }
        RowMapKind::Modulo { .. } | RowMapKind::Permuted { .. } => tier.rows,
    }
}

fn exchange(table: &Table, tier: &Tier, node_ranks: u32, even: bool) -> Result<(), PlanFault> {
    let (exchange, sync) = (tier.exchange, tier.sync);
    let (group_ranks, replicas) = (tier.mesh.group_ranks(), tier.mesh.replicas());
    if (exchange == Exchange::Local) != (group_ranks == 1) {
        return Err(PlanFault::ExchangeGroup { exchange, group_ranks });
    }
    let pooling = table.pooling();
    let serves = match exchange {
        Exchange::Local | Exchange::Unique { .. } => true,
        Exchange::Reduce { .. } => pooling != Pooling::None,
        Exchange::Rows => pooling == Pooling::None,
    };
    if !serves {
        return Err(PlanFault::ExchangePooling { exchange, pooling });
    }
    if exchange.by_node() && !even {
        return Err(PlanFault::ExchangeNodes { exchange, node_ranks, group_ranks });
    }
    if (sync == ReplicaSync::None) != (replicas == 1) {
        return Err(PlanFault::SyncReplicas { sync, replicas });
    }
    Ok(())
}
