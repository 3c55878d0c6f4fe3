//! Replicas made equal: the mean of weights and of every optimizer slot.

use super::error::Result;
use super::touched::{TouchedRows, runs, union};
use super::{Class, ShardedEmbeddings};
use emb_comm::Collective;
use emb_kernels::{Backend, TableSpec};
use emb_optim::{Extent, ReplicaSync as Merge, fold_history};
use emb_shard::ReplicaSync;

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Makes the replicas of every table equal, if they were updated since they last were: before
    /// an evaluation, a checkpoint, the end of a run. Every rank calls it.
    ///
    /// Weights and optimizer state become `w0 + sum(w_m - w0) / M`, in replica order, so that equal
    /// replicas stay bitwise as they are, and all are bitwise equal afterwards. With replica rule
    /// `history` the squares that each replica kept for itself are added up instead.
    ///
    /// # Errors
    /// A peer that fails, a device that fails.
    pub fn sync(&mut self, backend: &mut B) -> Result<()> {
        if self.unsynced == 0 {
            return Ok(());
        }
        let done = self.classes.iter_mut().try_for_each(|class| class.sync(backend, |_| true));
        done.map_err(|error| self.give_up(error))?;
        self.unsynced = 0;
        Ok(())
    }

    /// Steps since all replicas were last made equal.
    pub fn unsynced_steps(&self) -> u64 {
        self.unsynced
    }

    /// The syncs that are due after step `step`.
    pub(super) fn after_step(&mut self, backend: &mut B, step: u64) -> Result<()> {
        let due = |every: u64| step.is_multiple_of(every);
        let mut all = true;
        for class in &mut self.classes {
            if class.replicas.is_some() {
                class.sync(backend, due)?;
                all &= class.periods.iter().all(|&every| due(every));
            }
        }
        self.unsynced = if all { 0 } else { self.unsynced + 1 };
        Ok(())
    }
}

impl<B: Backend, C: Collective> Class<B, C> {
    /// Averages the tables whose period is `due`: two collectives for every [`ROUND`] elements,
    /// however many tables, and two more where only touched rows travel.
    fn sync(&mut self, backend: &mut B, due: impl Fn(u64) -> bool) -> Result<()> {
        if !self.periods.iter().any(|&every| due(every)) {
            return Ok(());
        }
        let Some(replicas) = &mut self.replicas else { return Ok(()) };
        let pieces = pieces(replicas, &self.syncs, &mut self.touched_since, &self.sizes, due)?;
        // Replicas store the same parts, hence take the same rounds.
        for round in rounds(&pieces) {
            let mut mine = Vec::new();
            for piece in &round {
                let (weights, state) = read(backend, &mut self.tables, piece)?;
                mine.extend_from_slice(&weights);
                for slot in &state {
                    mine.extend_from_slice(slot);
                }
            }
            let mut mean = mean(replicas, &mine)?;
            let mut at = 0;
            for piece in &round {
                let spec = &B::specs(&self.tables)[piece.table];
                fold(spec, piece.rows, replicas.world(), &mut mean[at..])?;
                let (old, new) = (&mine[at..], &mean[at..]);
                at += write_changed(backend, &mut self.tables, piece, old, new)?;
            }
        }
        Ok(())
    }
}

/// Elements of weights and state that are averaged at once: what a sync needs of memory, several
/// times.
const ROUND: usize = 1 << 20;

/// Rows `first..first + rows` of a stored part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) table: usize,
    pub(super) first: usize,
    pub(super) rows: usize,
}

/// What is to be averaged, each with the elements of a row. `sizes` are the rows of stored parts and
/// the elements of a row; two collectives where only touched rows of some travel.
fn pieces<C: Collective>(
    replicas: &mut C,
    syncs: &[ReplicaSync],
    touched: &mut [Option<TouchedRows>],
    sizes: &[(usize, usize)],
    due: impl Fn(u64) -> bool,
) -> Result<Vec<(Piece, usize)>> {
    let mut pieces = Vec::new();
    let (mut some, mut lists) = (Vec::new(), Vec::new());
    for (table, (sync, &(rows, elements))) in syncs.iter().zip(sizes).enumerate() {
        match (sync, &mut touched[table]) {
            (ReplicaSync::Weights { every }, _) if due(every.get().into()) => {
                pieces.push((Piece { table, first: 0, rows }, elements));
            }
            (ReplicaSync::TouchedRows { every }, Some(touched)) if due(every.get().into()) => {
                some.push(table);
                lists.push(touched.take());
            }
            _ => {}
        }
    }
    if !some.is_empty() {
        for (table, list) in some.into_iter().zip(union(replicas, &lists)?) {
            let runs = runs(&list);
            let piece = |(first, rows)| (Piece { table, first, rows }, sizes[table].1);
            pieces.extend(runs.map(piece));
        }
    }
    Ok(pieces)
}

/// Cuts pieces, given with the elements of a row, into rounds of about [`ROUND`] elements, at least
/// a row each.
fn rounds(pieces: &[(Piece, usize)]) -> Vec<Vec<Piece>> {
    let (mut rounds, mut round, mut room) = (Vec::new(), Vec::new(), ROUND);
    for (piece, elements) in pieces {
        let end = piece.first + piece.rows;
        let mut first = piece.first;
        while first < end {
            if room < *elements && !round.is_empty() {
                rounds.push(std::mem::take(&mut round));
                room = ROUND;
            }
            let rows = (room / elements).clamp(1, end - first);
            round.push(Piece { table: piece.table, first, rows });
            first += rows;
            room = room.saturating_sub(rows * elements);
        }
    }
    if !round.is_empty() {
        rounds.push(round);
    }
    rounds
}

/// Rows of a table: weights, and each slot.
pub(super) fn read<B: Backend>(
    backend: &mut B,
    tables: &mut B::Tables,
    piece: &Piece,
) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
    let spec = &B::specs(tables)[piece.table];
    let mut weights = vec![0.0; piece.rows * spec.dim];
    let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
    backend.read_rows(tables, piece.table, piece.first as u64, &mut weights, &mut state)?;
    Ok((weights, state))
}

/// Elements of a row of the weights and of each slot.
pub(super) fn widths(spec: &TableSpec) -> Vec<usize> {
    let slots = spec.optimizer.slots().iter().map(|slot| match slot.extent {
        Extent::Row => 1,
        Extent::Element => spec.dim,
    });
    std::iter::once(spec.dim).chain(slots).collect()
}

/// The mean over the replicas, the same bits on each: every replica takes the mean of its share.
fn mean<C: Collective>(replicas: &mut C, mine: &[f32]) -> Result<Vec<f32>> {
    let (world, rank) = (replicas.world(), replicas.rank());
    let start = |m: usize| mine.len() / world * m + m.min(mine.len() % world);
    let shares: Vec<usize> = (0..world).map(|m| start(m + 1) - start(m)).collect();
    let share = shares[rank];
    let mut all = vec![0.0; share * world];
    replicas.all_to_all_v::<f32>(mine, &shares, &mut all, &vec![share; world])?;
    let mean: Vec<f32> = (0..share)
        .map(|k| {
            let first = f64::from(all[k]);
            let apart = (0..world).map(|m| f64::from(all[m * share + k]) - first);
            (first + apart.sum::<f64>() / world as f64) as f32
        })
        .collect();
    let mut whole = vec![0.0; mine.len()];
    replicas.all_gather_v::<f32>(&mean, &mut whole, &shares)?;
    Ok(whole)
}

/// Where squares of each replica have a slot of their own, their sum goes to the common one:
/// `values` are the weights and slots of `rows` rows, averaged over `replicas`.
fn fold(spec: &TableSpec, rows: usize, replicas: usize, values: &mut [f32]) -> Result<()> {
    if spec.optimizer.replica_sync() != Merge::MeanWithHistory {
        return Ok(());
    }
    let slots = spec.optimizer.slots();
    let place = |name: &str| {
        let slot = slots.iter().position(|slot| slot.name == name);
        let slot = slot.expect("invariant: the rule with history has both slots");
        let widths = widths(spec);
        let start: usize = widths[..=slot].iter().sum();
        start * rows..(start + widths[slot + 1]) * rows
    };
    let (sum, local) = (place("sum"), place("sum_local"));
    let (before, after) = values.split_at_mut(local.start);
    let local = &mut after[..local.len()];
    let total: Vec<f32> = local.iter().map(|mean| mean * replicas as f32).collect();
    Ok(fold_history(&mut before[sum], local, &total)?)
}

/// Writes the rows that differ, so that memory of rows that nobody touched stays untouched.
/// Returns the elements of the piece.
fn write_changed<B: Backend>(
    backend: &mut B,
    tables: &mut B::Tables,
    piece: &Piece,
    old: &[f32],
    new: &[f32],
) -> Result<usize> {
    let (rows, widths) = (piece.rows, widths(&B::specs(tables)[piece.table]));
    let mut starts = vec![0];
    for (p, width) in widths.iter().enumerate() {
        starts.push(starts[p] + rows * width);
    }
    let row = |p: usize, r: usize| starts[p] + r * widths[p]..starts[p] + (r + 1) * widths[p];
    for r in 0..rows {
        let same = (0..widths.len()).all(|p| {
            let (old, new) = (&old[row(p, r)], &new[row(p, r)]);
            old.iter().zip(new).all(|(old, new)| old.to_bits() == new.to_bits())
        });
        if !same {
            let state: Vec<Vec<f32>> = (1..widths.len()).map(|p| new[row(p, r)].to_vec()).collect();
            let at = (piece.first + r) as u64;
            backend.write_rows(tables, piece.table, at, &new[row(0, r)], &state)?;
        }
    }
    Ok(starts[widths.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_cover_every_row_once_in_order_and_are_bounded() {
        for tables in [
            vec![],
            vec![(0, 1, 1)],
            vec![(0, 3, ROUND)],
            vec![(0, 2, 3 * ROUND), (1, 7, 1)],
            vec![(0, 100_000, 65), (2, 1, 3), (3, ROUND, 2)],
        ] {
            let whole = |&(table, rows, elements): &(usize, usize, usize)| {
                (Piece { table, first: 0, rows }, elements)
            };
            let pieces: Vec<_> = tables.iter().map(whole).collect();
            let rounds = rounds(&pieces);
            for round in &rounds {
                let elements = |piece: &Piece| {
                    let found = tables.iter().find(|(t, ..)| *t == piece.table);
                    piece.rows * found.map_or(0, |&(.., elements)| elements)
                };
                let total: usize = round.iter().map(elements).sum();
                assert!(total <= ROUND || (round.len() == 1 && round[0].rows == 1), "{round:?}");
            }
            let mut pieces = rounds.into_iter().flatten();
            for &(table, rows, _) in &tables {
                let mut next = 0;
                while next < rows {
                    let piece = pieces.next().expect("rows are left");
                    assert_eq!((piece.table, piece.first), (table, next));
                    next += piece.rows;
                }
            }
            assert_eq!(pieces.next(), None);
        }
    }
}
