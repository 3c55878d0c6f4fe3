//! Rows of a table in their order, whatever the plan: for checkpoints and comparisons.

use super::ShardedEmbeddings;
use super::check::tier_of;
use super::error::{Error, Result, refuse};
use super::layout::Layout;
use super::sync::{Piece, read};
use emb_comm::Collective;
use emb_kernels::{Backend, TableSpec};
use emb_optim::Extent;
use emb_shard::{ExchangeClass, Rank, RowMap, Tier};
use std::ops::Range;

/// All rows of a table in their order, whatever the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeTable {
    /// `[rows, dim]`.
    pub weights: Vec<f32>,
    /// Each slot in the order of the rule's slots: `[rows]` or `[rows, dim]`.
    pub state: Vec<Vec<f32>>,
}

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Gathers table `table` from the group that this rank works in; every rank calls it. Call
    /// [`sync`](Self::sync) first where replicas have to agree.
    ///
    /// # Errors
    /// A table that doesn't exist; a peer that fails.
    pub fn gather_table(&mut self, backend: &mut B, table: usize) -> Result<WholeTable> {
        let spec = self.spec(table)?;
        let rows = 0..spec.rows;
        let mut whole = WholeTable::new(spec, spec.rows as usize);
        let (weights, state) = (&mut whole.weights[..], &mut whole.state[..]);
        let gathered = self.gather(backend, table, rows, false, weights, state);
        gathered.map_err(|error| self.give_up(error))?;
        Ok(whole)
    }

    /// Brings rows `first..` of table `table` to rank 0: `weights` is `[rows, dim]`, each slot of
    /// `state` `[rows]` or `[rows, dim]`. Every rank calls it with the same rows; what the others
    /// find in their buffers is unspecified.
    ///
    /// # Errors
    /// A table or rows that don't exist; a peer that fails.
    pub fn read_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()> {
        let read = self
            .range_of(table, first, weights, state)
            .and_then(|rows| self.gather(backend, table, rows, true, weights, state));
        read.map_err(|error| self.give_up(error))
    }

    /// Gives rows `first..` of table `table` these values: every rank takes what it stores, without
    /// communication. Shapes as in [`read_rows`](Self::read_rows).
    ///
    /// # Errors
    /// A table or rows that don't exist, values of another shape; nothing is written then.
    pub fn write_rows(
        &mut self,
        backend: &mut B,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()> {
        let rows = self.range_of(table, first, weights, state)?;
        let number = self.class_of(table)?;
        let tier = tier_of(&self.plan, table)?;
        let (dim, slots) = (self.specs[table].dim, self.specs[table].optimizer.slots());
        let class = &mut self.classes[number];
        let Some(t) = class.layout.stored.iter().position(|stored| stored.table == table) else {
            return Ok(());
        };
        let stored = &class.layout.stored[t];
        let block = &tier.blocks[stored.block];
        let (column, width) = (block.columns.start(), block.columns.columns());
        let mut own: Vec<Vec<f32>> = vec![Vec::new(); slots.len()];
        for local in local_rows(&block.map, stored.part, &rows)? {
            let row = (block.map.global(stored.part, local)? - first) as usize;
            let cells = row * dim + column..row * dim + column + width;
            for ((own, slot), values) in own.iter_mut().zip(slots).zip(state) {
                own.clear();
                match slot.extent {
                    Extent::Row => own.push(values[row]),
                    Extent::Element => own.extend_from_slice(&values[cells.clone()]),
                }
            }
            backend.write_rows(&mut class.tables, t, local, &weights[cells], &own)?;
        }
        Ok(())
    }

    /// Gives table `table` these rows: every rank takes what it stores, without communication.
    ///
    /// # Errors
    /// A table that doesn't exist, rows or slots of another shape; nothing is written then.
    pub fn load_table(&mut self, backend: &mut B, table: usize, rows: &WholeTable) -> Result<()> {
        let spec = self.spec(table)?;
        if rows.weights.len() != spec.rows as usize * spec.dim {
            let (name, slots) = (&spec.name, spec.optimizer.slots().len());
            let what = format!("the rows given aren't {} rows of {}", spec.rows, spec.dim);
            return refuse(name, format!("{what} with {slots} slots"));
        }
        self.write_rows(backend, table, 0, &rows.weights, &rows.state)
    }

    fn spec(&self, table: usize) -> Result<&TableSpec> {
        let count = self.specs.len();
        let missing = || Error::Mismatch(format!("table {table} doesn't exist, there are {count}"));
        self.specs.get(table).ok_or_else(missing)
    }

    /// The rows that buffers of these lengths hold, from `first`.
    fn range_of(
        &self,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<Range<u64>> {
        let spec = self.spec(table)?;
        let rows = weights.len() / spec.dim;
        let slots = spec.optimizer.slots();
        let lens = slots.iter().map(|slot| rows * width(slot.extent, spec.dim));
        let fits = rows * spec.dim == weights.len() && state.iter().map(Vec::len).eq(lens);
        let end = first.saturating_add(rows as u64);
        if !fits || end > spec.rows {
            return refuse(
                &spec.name,
                format!(
                    "the rows given from row {first} aren't rows of {} with {} slots, or go beyond {} rows",
                    spec.dim,
                    slots.len(),
                    spec.rows
                ),
            );
        }
        Ok(first..end)
    }

    /// The position of the class that a table is in.
    fn class_of(&self, table: usize) -> Result<usize> {
        self.spec(table)?;
        let mut classes = self.plan.exchange_classes().iter();
        let holds =
            |class: &ExchangeClass| class.tiers.iter().any(|(id, _)| id.get() as usize == table);
        Ok(classes.position(holds).expect("invariant: every table has an exchange"))
    }

    /// Gathers rows of a table in this rank's group: on every rank, or on rank 0 alone and then
    /// without the groups that it is not in.
    fn gather(
        &mut self,
        backend: &mut B,
        table: usize,
        rows: Range<u64>,
        to_first: bool,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()> {
        let number = self.class_of(table)?;
        let mesh = self.plan.exchange_classes()[number].mesh;
        let (me, root) = (Rank::new(self.everyone.rank() as u32), Rank::new(0));
        if to_first && mesh.group_of(me)? != mesh.group_of(root)? {
            return Ok(());
        }
        let (spec, tier) = (&self.specs[table], tier_of(&self.plan, table)?);
        let class = &mut self.classes[number];
        let parts = parts(tier, spec, &class.layout, &rows)?;
        let mut all = Vec::new();
        if let Some(t) = class.layout.stored.iter().position(|stored| stored.table == table) {
            let stored = &class.layout.stored[t];
            let local = local_rows(&tier.blocks[stored.block].map, stored.part, &rows)?;
            if !local.is_empty() {
                let count = (local.end - local.start) as usize;
                let piece = Piece { table: t, first: local.start as usize, rows: count };
                let (weights, state) = read(backend, &mut class.tables, &piece)?;
                all = weights;
                for slot in &state {
                    all.extend_from_slice(slot);
                }
            }
        }
        if let Some(group) = &mut class.group {
            let mut counts = vec![0; class.layout.owned.len()];
            for part in &parts {
                counts[part.owner] += part.elements;
            }
            let root = mesh.replica_set_of(root)?.get() as usize;
            let receives = !to_first || group.rank() == root;
            if !receives {
                counts.fill(0);
            }
            let mut received = vec![0.0; counts.iter().sum()];
            if to_first {
                let mut send = vec![0; counts.len()];
                send[root] = all.len();
                group.all_to_all_v::<f32>(&all, &send, &mut received, &counts)?;
            } else {
                group.all_gather_v::<f32>(&all, &mut received, &counts)?;
            }
            if !receives {
                return Ok(());
            }
            all = received;
        }
        place(tier, spec, parts, rows.start, &all, weights, state)
    }
}

impl WholeTable {
    /// Zeros for rows of a table.
    fn new(spec: &TableSpec, rows: usize) -> Self {
        let slots = spec.optimizer.slots().iter();
        let state = slots.map(|slot| vec![0.0; rows * width(slot.extent, spec.dim)]).collect();
        Self { weights: vec![0.0; rows * spec.dim], state }
    }
}

/// A stored part at some position of the group.
struct StoredPart {
    owner: usize,
    block: usize,
    row_part: usize,
    local: Range<u64>,
    elements: usize,
}

/// The parts of a table that have some of `rows`, by owner.
fn parts(
    tier: &Tier,
    spec: &TableSpec,
    layout: &Layout,
    rows: &Range<u64>,
) -> Result<Vec<StoredPart>> {
    let mut parts = Vec::new();
    for owner in 0..layout.owned.len() {
        for (number, block) in tier.blocks.iter().enumerate() {
            let Some(part) = block.owners.part_of(owner as u32) else { continue };
            let local = local_rows(&block.map, part, rows)?;
            let dim = block.columns.columns();
            let state: usize =
                spec.optimizer.slots().iter().map(|slot| width(slot.extent, dim)).sum();
            let elements = (local.end - local.start) as usize * (dim + state);
            parts.push(StoredPart { owner, block: number, row_part: part, local, elements });
        }
    }
    Ok(parts)
}

/// The local rows of a part that are among `rows`: neighbours, since local rows are in order.
fn local_rows(map: &RowMap, part: usize, rows: &Range<u64>) -> Result<Range<u64>> {
    let count = map.rows_of(part)?;
    // Local rows ascend with global ones, so the first at or above a row is found by bisection.
    let at_or_above = |row: u64| -> Result<u64> {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if map.global(part, middle)? < row { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    };
    Ok(at_or_above(rows.start)?..at_or_above(rows.end)?)
}

fn width(extent: Extent, dim: usize) -> usize {
    match extent {
        Extent::Row => 1,
        Extent::Element => dim,
    }
}

/// Puts gathered parts in their places, row `first` at the beginning.
fn place(
    tier: &Tier,
    spec: &TableSpec,
    parts: Vec<StoredPart>,
    first: u64,
    all: &[f32],
    weights: &mut [f32],
    state: &mut [Vec<f32>],
) -> Result<()> {
    let slots = spec.optimizer.slots();
    let mut at = 0;
    for part in parts {
        let block = &tier.blocks[part.block];
        let (begin, dim) = (block.columns.start(), block.columns.columns());
        let extents = std::iter::once(Extent::Element).chain(slots.iter().map(|slot| slot.extent));
        let targets = std::iter::once(&mut *weights).chain(state.iter_mut().map(Vec::as_mut_slice));
        for (target, extent) in targets.zip(extents) {
            let n = width(extent, dim);
            // Every owner of columns has the state of the whole row, as equal copies.
            let (stride, column) = match extent {
                Extent::Row => (1, 0),
                Extent::Element => (spec.dim, begin),
            };
            for local in part.local.clone() {
                let row = (block.map.global(part.row_part, local)? - first) as usize;
                let to = &mut target[row * stride + column..][..n];
                to.copy_from_slice(&all[at..at + n]);
                at += n;
            }
        }
    }
    Ok(())
}
