//! Initial weights and state of a table.

use super::descriptors::TableDescriptor;
use super::table::{Table, is_random};
use crate::rng::{Key, last_below};
use crate::{Init, Result, TableSpec};
use emb_cuda::{Buffer, Shape, Stream, View};
use emb_optim::Extent;

/// Rows whose global numbers are listed at a time: 8 MiB.
const LISTED: usize = 1 << 20;

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks for each multiprocessor.
const WAVES: u32 = 32;

/// Fills table `number` of the group.
pub(super) fn fill(
    stream: &Stream,
    descriptors: View<'_, TableDescriptor>,
    number: usize,
    spec: &TableSpec,
    table: &mut Table,
    key: Key,
) -> Result<()> {
    let weights = Weights { stream, descriptors, number: number as u32, spec, key };
    if let Some(all) = &mut table.row_numbers {
        list_all(stream, spec, all)?;
    }
    match (&spec.window.rows, &table.row_numbers) {
        _ if spec.init == Init::Constant(0.0) => stream.clear(table.weights.whole_mut())?,
        (Some(_), Some(all)) if is_random(spec) => weights.fill(0, Some(all.whole()))?,
        (Some(_), None) if is_random(spec) => {
            let mut room = stream.uninit(LISTED.min(spec.rows as usize))?;
            list(stream, spec, &mut room, |first, numbers| weights.fill(first, Some(numbers)))?;
        }
        _ => weights.fill_all()?,
    }
    fill_state(stream, spec, table)
}

/// Calls `each` with the first of some rows and their numbers in device memory, for all rows.
fn list(
    stream: &Stream,
    spec: &TableSpec,
    room: &mut Buffer<u64>,
    mut each: impl FnMut(u64, View<'_, u64>) -> Result<()>,
) -> Result<()> {
    let mut numbers = Vec::with_capacity(room.len());
    let mut first = 0;
    while first < spec.rows {
        let end = (first + room.len() as u64).min(spec.rows);
        numbers.clear();
        numbers.extend((first..end).map(|row| spec.window.global_row(row)));
        stream.upload(&numbers, room.view_mut(0..numbers.len()))?;
        each(first, room.view(0..numbers.len()))?;
        first = end;
    }
    Ok(())
}

/// The numbers of all rows, which stay.
fn list_all(stream: &Stream, spec: &TableSpec, all: &mut Buffer<u64>) -> Result<()> {
    let mut numbers = Vec::with_capacity(LISTED.min(all.len()));
    for first in (0..all.len()).step_by(LISTED) {
        let end = (first + LISTED).min(all.len());
        numbers.clear();
        numbers.extend((first..end).map(|row| spec.window.global_row(row as u64)));
        stream.upload(&numbers, all.view_mut(first..end))?;
    }
    Ok(())
}

struct Weights<'a> {
    stream: &'a Stream,
    descriptors: View<'a, TableDescriptor>,
    number: u32,
    spec: &'a TableSpec,
    key: Key,
}

impl Weights<'_> {
    /// All rows of a range.
    fn fill_all(&self) -> Result<()> {
        self.launch(0, self.spec.rows, None)
    }

    /// Rows from `first` on that have these numbers.
    fn fill(&self, first: u64, numbers: Option<View<'_, u64>>) -> Result<()> {
        self.launch(first, numbers.map_or(0, |numbers| numbers.len() as u64), numbers)
    }

    fn launch(&self, first: u64, rows: u64, numbers: Option<View<'_, u64>>) -> Result<()> {
        let (low, high) = match self.spec.init {
            Init::Constant(value) => (value, value),
            Init::Uniform { low, high } => (low, high),
        };
        // A constant is an interval of no width, whatever its bits.
        let span = if matches!(self.spec.init, Init::Constant(_)) { 0.0 } else { high - low };
        let [key_low, key_high] = self.key.words();
        let last = last_below(low, high);
        let device = self.stream.device();
        let threads = rows.saturating_mul(self.spec.dim.div_ceil(4) as u64);
        let shape = Shape::covering(threads, THREADS, WAVES * device.multiprocessors()?);
        let (tables, number) = (self.descriptors, self.number);
        let args = (tables, number, numbers, first, rows, key_low, key_high, low, span, last);
        // SAFETY: rows of this table, and a number for each where there are numbers.
        Ok(unsafe { self.stream.launch(device.kernel("emb_init_weights")?, shape, args) }?)
    }
}

/// Zeros, then the slots that begin otherwise.
fn fill_state(stream: &Stream, spec: &TableSpec, table: &mut Table) -> Result<()> {
    stream.clear(table.row_state.whole_mut())?;
    stream.clear(table.element_state.whole_mut())?;
    let (mut rows, mut elements) = (0, 0);
    for slot in spec.optimizer.slots() {
        let value = spec.optimizer.initial_state(*slot);
        let (state, before, width) = match slot.extent {
            Extent::Row => (&mut table.row_state, &mut rows, 1),
            Extent::Element => (&mut table.element_state, &mut elements, spec.dim),
        };
        let (len, start) = (state.len(), *before);
        *before += width;
        if value.to_bits() == 0 {
            continue;
        }
        let device = stream.device();
        let stride = (len as u64) / spec.rows;
        let threads = spec.rows.saturating_mul(width as u64);
        let shape = Shape::covering(threads, THREADS, WAVES * device.multiprocessors()?);
        let args = (state.view_mut(start..len), spec.rows, width as u32, stride, value);
        // SAFETY: `width` elements from `start` on of every row of the slot.
        unsafe { stream.launch(device.kernel("emb_init_state")?, shape, args) }?;
    }
    Ok(())
}
