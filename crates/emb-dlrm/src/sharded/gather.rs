//! Rows of a table in their order, whatever the plan: for checkpoints and comparisons.

use super::ShardedEmbeddings;
use super::class::Class;
use super::error::{Error, Result, refuse};
use super::layout::{Layout, locate_all};
use emb_comm::Collective;
use emb_kernels::{Backend, RowTransfer, TableSpec};
use emb_optim::Extent;
use emb_shard::{Plan, Rank, TableId};
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
        self.bring_back()?;
        let spec = &self.specs[table];
        let mut values = Vec::new();
        for class in &mut self.classes {
            for list in lists(&class.layout, &self.plan, table, &rows) {
                if list.owner != class.layout.position || list.local.is_empty() {
                    continue;
                }
                values.clear();
                for &row in &list.rows {
                    for (from, elements) in list.cells(spec, row - first) {
                        let from = from.map_or(weights, |slot| &state[slot]);
                        values.extend_from_slice(&from[elements]);
                    }
                }
                let tables = &mut class.stored.tables;
                let values = RowTransfer::Write(&values);
                backend.transfer_rows(tables, list.stored(&class.layout), &list.local, values)?;
            }
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

    /// Gathers rows of a table in this rank's groups: on every rank, or on rank 0 alone and then
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
        self.bring_back()?;
        let (me, root) = (Rank::new(self.everyone.rank() as u32), Rank::new(0));
        let spec = &self.specs[table];
        for class in &mut self.classes {
            let mesh = class.members.mesh;
            let here = !to_first || mesh.group_of(me)? == mesh.group_of(root)?;
            if !here || class.layout.tiers_of(table).next().is_none() {
                continue;
            }
            let lists = lists(&class.layout, &self.plan, table, &rows);
            let root = to_first.then_some(mesh.replica_set_of(root)?.get() as usize);
            let Some(all) = bring(class, backend, spec, &lists, root)? else { continue };
            let mut at = 0;
            // By owner, as they came.
            for owner in 0..class.layout.owned.len() {
                for list in lists.iter().filter(|list| list.owner == owner) {
                    for &row in &list.rows {
                        for (to, elements) in list.cells(spec, row - rows.start) {
                            let to = match to {
                                None => &mut *weights,
                                Some(slot) => &mut state[slot],
                            };
                            let n = elements.len();
                            to[elements].copy_from_slice(&all[at..at + n]);
                            at += n;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// What the owners in a group have of some rows, by owner and list; `None` for ranks that are not
/// the `root` that wants to know.
fn bring<B: Backend, C: Collective>(
    class: &mut Class<B, C>,
    backend: &mut B,
    spec: &TableSpec,
    lists: &[List],
    root: Option<usize>,
) -> Result<Option<Vec<f32>>> {
    let Class { layout, links, stored, .. } = class;
    let mut own = Vec::new();
    let mut counts = vec![0; layout.owned.len()];
    for list in lists {
        counts[list.owner] += list.local.len() * list.elements(spec);
        if list.owner == layout.position && !list.local.is_empty() {
            let begin = own.len();
            own.resize(begin + list.local.len() * list.elements(spec), 0.0);
            let values = RowTransfer::Read(&mut own[begin..]);
            backend.transfer_rows(&mut stored.tables, list.stored(layout), &list.local, values)?;
        }
    }
    let Some(group) = &mut links.group else { return Ok(Some(own)) };
    let Some(root) = root else {
        let mut all = vec![0.0; counts.iter().sum()];
        group.all_gather_v::<f32>(&own, &mut all, &counts)?;
        return Ok(Some(all));
    };
    let receives = group.rank() == root;
    if !receives {
        counts.fill(0);
    }
    let mut all = vec![0.0; counts.iter().sum()];
    let mut send = vec![0; counts.len()];
    send[root] = own.len();
    group.all_to_all_v::<f32>(&own, &send, &mut all, &counts)?;
    Ok(receives.then_some(all))
}

impl WholeTable {
    /// Zeros for rows of a table.
    fn new(spec: &TableSpec, rows: usize) -> Self {
        let slots = spec.optimizer.slots().iter();
        let state = slots.map(|slot| vec![0.0; rows * width(slot.extent, spec.dim)]).collect();
        Self { weights: vec![0.0; rows * spec.dim], state }
    }
}

/// Some rows of a table at one shard.
struct List {
    shard: usize,
    owner: usize,
    /// First column, and columns.
    column: usize,
    width: usize,
    /// In the table, ascending.
    rows: Vec<u64>,
    /// In the shard.
    local: Vec<u64>,
}

impl List {
    /// Place of the shard among those that its owner stores.
    fn stored(&self, layout: &Layout) -> usize {
        let stored = layout.owned[self.owner].iter().position(|&shard| shard == self.shard);
        stored.expect("invariant: the owner of a shard stores it")
    }

    /// Elements of a row here: weights, and state.
    fn elements(&self, spec: &TableSpec) -> usize {
        let slots = spec.optimizer.slots().iter().map(|slot| width(slot.extent, self.width));
        self.width + slots.sum::<usize>()
    }

    /// Where the weights (`None`) and slots of row `row` here are among those of whole rows.
    fn cells<'a>(
        &self,
        spec: &'a TableSpec,
        row: u64,
    ) -> impl Iterator<Item = (Option<usize>, Range<usize>)> + use<'a> {
        let (row, column, width, dim) = (row as usize, self.column, self.width, spec.dim);
        let weights = std::iter::once((None, Extent::Element));
        let slots = spec.optimizer.slots().iter().enumerate();
        weights.chain(slots.map(|(number, slot)| (Some(number), slot.extent))).map(
            move |(slot, extent)| match extent {
                // Every owner of columns has the state of the whole row, as equal copies.
                Extent::Row => (slot, row..row + 1),
                Extent::Element => {
                    let begin = row * dim + column;
                    (slot, begin..begin + width)
                }
            },
        )
    }
}

/// Which of `rows` of a table each shard of a layout has.
fn lists(layout: &Layout, plan: &Plan, table: usize, rows: &Range<u64>) -> Vec<List> {
    let order = plan.placed()[TableId::new(table as u32)].order.as_ref();
    let mut lists = Vec::new();
    for (_, tier) in layout.tiers_of(table) {
        let of_tier: Vec<(u64, u64)> = (rows.clone())
            .map(|row| (row, order.map_or(row, |order| order.place(row))))
            .filter(|(_, place)| tier.places.contains(place))
            .map(|(row, place)| (row, place - tier.places.start))
            .collect();
        for block in &tier.blocks {
            let base = lists.len();
            // By part; parts without rows stay empty.
            lists.extend(block.shards.iter().map(|&shard| List {
                shard,
                owner: layout.shards.get(shard).map_or(0, |shard| shard.owner),
                column: block.column,
                width: block.width,
                rows: Vec::new(),
                local: Vec::new(),
            }));
            let mut numbers = of_tier.iter().map(|&(row, _)| row);
            locate_all(&block.map, of_tier.iter().map(|&(_, row)| row), |part, local| {
                let list = &mut lists[base + part];
                list.rows.push(numbers.next().expect("invariant: one for each row"));
                list.local.push(local);
            });
        }
    }
    lists
}

fn width(extent: Extent, dim: usize) -> usize {
    match extent {
        Extent::Row => 1,
        Extent::Element => dim,
    }
}
