//! Rows copied by number.

use super::table::Part;
use super::{Cuda, CudaTables};
use crate::shape::same;
use crate::table_checks::{check_position, check_rows, slot_width, whole_rows};
use crate::{Result, RowTransfer, TableSpec};
use emb_cuda::{Kept, Shape, Stream, View, ViewMut};

/// Floats that are copied at a time: 64 MiB.
const STAGED: usize = 1 << 24;

/// Threads of a block; a warp has a row.
const THREADS: u32 = 256;

/// Blocks for each multiprocessor.
const WAVES: u32 = 16;

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    staged: Kept<f32>,
    numbers: Kept<u64>,
    places: Kept<u64>,
}

/// Which rows a launch copies, and how they lie in the buffer.
#[derive(Clone, Copy)]
struct Rows<'a> {
    stream: &'a Stream,
    parts: View<'a, Part>,
    numbers: Option<View<'a, u64>>,
    first: u64,
    count: usize,
    /// Of a whole row; 0 where each part of all rows lies on its own.
    elements: u32,
}

impl Rows<'_> {
    fn shape(&self) -> Result<Shape> {
        let blocks = WAVES * self.stream.device().multiprocessors()?;
        Ok(Shape::covering(self.count as u64 * 32, THREADS, blocks))
    }

    fn read(&self, out: ViewMut<'_, f32>) -> Result<()> {
        let kernel = self.stream.device().kernel("emb_read_rows")?;
        let (parts, count, rows) = (self.parts, self.parts.len() as u32, self.count as u64);
        let args = (parts, count, self.numbers, self.first, rows, self.elements, out);
        // SAFETY: rows of the table, as checked; `out` has all elements of each.
        Ok(unsafe { self.stream.launch(kernel, self.shape()?, args) }?)
    }

    /// `places` are those of [`find_last`], where a row may be listed twice.
    fn write(
        &self,
        places: Option<(View<'_, u64>, View<'_, u64>)>,
        from: View<'_, f32>,
    ) -> Result<()> {
        let kernel = self.stream.device().kernel("emb_write_rows")?;
        let (parts, count, rows) = (self.parts, self.parts.len() as u32, self.count as u64);
        let (keys, last) = places.unzip();
        let mask = keys.map_or(0, |keys| keys.len() as u64 - 1);
        let (numbers, first, elements) = (self.numbers, self.first, self.elements);
        let args = (parts, count, numbers, first, rows, elements, keys, last, mask, from);
        // SAFETY: as in `read`; only the last of equal rows writes.
        Ok(unsafe { self.stream.launch(kernel, self.shape()?, args) }?)
    }
}

/// Which of equal rows is the last: keys and positions of an open table.
fn find_last<'a>(
    stream: &Stream,
    numbers: View<'_, u64>,
    places: &'a mut Kept<u64>,
) -> Result<(View<'a, u64>, View<'a, u64>)> {
    let len = (2 * numbers.len()).next_power_of_two();
    let room = places.room(stream, 2 * len)?;
    let mut both = room.view_mut(0..2 * len);
    stream.clear(both.reborrow())?;
    let (keys, last) = both.split_at(len);
    let device = stream.device();
    let shape = Shape::covering(numbers.len() as u64, THREADS, WAVES * device.multiprocessors()?);
    let args = (numbers, numbers.len() as u64, keys, last, len as u64 - 1);
    // SAFETY: twice as many places as rows, cleared, a power of two.
    unsafe { stream.launch(device.kernel("emb_find_last_rows")?, shape, args) }?;
    Ok((room.view(0..len), room.view(len..2 * len)))
}

/// Rows that are staged at a time.
fn rows_at_a_time(elements: usize) -> usize {
    (STAGED / elements).max(1)
}

pub(super) fn read_rows(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    table: usize,
    first: u64,
    weights: &mut [f32],
    state: &mut [Vec<f32>],
) -> Result<()> {
    let spec = spec_of(tables, "read_rows", table)?;
    let n = whole_rows("read_rows", spec, first, weights.len())?;
    let slots = spec.optimizer.slots();
    same("read_rows", "state slots", slots.len(), state.len())?;
    for (slot, values) in slots.iter().zip(state.iter_mut()) {
        values.resize(n * slot_width(spec, slot.extent), 0.0);
    }
    let Cuda { stream, rows: Scratch { staged, .. }, .. } = cuda;
    let table = &tables.tables()[table];
    let step = rows_at_a_time(table.elements);
    for from in (0..n).step_by(step) {
        let count = step.min(n - from);
        let room = staged.room(stream, count * table.elements)?;
        let (parts, first) = (table.parts.whole(), first + from as u64);
        let rows = Rows { stream, parts, numbers: None, first, count, elements: 0 };
        tables.around(stream, || rows.read(room.view_mut(0..count * table.elements)))?;
        let mut at = 0;
        let all = std::iter::once(&mut *weights).chain(state.iter_mut().map(Vec::as_mut_slice));
        for (part, values) in table.parts_host.iter().zip(all) {
            let width = part.width as usize;
            let values = &mut values[from * width..(from + count) * width];
            stream.download(room.view(at..at + count * width), values)?;
            at += count * width;
        }
    }
    Ok(())
}

pub(super) fn write_rows(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    table: usize,
    first: u64,
    weights: &[f32],
    state: &[Vec<f32>],
) -> Result<()> {
    let spec = spec_of(tables, "write_rows", table)?;
    let n = whole_rows("write_rows", spec, first, weights.len())?;
    let slots = spec.optimizer.slots();
    same("write_rows", "state slots", slots.len(), state.len())?;
    for (slot, values) in slots.iter().zip(state) {
        let len = n * slot_width(spec, slot.extent);
        same("write_rows", "state of a slot", len, values.len())?;
    }
    let Cuda { stream, rows: Scratch { staged, .. }, .. } = cuda;
    let table = &tables.tables()[table];
    let step = rows_at_a_time(table.elements);
    for from in (0..n).step_by(step) {
        let count = step.min(n - from);
        let room = staged.room(stream, count * table.elements)?;
        let mut at = 0;
        let all = std::iter::once(weights).chain(state.iter().map(Vec::as_slice));
        for (part, values) in table.parts_host.iter().zip(all) {
            let width = part.width as usize;
            let values = &values[from * width..(from + count) * width];
            stream.upload(values, room.view_mut(at..at + count * width))?;
            at += count * width;
        }
        let (parts, first) = (table.parts.whole(), first + from as u64);
        let rows = Rows { stream, parts, numbers: None, first, count, elements: 0 };
        tables.around(stream, || rows.write(None, room.view(0..count * table.elements)))?;
    }
    Ok(())
}

pub(super) fn transfer_rows(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    table: usize,
    numbers: &[u64],
    mut transfer: RowTransfer<'_>,
) -> Result<()> {
    let operation = "transfer_rows";
    let spec = spec_of(tables, operation, table)?;
    let table = &tables.tables()[table];
    let given = match &transfer {
        RowTransfer::Read(values) => values.len(),
        RowTransfer::Write(values) => values.len(),
    };
    let expected = numbers.len() * table.elements;
    same(operation, "values, all of every row", expected, given)?;
    check_rows(operation, spec, numbers)?;
    let Cuda { stream, rows: scratch, .. } = cuda;
    let step = rows_at_a_time(table.elements);
    for (part, numbers) in numbers.chunks(step).enumerate() {
        let count = numbers.len();
        let start = part * step * table.elements;
        let (values, end) = (count * table.elements, start + count * table.elements);
        let room = scratch.numbers.room(stream, count)?;
        stream.upload(numbers, room.view_mut(0..count))?;
        let (listed, staged) = (room.view(0..count), scratch.staged.room(stream, values)?);
        let (parts, elements) = (table.parts.whole(), table.elements as u32);
        let rows = Rows { stream, parts, numbers: Some(listed), first: 0, count, elements };
        match &mut transfer {
            RowTransfer::Read(to) => {
                tables.around(stream, || rows.read(staged.view_mut(0..values)))?;
                stream.download(staged.view(0..values), &mut to[start..end])?;
            }
            RowTransfer::Write(from) => {
                stream.upload(&from[start..end], staged.view_mut(0..values))?;
                // Of equal rows the last must stay; ascending ones differ.
                let ascending = numbers.is_sorted_by(|a, b| a < b);
                let places = if ascending {
                    None
                } else {
                    Some(find_last(stream, listed, &mut scratch.places)?)
                };
                tables.around(stream, || rows.write(places, staged.view(0..values)))?;
            }
        }
    }
    Ok(())
}

fn spec_of<'a>(
    tables: &'a CudaTables,
    operation: &'static str,
    table: usize,
) -> Result<&'a TableSpec> {
    check_position(operation, tables.specs(), table)?;
    Ok(&tables.specs()[table])
}
