//! Lookup without pooling, and rows to and from the host.

use super::Cpu;
use super::detect::{Instructions, Kernel, dispatch, prefetch};
use super::dtype::Element;
use super::ids::{check_and_touch, check_shapes, expect, expect_shape};
use super::parallel::split;
use super::shared::SharedMut;
use super::table::{CpuTables, Table};
use crate::table_checks::{check_position, slot_width, whole_rows};
use crate::{Dtype, Error, FeatureMap, JaggedView, Mat, Pooling, Result};
use emb_optim::Extent;
use half::{bf16, f16};

/// Ids that one part of a gather copies.
const PART: usize = 2048;

/// Rows between a prefetch and its use.
const DISTANCE: usize = 24;

#[expect(clippy::needless_pass_by_value, reason = "an exclusive view is handed over")]
pub(crate) fn gather(
    threads: usize,
    instructions: Instructions,
    tables: &CpuTables,
    map: &FeatureMap,
    feature: usize,
    batch: JaggedView<'_, Cpu>,
    out: Mat<&mut [f32]>,
) -> Result<()> {
    check_shapes("gather", tables, map, batch)?;
    if feature >= map.features().len() {
        let (expected, got) = (map.features().len(), feature);
        return Err(Error::Shape { operation: "gather", what: "feature position", expected, got });
    }
    let start = batch.offsets[feature * batch.batch] as usize;
    let end = batch.offsets[(feature + 1) * batch.batch] as usize;
    let dim = map.dim(feature);
    let shape = (out.rows, out.cols, out.stride, out.data.len());
    expect_shape("gather", "output", shape, end - start, dim)?;
    check_and_touch(threads, tables, map, batch, feature..feature + 1)?;
    let table = &tables.tables()[map.features()[feature].table];
    let ids = &batch.values[start..end];
    let stride = out.stride;
    let out = SharedMut::new(out.data);
    split(threads, ids.len().div_ceil(PART), &|part: usize| {
        let first = part * PART;
        let ids = &ids[first..(first + PART).min(ids.len())];
        copy(instructions, table, ids, out, first * stride, stride);
    });
    Ok(())
}

/// See [`Backend::gather_all`](crate::Backend::gather_all).
pub(crate) fn gather_all(
    threads: usize,
    instructions: Instructions,
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    out: &mut [f32],
) -> Result<()> {
    check_shapes("gather_all", tables, map, batch)?;
    let range = |f: usize| {
        let at = |bag: usize| batch.offsets[bag] as usize;
        at(f * batch.batch)..at((f + 1) * batch.batch)
    };
    let sequences = || {
        let all = map.features().iter().enumerate();
        all.filter(|(_, feature)| feature.pooling == Pooling::None)
    };
    let elements = sequences().map(|(f, _)| range(f).len() * map.dim(f)).sum();
    expect("gather_all", "output", elements, out.len())?;
    check_and_touch(threads, tables, map, batch, 0..map.features().len())?;
    let out = SharedMut::new(out);
    // A part has the ids of a range, whatever features they are of.
    split(threads, batch.len.div_ceil(PART), &|part: usize| {
        let (from, to) = (part * PART, (part + 1) * PART);
        let mut start = 0;
        for (f, feature) in sequences() {
            let (ids, dim) = (range(f), map.dim(f));
            let own = ids.start.max(from)..ids.end.min(to);
            if !own.is_empty() {
                let start = start + (own.start - ids.start) * dim;
                let table = &tables.tables()[feature.table];
                copy(instructions, table, &batch.values[own], out, start, dim);
            }
            start += ids.len() * dim;
        }
    });
    Ok(())
}

/// Copies rows to `out`, from element `start` on, `stride` elements each.
fn copy(
    instructions: Instructions,
    table: &Table,
    ids: &[i64],
    out: SharedMut<'_, f32>,
    start: usize,
    stride: usize,
) {
    match table.dtype {
        Dtype::F32 => copy_of::<f32>(instructions, table, ids, out, start, stride),
        Dtype::F16 => copy_of::<f16>(instructions, table, ids, out, start, stride),
        Dtype::Bf16 => copy_of::<bf16>(instructions, table, ids, out, start, stride),
    }
}

fn copy_of<E: Element>(
    instructions: Instructions,
    table: &Table,
    ids: &[i64],
    out: SharedMut<'_, f32>,
    start: usize,
    stride: usize,
) {
    // SAFETY: a lookup only reads weights, and the tables are borrowed for it as a whole.
    let rows = unsafe { table.weights.slice::<E>() };
    dispatch(instructions, CopyKernel { rows, dim: table.dim, ids, out, start, stride });
}

struct CopyKernel<'a, E> {
    rows: &'a [E],
    dim: usize,
    ids: &'a [i64],
    out: SharedMut<'a, f32>,
    /// First element of the row of the first id.
    start: usize,
    stride: usize,
}

impl<E: Element> Kernel for CopyKernel<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (k, &id) in self.ids.iter().enumerate() {
            if let Some(&next) = self.ids.get(k + DISTANCE) {
                prefetch(&self.rows[next as usize * self.dim..][..self.dim]);
            }
            let row = &self.rows[id as usize * self.dim..][..self.dim];
            // SAFETY: every id has its own output row.
            let out = unsafe { self.out.part(self.start + k * self.stride, self.dim) };
            for (out, w) in out.iter_mut().zip(row) {
                *out = w.load();
            }
        }
    }
}

/// See [`Backend::read_rows`](crate::Backend::read_rows).
pub(crate) fn read_rows(
    tables: &CpuTables,
    table: usize,
    first: u64,
    weights: &mut [f32],
    state: &mut [Vec<f32>],
) -> Result<()> {
    let table = find(tables, table, "read_rows")?;
    let n = whole_rows("read_rows", table.spec(), first, weights.len())?;
    expect("read_rows", "state slots", table.slots.len(), state.len())?;
    for (slot, values) in table.slots.iter().zip(state.iter_mut()) {
        values.resize(n * width(table, slot.extent), 0.0);
    }
    for k in 0..n {
        let row = first + k as u64;
        let out = &mut weights[k * table.dim..(k + 1) * table.dim];
        if table.is_touched(row) {
            load_row(table, row, out);
        } else {
            table.initial_row(row, out);
        }
        for (s, values) in state.iter_mut().enumerate() {
            let (source, width) = slot_of(table, row, s);
            let out = &mut values[k * width..(k + 1) * width];
            if table.is_touched(row) {
                out.copy_from_slice(source);
            } else {
                out.fill(table.initial_slot(s));
            }
        }
    }
    Ok(())
}

/// See [`Backend::write_rows`](crate::Backend::write_rows).
pub(crate) fn write_rows(
    tables: &mut CpuTables,
    table: usize,
    first: u64,
    weights: &[f32],
    state: &[Vec<f32>],
) -> Result<()> {
    let table = find(tables, table, "write_rows")?;
    let n = whole_rows("write_rows", table.spec(), first, weights.len())?;
    expect("write_rows", "state slots", table.slots.len(), state.len())?;
    for (slot, values) in table.slots.iter().zip(state) {
        expect("write_rows", "state of a slot", n * width(table, slot.extent), values.len())?;
    }
    for k in 0..n {
        let row = first + k as u64;
        table.touch(row);
        let values = &weights[k * table.dim..(k + 1) * table.dim];
        store_row(table, row, values);
        for (s, values) in state.iter().enumerate() {
            let (to, width) = slot_of(table, row, s);
            to.copy_from_slice(&values[k * width..(k + 1) * width]);
        }
    }
    Ok(())
}

pub(super) fn find<'a>(
    tables: &'a CpuTables,
    table: usize,
    operation: &'static str,
) -> Result<&'a Table> {
    check_position(operation, tables.specs(), table)?;
    Ok(&tables.tables()[table])
}

pub(super) fn width(table: &Table, extent: Extent) -> usize {
    slot_width(table.spec(), extent)
}

/// The weights of a row that was touched.
pub(super) fn load_row(table: &Table, row: u64, out: &mut [f32]) {
    match table.dtype {
        Dtype::F32 => load::<f32>(table, row, out),
        Dtype::F16 => load::<f16>(table, row, out),
        Dtype::Bf16 => load::<bf16>(table, row, out),
    }
}

/// Stores the weights of a row that was touched, rounded to nearest.
pub(super) fn store_row(table: &Table, row: u64, values: &[f32]) {
    match table.dtype {
        Dtype::F32 => store::<f32>(table, row, values),
        Dtype::F16 => store::<f16>(table, row, values),
        Dtype::Bf16 => store::<bf16>(table, row, values),
    }
}

fn load<E: Element>(table: &Table, row: u64, out: &mut [f32]) {
    // SAFETY: the tables are borrowed as a whole by a caller on one thread, that only reads.
    let stored = unsafe { table.weights.part_mut::<E>(row as usize * table.dim, table.dim) };
    for (out, w) in out.iter_mut().zip(stored) {
        *out = w.load();
    }
}

fn store<E: Element>(table: &Table, row: u64, values: &[f32]) {
    // SAFETY: the tables are borrowed mutably as a whole by a caller on one thread.
    let stored = unsafe { table.weights.part_mut::<E>(row as usize * table.dim, table.dim) };
    for (w, &value) in stored.iter_mut().zip(values) {
        *w = E::nearest(value);
    }
}

/// The state of slot `s` of a row, and its width.
#[expect(clippy::mut_from_ref, reason = "the caller holds the tables for itself")]
pub(super) fn slot_of(table: &Table, row: u64, s: usize) -> (&mut [f32], usize) {
    let row = row as usize;
    let before = |extent| table.slots[..s].iter().filter(|slot| slot.extent == extent).count();
    match table.slots[s].extent {
        Extent::Row => {
            let at = row * table.row_slots + before(Extent::Row);
            // SAFETY: in the map; the caller is alone with the tables and drops one before the next.
            (unsafe { table.row_state.part_mut(at, 1) }, 1)
        }
        Extent::Element => {
            let at = (row * table.element_slots + before(Extent::Element)) * table.dim;
            // SAFETY: as above.
            (unsafe { table.element_state.part_mut(at, table.dim) }, table.dim)
        }
    }
}
