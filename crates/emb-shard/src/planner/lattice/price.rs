//! What each choice of a table costs the mean rank: [`Priced`].

use super::choice::Choice;
use super::options;
use crate::cost::{EvenCut, Typical};
use crate::{Ledger, Mesh, Objective, Result, RowRange, TableId, Task};
use std::collections::BTreeMap;

/// A choice with its price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priced {
    pub(super) choice: Choice,
    /// What the mean rank pays: seconds or bytes, as the objective counts.
    pub(super) mean: f64,
    /// What an owner pays, if its owners alone pay all.
    pub(super) owner: f64,
    /// Bytes that an owner stores.
    pub(super) stored: f64,
    /// The position that the task says.
    pub(super) pinned: Option<u32>,
}

/// How much of the exchange of ids counts, `0..=1`: it may run behind the dense model.
pub(super) type IdsCount = f64;

/// The choices of a table that may be part of a best plan over `mesh`: for every number of owners
/// the cheapest.
pub(super) fn of_table(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    mesh: Mesh,
    id: TableId,
    ids_count: IdsCount,
) -> Result<Vec<Priced>> {
    let table = &task.workload.tables().tables()[id];
    let pinned = task.constraints.pinned.get(table.name()).copied();
    let mut cheapest: BTreeMap<(u32, u32), Priced> = BTreeMap::new();
    for choice in options::of_table(task, mesh, table)? {
        if pinned.is_some() && (choice.owners() > 1 || choice.mesh != mesh) {
            continue;
        }
        let priced = Priced { pinned, ..price(task, ledger, id, choice, ids_count)? };
        let key = (choice.owners() * choice.mesh.replicas(), choice.unit);
        let known = cheapest.entry(key).or_insert(priced);
        if priced.mean < known.mean {
            *known = priced;
        }
    }
    let mut all: Vec<Priced> = cheapest.into_values().collect();
    // More owners for a higher price never help.
    all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    Ok(all)
}

/// The price of one choice.
pub(super) fn price(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    id: TableId,
    choice: Choice,
    ids_count: IdsCount,
) -> Result<Priced> {
    let table = &task.workload.tables().tables()[id];
    let cut = EvenCut {
        rows: RowRange::new(choice.hot, table.rows())?,
        mesh: choice.mesh,
        exchange: choice.exchange,
        sync: choice.sync,
        row_parts: choice.row_units * choice.unit,
        blocks: choice.blocks,
        nodes: if choice.unit > 1 { choice.row_units } else { nodes(task, &choice) },
    };
    let typical = ledger.typical(id, &cut)?;
    let mean = amount(task.objective, &typical, ids_count);
    let share = f64::from(choice.mesh.group_ranks()) / f64::from(choice.owners());
    Ok(Priced { choice, mean, owner: mean * share, stored: typical.stored * share, pinned: None })
}

/// Nodes that single owners are on: as many as there are, at most all.
fn nodes(task: &Task<'_>, choice: &Choice) -> u32 {
    let world = choice.mesh.world();
    choice.row_units.min((world / task.node_ranks().max(1)).max(1))
}

fn amount(objective: Objective, typical: &Typical, ids_count: IdsCount) -> f64 {
    let seconds = typical.rest + ids_count * typical.ids;
    match objective {
        Objective::StepSeconds => seconds,
        // Among equals the faster.
        Objective::InterNodeBytes => typical.inter_node + seconds * 1e-3,
        Objective::Memory => typical.stored + typical.buffers + seconds * 1e-3,
    }
}
