//! A whole table on every rank, for checkpoints and comparisons.

use super::ShardedEmbeddings;
use super::check::tier_of;
use super::error::{Error, Result, refuse};
use super::layout::Layout;
use super::sync::{Piece, read};
use emb_comm::Collective;
use emb_kernels::{Backend, TableSpec};
use emb_optim::Extent;
use emb_shard::{ExchangeClass, Tier};

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
        let gathered = self.gather(backend, table);
        gathered.map_err(|error| self.give_up(error))
    }

    /// Gives table `table` these rows: every rank takes what it stores, without communication.
    ///
    /// # Errors
    /// A table that doesn't exist, rows or slots of another shape; nothing is written then.
    pub fn load_table(&mut self, backend: &mut B, table: usize, rows: &WholeTable) -> Result<()> {
        let class = self.class_of(table)?;
        let spec = &self.specs[table];
        let (tier, slots) = (tier_of(&self.plan, table)?, spec.optimizer.slots());
        let lens = slots.iter().map(|slot| spec.rows as usize * width(slot.extent, spec.dim));
        let fits = rows.weights.len() == spec.rows as usize * spec.dim
            && rows.state.iter().map(Vec::len).eq(lens);
        if !fits {
            let what = format!("the rows given aren't {} rows of {}", spec.rows, spec.dim);
            return refuse(&spec.name, format!("{what} with {} slots", slots.len()));
        }
        let class = &mut self.classes[class];
        let Some(t) = class.layout.stored.iter().position(|stored| stored.table == table) else {
            return Ok(());
        };
        let stored = &class.layout.stored[t];
        let block = &tier.blocks[stored.block];
        let (first, dim) = (block.columns.start(), block.columns.columns());
        for local in 0..block.map.rows_of(stored.part)? {
            let row = block.map.global(stored.part, local)? as usize;
            let cells = row * spec.dim + first..row * spec.dim + first + dim;
            let state = slots.iter().zip(&rows.state).map(|(slot, values)| match slot.extent {
                Extent::Row => vec![values[row]],
                Extent::Element => values[cells.clone()].to_vec(),
            });
            let state: Vec<Vec<f32>> = state.collect();
            let weights = &rows.weights[cells.clone()];
            backend.write_rows(&mut class.tables, t, local, weights, &state)?;
        }
        Ok(())
    }

    /// The position of the class that a table is in.
    fn class_of(&self, table: usize) -> Result<usize> {
        if table >= self.specs.len() {
            let count = self.specs.len();
            return Err(Error::Mismatch(format!("table {table} doesn't exist, there are {count}")));
        }
        let mut classes = self.plan.exchange_classes().iter();
        let holds =
            |class: &ExchangeClass| class.tiers.iter().any(|(id, _)| id.get() as usize == table);
        Ok(classes.position(holds).expect("invariant: every table has an exchange"))
    }

    fn gather(&mut self, backend: &mut B, table: usize) -> Result<WholeTable> {
        let class = self.class_of(table)?;
        let (spec, tier) = (&self.specs[table], tier_of(&self.plan, table)?);
        let class = &mut self.classes[class];
        let mut mine = Vec::new();
        if let Some(t) = class.layout.stored.iter().position(|stored| stored.table == table) {
            let rows = B::specs(&class.tables)[t].rows as usize;
            let piece = Piece { table: t, first: 0, rows };
            let (weights, state) = read(backend, &mut class.tables, &piece)?;
            mine = weights;
            for slot in &state {
                mine.extend_from_slice(slot);
            }
        }
        let parts = parts(tier, spec, &class.layout)?;
        let mut all = mine;
        if let Some(group) = &mut class.group {
            let mut counts = vec![0; parts_of(&class.layout)];
            for part in &parts {
                counts[part.owner] += part.elements;
            }
            let mut received = vec![0.0; counts.iter().sum()];
            group.all_gather_v::<f32>(&all, &mut received, &counts)?;
            all = received;
        }
        place(tier, spec, parts, &all)
    }
}

/// A stored part at some position of the group.
struct StoredPart {
    owner: usize,
    block: usize,
    row_part: usize,
    rows: u64,
    elements: usize,
}

fn parts_of(layout: &Layout) -> usize {
    layout.owned.len()
}

/// The parts of a table, by owner.
fn parts(tier: &Tier, spec: &TableSpec, layout: &Layout) -> Result<Vec<StoredPart>> {
    let mut parts = Vec::new();
    for owner in 0..parts_of(layout) {
        for (number, block) in tier.blocks.iter().enumerate() {
            let Some(part) = block.owners.part_of(owner as u32) else { continue };
            let rows = block.map.rows_of(part)?;
            let dim = block.columns.columns();
            let state: usize =
                spec.optimizer.slots().iter().map(|slot| width(slot.extent, dim)).sum();
            let elements = rows as usize * (dim + state);
            parts.push(StoredPart { owner, block: number, row_part: part, rows, elements });
        }
    }
    Ok(parts)
}

fn width(extent: Extent, dim: usize) -> usize {
    match extent {
        Extent::Row => 1,
        Extent::Element => dim,
    }
}

fn place(tier: &Tier, spec: &TableSpec, parts: Vec<StoredPart>, all: &[f32]) -> Result<WholeTable> {
    let (rows, slots) = (spec.rows as usize, spec.optimizer.slots());
    let mut weights = vec![0.0; rows * spec.dim];
    let mut state: Vec<Vec<f32>> =
        slots.iter().map(|slot| vec![0.0; rows * width(slot.extent, spec.dim)]).collect();
    let mut at = 0;
    for part in parts {
        let block = &tier.blocks[part.block];
        let (first, dim) = (block.columns.start(), block.columns.columns());
        let extents = std::iter::once(Extent::Element).chain(slots.iter().map(|slot| slot.extent));
        let targets = std::iter::once(&mut weights).chain(&mut state);
        for (target, extent) in targets.zip(extents) {
            let n = width(extent, dim);
            // Every owner of columns has the state of the whole row, as equal copies.
            let (stride, column) = match extent {
                Extent::Row => (1, 0),
                Extent::Element => (spec.dim, first),
            };
            for local in 0..part.rows {
                let row = block.map.global(part.row_part, local)? as usize;
                let to = &mut target[row * stride + column..][..n];
                to.copy_from_slice(&all[at..at + n]);
                at += n;
            }
        }
    }
    Ok(WholeTable { weights, state })
}
