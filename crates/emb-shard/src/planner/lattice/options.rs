//! The choices that a table has in one mesh, under the constraints of a task.

use super::choice::Choice;
use crate::{
    Exchange, Kind, Layout, Mesh, NodeSplit, Path, Per, Pooling, ReplicaSync, Result, Table, Task,
};
use std::num::NonZeroU32;

/// Fewest columns of a block where the task does not say: the width at which rows stop being read
/// at full speed (`EMBark` splits no narrower, `HugeCTR` v25.03, `sharding/planner.py`).
const MIN_COLUMNS: usize = 32;

/// All choices for `table` over `mesh` on nodes of `node_ranks` ranks.
pub(super) fn of_table(
    task: &Task<'_>,
    node_ranks: u32,
    mesh: Mesh,
    table: &Table,
) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    if task.allows(Kind::DataParallel) {
        choices.push(data_parallel(mesh)?);
    }
    if mesh.group_ranks() == 1 {
        return Ok(choices);
    }
    let split = NodeSplit::new(mesh, node_ranks)?;
    let nodes = split.filter(|split| split.parts() > 1 && split.part_ranks() > 1);
    for cut in cuts(task, mesh, table, nodes.map(|split| split.part_ranks())) {
        let known = exchanges(table, nodes.is_some());
        for exchange in known.into_iter().filter(|&exchange| task.allows_exchange(exchange)) {
            choices.push(Choice { exchange, ..cut });
        }
    }
    Ok(choices)
}

fn data_parallel(mesh: Mesh) -> Result<Choice> {
    let alone = mesh.world() == 1;
    Ok(Choice {
        mesh: Mesh::new(mesh.world(), 1, Layout::Strided)?,
        exchange: Exchange::Local,
        sync: if alone { ReplicaSync::None } else { ReplicaSync::Gradients },
        unit: 1,
        row_units: 1,
        blocks: 1,
        hot: 0,
    })
}

fn cuts(task: &Task<'_>, mesh: Mesh, table: &Table, node: Option<u32>) -> Vec<Choice> {
    let sync = match mesh.replicas() {
        1 => ReplicaSync::None,
        _ => ReplicaSync::TouchedRows { every: NonZeroU32::MIN },
    };
    let exchange = Exchange::Reduce { over: Path::Flat };
    let least = task.constraints.min_columns.unwrap_or(MIN_COLUMNS).max(1);
    let widest = (table.dim() / least).max(1) as u32;
    let mut cuts = Vec::new();
    for unit in [Some(1), node].into_iter().flatten() {
        let units = mesh.group_ranks() / unit;
        for blocks in doubling(widest.min(units)) {
            for row_units in doubling(units / blocks) {
                let cut = Choice { mesh, exchange, sync, unit, row_units, blocks, hot: 0 };
                // Fewer rows than parts would leave owners without any.
                if u64::from(row_units * unit) <= table.rows().max(1) && allowed(task, &cut) {
                    cuts.push(cut);
                }
            }
        }
    }
    cuts
}

/// Powers of two up to `most`, and `most` itself.
fn doubling(most: u32) -> impl Iterator<Item = u32> {
    let powers = std::iter::successors(Some(1u32), |power| power.checked_mul(2));
    powers.take_while(move |&power| power < most).chain((most > 0).then_some(most))
}

fn allowed(task: &Task<'_>, cut: &Choice) -> bool {
    task.allows(match (cut.blocks, cut.row_units * cut.unit) {
        (1, 1) => Kind::TableWise,
        (1, owners) if owners == cut.mesh.group_ranks() => Kind::RowWise,
        (1, _) => Kind::TableRowWise,
        (_, 1) => Kind::ColumnWise,
        _ => Kind::Grid,
    })
}

fn exchanges(table: &Table, by_node: bool) -> Vec<Exchange> {
    let mut exchanges = vec![Exchange::Unique { per: Per::Rank }];
    if by_node {
        exchanges.push(Exchange::Unique { per: Per::Node });
    }
    match table.pooling() {
        Pooling::None => exchanges.push(Exchange::Rows),
        Pooling::Sum | Pooling::Mean => {
            exchanges.push(Exchange::Reduce { over: Path::Flat });
            if by_node {
                exchanges.push(Exchange::Reduce { over: Path::Hierarchical });
            }
        }
    }
    exchanges
}
