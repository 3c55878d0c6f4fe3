//! Pieces become the column blocks of a plan.

use super::Task;
use super::clusters::Cluster;
use super::problem::Problem;
use super::state::Piece;
use crate::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, Per, Plan, PlanSpec, Pooling, ReplicaSync,
    Result, RowMap, RowRange, Table, TablePlan, Tier,
};
use std::num::NonZeroU32;

/// The plan of all tables.
pub(super) fn plan(
    task: &Task<'_>,
    problem: &Problem<'_>,
    clusters: &[Cluster],
    pieces: Vec<Piece>,
) -> Result<Plan> {
    let mesh = problem.buckets.mesh;
    let mut by_item: Vec<Vec<Piece>> = vec![Vec::new(); problem.items.len()];
    for piece in pieces {
        by_item[piece.item].push(piece);
    }
    let mut by_item = by_item.into_iter().enumerate();
    let tables = task.workload.tables();
    let mut plans = Vec::with_capacity(clusters.len());
    for (table, &cluster) in tables.tables().as_slice().iter().zip(clusters) {
        plans.push(match cluster {
            Cluster::DataParallel => everywhere(table, mesh)?,
            Cluster::Unique => {
                let block = whole(table, Owners::span(0, mesh.group_ranks()))?;
                placed(table, mesh, Exchange::Unique { per: Per::Rank }, vec![block])?
            }
            Cluster::Pinned(owner) => {
                let exchange = match table.pooling() {
                    Pooling::None => Exchange::Unique { per: Per::Rank },
                    Pooling::Sum | Pooling::Mean => problem.buckets.exchange,
                };
                placed(table, mesh, exchange, vec![whole(table, Owners::span(owner, 1))?])?
            }
            Cluster::Reduction => {
                let (item, pieces) = by_item.next().unwrap_or_default();
                let blocks = blocks(problem, item, pieces)?;
                placed(table, mesh, problem.buckets.exchange, blocks)?
            }
        });
    }
    let (world, node_ranks) = (mesh.world(), task.node_ranks());
    Plan::new(tables, PlanSpec { world, node_ranks, tables: plans })
}

/// A table on every rank.
pub(super) fn everywhere(table: &Table, mesh: Mesh) -> Result<TablePlan> {
    let mesh = Mesh::new(mesh.world(), 1, Layout::Strided)?;
    let mut plan = placed(table, mesh, Exchange::Local, vec![whole(table, Owners::span(0, 1))?])?;
    if mesh.replicas() > 1 {
        plan.tiers[0].sync = ReplicaSync::Gradients;
    }
    Ok(plan)
}

fn placed(table: &Table, mesh: Mesh, exchange: Exchange, blocks: Vec<Block>) -> Result<TablePlan> {
    let sync = match mesh.replicas() {
        1 => ReplicaSync::None,
        _ => ReplicaSync::Weights { every: NonZeroU32::MIN },
    };
    let tier = Tier { rows: RowRange::new(0, table.rows())?, mesh, exchange, sync, blocks };
    Ok(TablePlan { table: table.name().to_owned(), order: None, tiers: vec![tier] })
}

/// All columns, rows dealt out to `owners`.
fn whole(table: &Table, owners: Owners) -> Result<Block> {
    let columns = ColRange::new(0, table.dim())?;
    Ok(Block { columns, map: RowMap::modulo(table.rows(), owners.len())?, owners })
}

/// Column blocks in the order of their buckets; those on the same buckets are one.
fn blocks(problem: &Problem<'_>, item: usize, mut pieces: Vec<Piece>) -> Result<Vec<Block>> {
    let (table, width) = (problem.items[item].table, problem.buckets.width);
    pieces.sort_by(|a, b| a.buckets.cmp(&b.buckets));
    if problem.items[item].freedom.shapes.is_none() {
        pieces.dedup_by(|later, kept| {
            let same = later.buckets == kept.buckets;
            kept.columns += if same { later.columns } else { 0 };
            same
        });
    }
    let mut start = 0;
    let mut blocks = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let columns = ColRange::new(start, start + piece.columns)?;
        start = columns.end();
        let owners = owners(&piece.buckets, width, table.rows());
        let map = RowMap::modulo(table.rows(), owners.len())?;
        blocks.push(Block { columns, map, owners });
    }
    Ok(blocks)
}

/// All ranks of all buckets: bucket by bucket, or in turn where rows are fewer than ranks, so that
/// every bucket gets some.
fn owners(buckets: &[u32], width: u32, rows: u64) -> Owners {
    let at = |bucket: u32, rank: u32| bucket * width + rank;
    let ranks = 0..width;
    let positions: Vec<u32> = if rows < buckets.len() as u64 * u64::from(width) {
        ranks.flat_map(|rank| buckets.iter().map(move |&bucket| at(bucket, rank))).collect()
    } else {
        buckets.iter().flat_map(|&bucket| ranks.clone().map(move |rank| at(bucket, rank))).collect()
    };
    Owners::list(&positions)
}
