//! Which table a plan has no room for.

use super::state::{State, beside};
use crate::{Bytes, DoesNotFit, Error};

/// Why `state` does not fit: the largest part on its fullest rank, and what that rank has left for
/// it.
pub(super) fn of(state: &mut State<'_>) -> Error {
    let positions = state.ledger.by_position(state.mesh, beside(state.task));
    let fullest = positions.iter().enumerate().reduce(|a, b| if b.1.1 > a.1.1 { b } else { a });
    let (position, used) = fullest.map_or((0, 0.0), |(position, at)| (position, at.1));
    let budget = state.task.table_budget();
    let mut largest = (0, 0, "table_wise");
    for (number, placed) in state.placed.iter().enumerate() {
        let table = &state.task.workload.tables().tables().as_slice()[number];
        for tier in placed.tiers() {
            let rank = state.mesh.rank_at(0, position as u32);
            let at = tier.mesh.place_of(rank).1.get();
            let parts = tier.blocks.iter().filter_map(|block| {
                let rows = block.map.rows_of(block.owners.part_of(at)?).ok()?;
                Some(table.part_bytes(rows, block.columns.columns()).total().get())
            });
            let bytes = parts.sum();
            if bytes > largest.0 {
                largest = (bytes, number, tier.kind());
            }
        }
    }
    let (needs, number, kind) = largest;
    let others = (used - needs as f64).max(0.0).ceil() as u64;
    let has = Bytes::new(budget.get().saturating_sub(others));
    let table = &state.task.workload.tables().tables().as_slice()[number];
    Error::DoesNotFit(Box::new(DoesNotFit::new(
        table,
        kind,
        state.mesh,
        Bytes::new(needs),
        has,
        budget,
    )))
}
