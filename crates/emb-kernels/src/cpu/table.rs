//! Tables in memory: weights and optimizer state in anonymous maps, initialised at first touch.

use super::arena::Arena;
use super::detect::{Instructions, Kernel, dispatch, prefetch_bytes};
use super::dtype::Element;
use crate::rng::{Key, Purpose, RoundingBits, initial_weights};
use crate::table_checks::check_tables;
use crate::{Dtype, Init, Result, TableSpec};
use emb_optim::{Extent, Slot, element_slots, row_slots};
use half::{bf16, f16};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of weights that are initialised together: about a page.
const BLOCK_BYTES: usize = 4096;

/// The tables of one group on the CPU.
#[derive(Debug)]
pub struct CpuTables {
    specs: Vec<TableSpec>,
    tables: Vec<Table>,
}

/// One table: `[rows, dim]` weights, `[rows, row slots]` and `[rows, element slots * dim]` state.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) rows: u64,
    pub(crate) dim: usize,
    pub(crate) dtype: Dtype,
    pub(crate) weights: Arena,
    pub(crate) row_state: Arena,
    pub(crate) element_state: Arena,
    pub(crate) slots: &'static [Slot],
    pub(crate) row_slots: usize,
    pub(crate) element_slots: usize,
    spec: TableSpec,
    init_key: Key,
    rounding_key: Key,
    /// Initial value of every slot.
    initial_state: Vec<f32>,
    /// One bit a block of `1 << block_shift` rows: initialised, or being so in this pass.
    touched: Arena,
    block_shift: u32,
}

impl CpuTables {
    /// Reserves the tables of a group.
    ///
    /// # Errors
    /// See [`Backend::create_tables`](crate::Backend::create_tables).
    pub(crate) fn new(specs: &[TableSpec], seed: u64) -> Result<Self> {
        check_tables(specs)?;
        let tables = specs.iter().map(|spec| Table::new(spec, seed)).collect::<Result<_>>()?;
        Ok(Self { specs: specs.to_vec(), tables })
    }

    pub(crate) fn specs(&self) -> &[TableSpec] {
        &self.specs
    }

    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }
}

impl Table {
    fn new(spec: &TableSpec, seed: u64) -> Result<Self> {
        let slots = spec.optimizer.slots();
        let (row_slots, element_slots) = (row_slots(slots), element_slots(slots));
        let (rows, dim) = (u128::from(spec.rows), spec.dim as u128);
        let row_bytes = spec.dim * spec.dtype.bytes();
        let block_shift = (BLOCK_BYTES / row_bytes).max(1).ilog2();
        let blocks = rows.div_ceil(1 << block_shift);
        let arena = |what: &str, elements, bytes| {
            Arena::new(&format!("table {:?}: {what}", spec.name), elements, bytes, spec.pages)
        };
        Ok(Self {
            name: spec.name.clone(),
            rows: spec.rows,
            dim: spec.dim,
            dtype: spec.dtype,
            weights: arena("weights", rows * dim, spec.dtype.bytes())?,
            row_state: arena("row state", rows * row_slots as u128, 4)?,
            element_state: arena("element state", rows * dim * element_slots as u128, 4)?,
            slots,
            row_slots,
            element_slots,
            spec: spec.clone(),
            init_key: Key::new(seed, &spec.name, Purpose::Init),
            rounding_key: Key::new(seed, &spec.name, Purpose::Rounding),
            initial_state: initial_state(spec),
            touched: arena("first-touch bits", blocks.div_ceil(64), 8)?,
            block_shift,
        })
    }

    /// What the table was made from.
    pub(crate) fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// Global row of a local one.
    #[inline(always)]
    pub(crate) fn global_row(&self, row: u64) -> u64 {
        self.spec.window.global_row(row)
    }

    /// The random bits that round this table's rows in one step.
    pub(crate) fn rounding_bits(&self, step: u64) -> RoundingBits {
        RoundingBits::new(self.rounding_key, step)
    }

    /// Bytes of the weights and state of a row.
    #[inline(always)]
    pub(crate) fn row_bytes(&self) -> usize {
        self.dim * (self.dtype.bytes() + self.element_slots * 4) + self.row_slots * 4
    }

    /// Asks for the weights and state of `row` to be brought near.
    #[inline(always)]
    pub(crate) fn prefetch_row(&self, row: u64) {
        let row = row as usize;
        for (arena, bytes) in [
            (&self.weights, self.dim * self.dtype.bytes()),
            (&self.row_state, self.row_slots * 4),
            (&self.element_state, self.element_slots * self.dim * 4),
        ] {
            prefetch_bytes(arena.pointer::<u8>().wrapping_add(row * bytes), bytes);
        }
    }

    /// Makes sure that `row` holds its initial value or what was written since.
    ///
    /// Threads may call this at the same time, for any rows; weights and state must not be read
    /// or written by others until all calls have returned (and their threads were joined).
    #[inline(always)]
    pub(crate) fn touch(&self, row: u64) {
        let block = row >> self.block_shift;
        if self.touched_bits()[(block / 64) as usize].load(Ordering::Relaxed) >> (block % 64) & 1
            == 0
        {
            self.initialise(block);
        }
    }

    /// Whether the block of `row` was touched.
    pub(crate) fn is_touched(&self, row: u64) -> bool {
        let block = row >> self.block_shift;
        self.touched_bits()[(block / 64) as usize].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    /// First row after the block of `row`.
    pub(crate) fn block_end(&self, row: u64) -> u64 {
        (((row >> self.block_shift) + 1) << self.block_shift).min(self.rows)
    }

    /// Initial weights of local `row`, as stored and loaded again.
    pub(crate) fn initial_row(&self, row: u64, out: &mut [f32]) {
        initial_weights(
            self.init_key,
            self.spec.init,
            self.global_row(row),
            self.spec.window.first_column,
            out,
        );
        match self.dtype {
            Dtype::F32 => {}
            Dtype::F16 => out.iter_mut().for_each(|w| *w = f16::nearest(*w).load()),
            Dtype::Bf16 => out.iter_mut().for_each(|w| *w = bf16::nearest(*w).load()),
        }
    }

    /// Initial value of slot `slot`.
    pub(crate) fn initial_slot(&self, slot: usize) -> f32 {
        self.initial_state[slot]
    }

    fn touched_bits(&self) -> &[AtomicU64] {
        let len = self.touched.len::<u64>();
        // SAFETY: `AtomicU64` has the layout of `u64`; the map is only ever used through atomics.
        unsafe { std::slice::from_raw_parts(self.touched.pointer::<u64>().cast(), len) }
    }

    #[cold]
    #[inline(never)]
    fn initialise(&self, block: u64) {
        let bit = 1 << (block % 64);
        let before = self.touched_bits()[(block / 64) as usize].fetch_or(bit, Ordering::Relaxed);
        if before & bit != 0 {
            // Another thread claimed the block; it is complete once that thread is joined.
            return;
        }
        let first = block << self.block_shift;
        let end = self.block_end(first);
        match self.dtype {
            Dtype::F32 => self.fill::<f32>(first, end),
            Dtype::F16 => self.fill::<f16>(first, end),
            Dtype::Bf16 => self.fill::<bf16>(first, end),
        }
    }

    fn fill<E: Element>(&self, first: u64, end: u64) {
        if self.spec.init != Init::Constant(0.0) {
            for row in first..end {
                // SAFETY: the row lies in a block that only this thread has claimed.
                let stored =
                    unsafe { self.weights.part_mut::<E>(row as usize * self.dim, self.dim) };
                dispatch(Instructions::detect(), InitKernel { table: self, row, stored });
            }
        }
        if self.initial_state.iter().all(|value| value.to_bits() == 0) {
            return;
        }
        for row in first..end {
            self.fill_state(row as usize);
        }
    }

    fn fill_state(&self, row: usize) {
        // SAFETY: the row lies in a block that only this thread has claimed.
        let rows = unsafe { self.row_state.part_mut(row * self.row_slots, self.row_slots) };
        let width = self.element_slots * self.dim;
        // SAFETY: as above.
        let elements = unsafe { self.element_state.part_mut(row * width, width) };
        let (mut r, mut e) = (0, 0);
        for (slot, &value) in self.slots.iter().zip(&self.initial_state) {
            match slot.extent {
                Extent::Row => {
                    rows[r] = value;
                    r += 1;
                }
                Extent::Element => {
                    elements[e * self.dim..(e + 1) * self.dim].fill(value);
                    e += 1;
                }
            }
        }
    }
}

/// Generates one row.
struct InitKernel<'a, 'b, E> {
    table: &'a Table,
    row: u64,
    stored: &'b mut [E],
}

impl<E: Element> Kernel for InitKernel<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        /// Columns generated at a time.
        const COLUMNS: usize = 256;
        let Self { table, row, stored } = self;
        let (spec, row) = (&table.spec, table.global_row(row));
        let mut values = [0.0; COLUMNS];
        for (part, stored) in stored.chunks_mut(COLUMNS).enumerate() {
            let values = &mut values[..stored.len()];
            let first_column = spec.window.first_column + part * COLUMNS;
            initial_weights(table.init_key, spec.init, row, first_column, values);
            for (to, &from) in stored.iter_mut().zip(&*values) {
                *to = E::nearest(from);
            }
        }
    }
}

fn initial_state(spec: &TableSpec) -> Vec<f32> {
    let slots = spec.optimizer.slots().iter();
    slots.map(|&slot| spec.optimizer.initial_state(slot)).collect()
}
