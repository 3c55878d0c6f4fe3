//! What no plan of a task can be below.

use super::{Lattice, meshes, options, price};
use crate::{Ledger, Result, TableId, Task};

/// Seconds that no plan made of the choices of the lattice can be below.
///
/// A part of the step takes as long as its slowest rank, so at least as long as its mean rank, and
/// the mean ranks of all tables add up. Every table pays at least its cheapest choice, in any mesh,
/// with the exchange of ids behind the dense model where that may hide it. Bytes and links are
/// means over the ranks: where nodes differ, the bound is one of the mean rank.
pub(super) fn seconds(lattice: &Lattice, task: &Task<'_>) -> Result<f64> {
    let mut ledger = Ledger::new(&lattice.model, task.workload, task.topology, task.node_ranks())?;
    let empty = ledger.parts();
    let meshes = meshes(task)?;
    let (mut all, mut without_ids) = (0.0, 0.0);
    for (id, table) in task.workload.tables().tables().iter() {
        let (mut least, mut least_without) = (f64::INFINITY, f64::INFINITY);
        for &mesh in &meshes {
            for choice in options::of_table(task, mesh, table)? {
                least = least.min(seconds_of(task, &mut ledger, id, choice, 1.0)?);
                least_without = least_without.min(seconds_of(task, &mut ledger, id, choice, 0.0)?);
            }
        }
        all += least;
        without_ids += least_without;
    }
    Ok((empty.total() + without_ids).max(empty.dense_sync + all))
}

fn seconds_of(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    id: TableId,
    choice: super::choice::Choice,
    ids_count: f64,
) -> Result<f64> {
    let by_seconds = Task { objective: crate::Objective::StepSeconds, ..task.clone() };
    Ok(price::price(&by_seconds, ledger, id, choice, ids_count)?.mean)
}
