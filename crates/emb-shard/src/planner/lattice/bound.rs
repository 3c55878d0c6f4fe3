//! What no plan of a task can be below.

use super::price;
use crate::{Ledger, Mesh, Objective, Result, Task};

/// Seconds that no plan made of the choices of the lattice can be below.
///
/// A part of the step takes as long as its slowest rank, so at least as long as its mean rank, and
/// the mean ranks of all tables add up. Every table pays at least its cheapest choice, in any mesh,
/// with the exchange of ids behind the dense model where that may hide it. Bytes and links are
/// means over the ranks: where nodes differ, the bound is one of the mean rank.
pub(super) fn seconds(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    meshes: &[Mesh],
    improved: &[Mesh],
) -> Result<f64> {
    let by_seconds = Task { objective: Objective::StepSeconds, ..task.clone() };
    let empty = ledger.emptied().parts();
    let tables = task.workload.tables().tables().len();
    let (mut least, mut without_ids) = (vec![f64::INFINITY; tables], vec![f64::INFINITY; tables]);
    for &mesh in meshes {
        // Plans over other meshes have no hot rows on every rank.
        let hot = improved.contains(&mesh);
        for (ids_count, least) in [(1.0, &mut least), (0.0, &mut without_ids)] {
            if ids_count < 1.0 && empty.dense == 0.0 {
                continue;
            }
            let options = price::of_mesh(&by_seconds, ledger, mesh, ids_count, hot)?;
            for (least, options) in least.iter_mut().zip(&options) {
                // The cheapest comes first.
                *least = options.first().map_or(*least, |priced| least.min(priced.mean));
            }
        }
    }
    if empty.dense == 0.0 {
        without_ids.fill(0.0);
    }
    let (all, without_ids): (f64, f64) = (least.iter().sum(), without_ids.iter().sum());
    Ok((empty.total() + without_ids).max(empty.dense_sync + all))
}
