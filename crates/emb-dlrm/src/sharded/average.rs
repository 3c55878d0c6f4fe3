//! The mean of rows over their replicas: [`Averaging`].

use super::error::Result;
use super::mean::Mean;
use super::rounds::{Cursor, Selection, Span};
use super::touched::{TouchedRows, UnionMemory};
use super::wire::{Format, Narrow};
use emb_comm::Collective;
use emb_kernels::{Backend, RowTransfer, TableSpec};
use emb_optim::{Extent, ReplicaSync as Merge, fold_history};
use emb_shard::ReplicaSync;
use std::ops::Range;

/// Memory of a sync of weights.
#[derive(Debug, Default)]
pub(super) struct Averaging {
    union: UnionMemory,
    /// Tables whose touched rows are averaged.
    some: Vec<usize>,
    /// The rows of selections that are lists.
    listed: Vec<u64>,
    selections: Vec<Selection>,
    round: Vec<Span>,
    /// Numbers of the rows at hand.
    rows: Vec<u64>,
    /// Rows of this replica, each its weights and then its state.
    mine: Vec<f32>,
    /// The same, averaged.
    whole: Vec<f32>,
    mean: Mean,
    /// How weights travel.
    narrow: Narrow,
    /// Weights and state of the rows at hand, and their means.
    weights: [Vec<f32>; 2],
    state: [Vec<f32>; 2],
    /// Squares of all replicas, of one row.
    total: Vec<f32>,
}

impl Averaging {
    /// Selects what is due: all rows or, with two collectives, those that any replica touched.
    /// `sizes` are the rows of stored parts and the elements of a row.
    pub(super) fn select<C: Collective>(
        &mut self,
        replicas: &mut C,
        syncs: &[ReplicaSync],
        touched: &mut [Option<TouchedRows>],
        sizes: &[(usize, usize)],
        due: impl Fn(u64) -> bool,
    ) -> Result<()> {
        self.selections.clear();
        self.some.clear();
        self.listed.clear();
        for (table, (sync, &(rows, elements))) in syncs.iter().zip(sizes).enumerate() {
            match sync {
                ReplicaSync::Weights { every } if due(every.get().into()) => {
                    self.selections.push(Selection { table, rows, elements, listed: None });
                }
                ReplicaSync::TouchedRows { every } if due(every.get().into()) => {
                    self.some.push(table);
                }
                _ => {}
            }
        }
        if self.some.is_empty() {
            return Ok(());
        }
        self.union.unite(replicas, touched, &self.some)?;
        for &table in &self.some {
            let begin = self.listed.len();
            if let Some(touched) = &mut touched[table] {
                touched.take(&mut self.listed);
            }
            let (rows, elements) = (self.listed.len() - begin, sizes[table].1);
            self.selections.push(Selection { table, rows, elements, listed: Some(begin) });
        }
        Ok(())
    }

    /// Averages what was selected: one collective a round between two replicas, else two.
    pub(super) fn run<B: Backend, C: Collective>(
        &mut self,
        replicas: &mut C,
        backend: &mut B,
        tables: &mut B::Tables,
    ) -> Result<()> {
        // Replicas store the same parts, hence take the same rounds.
        let mut cursor = Cursor::default();
        while cursor.next_round(&self.selections, &mut self.round) {
            self.read(backend, tables)?;
            if self.narrow.is_exact() {
                self.mean.over(replicas, &self.mine, &mut self.whole)?;
            } else {
                self.split::<B>(tables);
                self.mean.over_narrow(replicas, &mut self.narrow, &mut self.weights)?;
                let [mine, whole] = &mut self.state;
                self.mean.over(replicas, mine, whole)?;
                self.join::<B>(tables);
            }
            self.write(backend, tables, replicas.world())?;
        }
        Ok(())
    }

    /// How weights travel from now on.
    pub(super) fn set(&mut self, format: Format) {
        self.narrow.set(format);
    }

    /// Puts weights and state of the rows at hand apart.
    fn split<B: Backend>(&mut self, tables: &B::Tables) {
        let Self { selections, round, mine, weights: [weights, _], state: [state, _], .. } = self;
        weights.clear();
        state.clear();
        let mut rest = &mine[..];
        for span in &*round {
            let Selection { table, elements, .. } = selections[span.selection];
            let (rows, after) = rest.split_at(span.rows * elements);
            rest = after;
            let dim = B::specs(tables)[table].dim;
            for row in rows.chunks_exact(elements) {
                weights.extend_from_slice(&row[..dim]);
                state.extend_from_slice(&row[dim..]);
            }
        }
    }

    /// Puts the means of weights and state together.
    fn join<B: Backend>(&mut self, tables: &B::Tables) {
        let Self { selections, round, mine, whole, .. } = self;
        let (mut weights, mut state) = (&self.weights[1][..], &self.state[1][..]);
        whole.resize(mine.len(), 0.0);
        let mut rest = &mut whole[..];
        for span in &*round {
            let Selection { table, elements, .. } = selections[span.selection];
            let (rows, after) = std::mem::take(&mut rest).split_at_mut(span.rows * elements);
            rest = after;
            let dim = B::specs(tables)[table].dim;
            for row in rows.chunks_exact_mut(elements) {
                let (own, more) = weights.split_at(dim);
                row[..dim].copy_from_slice(own);
                let (slots, others) = state.split_at(elements - dim);
                row[dim..].copy_from_slice(slots);
                (weights, state) = (more, others);
            }
        }
    }

    fn read<B: Backend>(&mut self, backend: &mut B, tables: &mut B::Tables) -> Result<()> {
        let Self { selections, listed, round, rows, mine, .. } = self;
        let elements = |span: &Span| span.rows * selections[span.selection].elements;
        mine.resize(round.iter().map(elements).sum(), 0.0);
        let mut at = 0;
        for span in &*round {
            let selection = selections[span.selection];
            let values = &mut mine[at..at + elements(span)];
            at += values.len();
            let rows = numbers(selection, *span, listed, rows);
            backend.transfer_rows(tables, selection.table, rows, RowTransfer::Read(values))?;
        }
        Ok(())
    }

    /// Writes the rows. Of all rows those that differ, so that memory of rows that nobody touched
    /// stays untouched; others are touched.
    fn write<B: Backend>(
        &mut self,
        backend: &mut B,
        tables: &mut B::Tables,
        replicas: usize,
    ) -> Result<()> {
        let mut at = 0;
        for &span in &self.round {
            let selection = self.selections[span.selection];
            let len = span.rows * selection.elements;
            let (old, new) = (&self.mine[at..at + len], &mut self.whole[at..at + len]);
            at += len;
            let spec = &B::specs(tables)[selection.table];
            fold(spec, selection.elements, replicas, new, &mut self.total)?;
            let mut rows = numbers(selection, span, &self.listed, &mut self.rows);
            let mut kept = new.len();
            if selection.listed.is_none() {
                kept =
                    selection.elements * keep_changed(old, new, selection.elements, &mut self.rows);
                rows = &self.rows;
            }
            if !rows.is_empty() {
                let values = RowTransfer::Write(&new[..kept]);
                backend.transfer_rows(tables, selection.table, rows, values)?;
            }
        }
        Ok(())
    }
}

/// The numbers of the rows of a span, from the list or, of all rows, in `rows`.
fn numbers<'a>(
    selection: Selection,
    span: Span,
    listed: &'a [u64],
    rows: &'a mut Vec<u64>,
) -> &'a [u64] {
    let end = span.first + span.rows;
    if let Some(begin) = selection.listed {
        return &listed[begin + span.first..begin + end];
    }
    rows.clear();
    rows.extend(span.first as u64..end as u64);
    rows
}

/// Moves the rows of `new` that differ from `old` to its beginning, and leaves their numbers in
/// `rows`; returns how many there are.
fn keep_changed(old: &[f32], new: &mut [f32], elements: usize, rows: &mut Vec<u64>) -> usize {
    let mut kept = 0;
    for r in 0..rows.len() {
        let row = r * elements..(r + 1) * elements;
        let pairs = old[row.clone()].iter().zip(&new[row.clone()]);
        // Without an early end, which would keep it from being vectorised.
        let differ = pairs.fold(0, |bits, (old, new)| bits | (old.to_bits() ^ new.to_bits()));
        if differ != 0 {
            if kept != r {
                new.copy_within(row, kept * elements);
                rows[kept] = rows[r];
            }
            kept += 1;
        }
    }
    rows.truncate(kept);
    kept
}

/// Where squares of each replica have a slot of their own, their sum goes to the common one:
/// `values` are rows averaged over `replicas`.
fn fold(
    spec: &TableSpec,
    elements: usize,
    replicas: usize,
    values: &mut [f32],
    total: &mut Vec<f32>,
) -> Result<()> {
    if spec.optimizer.replica_sync() != Merge::MeanWithHistory {
        return Ok(());
    }
    let (sum, local) = (slot(spec, "sum"), slot(spec, "sum_local"));
    for row in values.chunks_exact_mut(elements) {
        let (before, after) = row.split_at_mut(local.start);
        let local = &mut after[..local.len()];
        total.clear();
        total.extend(local.iter().map(|mean| mean * replicas as f32));
        fold_history(&mut before[sum.clone()], local, total)?;
    }
    Ok(())
}

/// Where a slot lies among the elements of a row.
fn slot(spec: &TableSpec, name: &str) -> Range<usize> {
    let mut end = spec.dim;
    let slots = spec.optimizer.slots().iter().map(|slot| {
        let begin = end;
        end += match slot.extent {
            Extent::Row => 1,
            Extent::Element => spec.dim,
        };
        (slot.name, begin..end)
    });
    let found = slots.into_iter().find(|(of, _)| *of == name);
    found.expect("invariant: the rule with history has both slots").1
}
