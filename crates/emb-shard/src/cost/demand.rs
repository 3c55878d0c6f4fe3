//! What the samples of a step ask of a tier, whoever owns its rows: [`Demand`].

use crate::{Id, Result, RowFrequencies, RowMap, RowMapKind, RowRange, TableId, Workload};
use std::collections::HashMap;
use std::sync::Arc;

/// What the samples of a step ask of a tier. Means, so they need not be whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// Bags of one rank, over all features of the table.
    pub(super) bags: f64,
    /// Look-ups of one rank.
    pub(super) lookups: f64,
    /// Distinct rows among the look-ups of one rank.
    pub(super) of_rank: f64,
    /// Distinct rows among those of the ranks of a group on one node.
    pub(super) of_node: f64,
    /// Distinct rows among those of a whole group: the rows that one replica touches.
    pub(super) of_group: f64,
    /// Distinct rows among those of all ranks.
    pub(super) of_world: f64,
    /// Distinct rows among those of a whole group in all steps from one sync to the next.
    pub(super) of_group_since: f64,
    /// Distinct rows among those of all ranks in all these steps.
    pub(super) of_world_since: f64,
}

/// Who asks: the ranks among which distinct rows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Askers {
    pub(super) node: u32,
    pub(super) group: u32,
    pub(super) world: u32,
    /// Steps from one sync of touched rows to the next; 1 for other syncs.
    pub(super) steps: u32,
}

/// What part of a tier one owner of rows has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) rows: u64,
    /// Of the look-ups of the tier.
    pub(super) lookups: f64,
    /// Of the distinct rows of the tier.
    pub(super) distinct: f64,
}

/// Demands and parts worked out so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Demands {
    /// Distinct rows among the look-ups of so many ranks, or as many look-ups in several steps.
    distinct: HashMap<(TableId, RowRange, u64), f64>,
    parts: HashMap<(TableId, RowRange, bool, RowMapKey), Arc<[Part]>>,
}

/// What tells row maps apart, as far as parts go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RowMapKey {
    Modulo(usize),
    Range(Arc<[u64]>),
}

impl Demands {
    /// What a step of `samples` samples a rank asks of the rows `rows` of a table.
    pub(super) fn of(
        &mut self,
        workload: &Workload,
        table: TableId,
        rows: RowRange,
        samples: f64,
        askers: Askers,
    ) -> Result<Demand> {
        let shape = workload.tables().tables().get(table)?;
        let frequencies = &workload.frequencies()[table];
        let all = samples * shape.lookups();
        let mut distinct = |ranks: u64| {
            if let Some(&known) = self.distinct.get(&(table, rows, ranks)) {
                return Ok(known);
            }
            let rows_asked = frequencies.expected_unique_in(rows, all * ranks as f64)?;
            self.distinct.insert((table, rows, ranks), rows_asked);
            Ok(rows_asked)
        };
        let (group, world) = (u64::from(askers.group), u64::from(askers.world));
        let steps = u64::from(askers.steps);
        Ok(Demand {
            bags: samples * shape.features().len() as f64,
            lookups: all * share(frequencies, rows.start(), rows.end()),
            of_rank: distinct(1)?,
            of_node: distinct(askers.node.into())?,
            of_group: distinct(group)?,
            of_world: distinct(world)?,
            of_group_since: distinct(group * steps)?,
            of_world_since: distinct(world * steps)?,
        })
    }

    /// The parts of `map`, a map of the rows `rows`. `ordered` says that the rows are in the order
    /// of their frequency and dealt out in turn; else hot rows are anywhere.
    pub(super) fn parts(
        &mut self,
        workload: &Workload,
        table: TableId,
        rows: RowRange,
        ordered: bool,
        map: &RowMap,
    ) -> Result<Arc<[Part]>> {
        let key = match map.kind() {
            RowMapKind::Modulo { owners } => RowMapKey::Modulo(owners),
            RowMapKind::Range(starts) => RowMapKey::Range(starts.into()),
            // After a permutation hot rows are anywhere.
            RowMapKind::Permuted { then, .. } => {
                return self.parts(workload, table, rows, false, then);
            }
        };
        let key = (table, rows, ordered, key);
        if let Some(known) = self.parts.get(&key) {
            return Ok(Arc::clone(known));
        }
        let frequencies = &workload.frequencies()[table];
        let first = if ordered { 0 } else { table.index() };
        let parts: Arc<[Part]> = spread(frequencies, rows, map, first)?.into();
        self.parts.insert(key, Arc::clone(&parts));
        Ok(parts)
    }
}

/// Part of the look-ups that the rows of these frequency ranks take.
fn share(frequencies: &RowFrequencies, start: u64, end: u64) -> f64 {
    (frequencies.share_of_top(end) - frequencies.share_of_top(start)).max(0.0)
}

/// Parts that have their rows from anywhere in the order of frequency: as many of the hottest rows
/// as there are parts go to one part each, from part `first` on, the others are even.
///
/// That is what a modulo map does to rows in the order of frequency, and about what any map does
/// to rows in an order that has nothing to do with it.
fn spread(
    frequencies: &RowFrequencies,
    rows: RowRange,
    map: &RowMap,
    first: usize,
) -> Result<Vec<Part>> {
    let owners = map.owners();
    let mut parts = Vec::with_capacity(owners);
    for owner in 0..owners {
        let own = map.rows_of(owner)?;
        let even = own as f64 / rows.rows() as f64;
        parts.push(Part { rows: own, lookups: even, distinct: even });
    }
    let used: Vec<usize> = (0..owners).filter(|&owner| parts[owner].rows > 0).collect();
    let all = share(frequencies, rows.start(), rows.end());
    if used.len() < 2 || all <= 0.0 {
        return Ok(parts);
    }
    // Every part that is used has a row or more.
    let hot = used.len() as u64;
    let mut taken = 0.0;
    let mut shares = Vec::with_capacity(used.len());
    for rank in 0..hot {
        let share = frequencies.probability(rows.start() + rank)? / all;
        taken += share;
        shares.push(share);
    }
    let others = (rows.rows() - hot).max(1) as f64;
    let each = (1.0 - taken).max(0.0) / others;
    for (rank, share) in shares.into_iter().enumerate() {
        let part = &mut parts[used[(first + rank) % used.len()]];
        part.lookups = share + (part.rows - 1) as f64 * each;
    }
    Ok(parts)
}
