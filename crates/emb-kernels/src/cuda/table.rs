//! Tables in device memory: [`CudaTables`].
//!
//! All of a table is there from the start: a device has no pages that are paid for when they are
//! touched. Initial weights are made by the device, with the bits of the CPU.

use super::Cuda;
use super::descriptors::TableDescriptor;
use super::foreseen::Foreseen;
use super::init::fill;
use crate::rng::{Key, Purpose};
use crate::table_checks::{check_tables, slot_width};
use crate::{Dtype, Error, Init, Result, Rounding, TableSpec};
use emb_cuda::{Buffer, Stream, View};
use emb_optim::{Extent, element_slots, row_slots};

/// The tables of one group in a device.
#[derive(Debug)]
pub struct CudaTables {
    specs: Vec<TableSpec>,
    tables: Vec<Table>,
    host: Vec<TableDescriptor>,
    descriptors: Buffer<TableDescriptor>,
    /// Of batches that updates are still to come for.
    pub(super) foreseen: Foreseen,
}

/// Memory of one table.
#[derive(Debug)]
pub(super) struct Table {
    /// `[rows, dim]` of its type.
    pub(super) weights: Buffer<u8>,
    /// `[rows, row slots]`.
    pub(super) row_state: Buffer<f32>,
    /// `[rows, element slots, dim]`.
    pub(super) element_state: Buffer<f32>,
    /// `[rows]` global rows, where stochastic rounding asks for them and they are no range.
    pub(super) row_numbers: Option<Buffer<u64>>,
    /// Weights and each slot, for copies of rows.
    pub(super) parts: Buffer<Part>,
    pub(super) parts_host: Vec<Part>,
    /// Elements of a row's weights and state.
    pub(super) elements: usize,
}

/// Weights or one slot of a table; twin of `emb::RowPart` of `cuda/rows.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Part {
    pub(super) memory: u64,
    pub(super) stride: u64,
    pub(super) width: u32,
    pub(super) dtype: u32,
    pub(super) column: u32,
    pub(super) padding: u32,
}

const _: () = assert!(size_of::<Part>() == 32);

// SAFETY: numbers without padding between them, by the size above.
unsafe impl bytemuck::Zeroable for Part {}
// SAFETY: as above; any bits are a value.
unsafe impl bytemuck::Pod for Part {}

impl CudaTables {
    pub(super) fn specs(&self) -> &[TableSpec] {
        &self.specs
    }

    pub(super) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// What kernels are told about each table, on the host.
    pub(super) fn host(&self) -> &[TableDescriptor] {
        &self.host
    }

    /// What kernels are told about each table. A launch that is given this is ordered with all work
    /// on the tables.
    pub(super) fn descriptors(&self) -> View<'_, TableDescriptor> {
        self.descriptors.whole()
    }

    /// Does `work` behind all work on the tables so far, and later work on them behind it: for
    /// launches that know the tables by addresses alone.
    pub(super) fn around(&self, stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let home = self.descriptors.home();
        stream.after(home)?;
        work()?;
        Ok(home.after(stream)?)
    }
}

pub(super) fn create(cuda: &mut Cuda, specs: &[TableSpec], seed: u64) -> Result<CudaTables> {
    check_tables(specs)?;
    let stream = &cuda.stream;
    let mut tables: Vec<Table> =
        specs.iter().map(|spec| Table::new(stream, spec)).collect::<Result<_>>()?;
    let mut first_key = 0;
    let host: Vec<TableDescriptor> = specs
        .iter()
        .zip(&tables)
        .map(|(spec, table)| {
            let descriptor = describe(spec, table, first_key, seed);
            first_key += spec.rows;
            descriptor
        })
        .collect();
    let mut descriptors = stream.uninit(host.len())?;
    stream.upload(&host, descriptors.whole_mut())?;
    for (t, (spec, table)) in specs.iter().zip(&mut tables).enumerate() {
        let key = Key::new(seed, &spec.name, Purpose::Init);
        fill(stream, descriptors.whole(), t, spec, table, key)?;
    }
    let (specs, foreseen) = (specs.to_vec(), Foreseen::default());
    Ok(CudaTables { specs, tables, host, descriptors, foreseen })
}

impl Table {
    fn new(stream: &Stream, spec: &TableSpec) -> Result<Self> {
        let slots = spec.optimizer.slots();
        let (row_slots, element_slots) = (row_slots(slots), element_slots(slots));
        let (rows, dim) = (u128::from(spec.rows), spec.dim as u128);
        let weights = memory(stream, spec, "weights", rows * dim * spec.dtype.bytes() as u128)?;
        let row_state = memory(stream, spec, "row state", rows * row_slots as u128)?;
        let element_state =
            memory(stream, spec, "element state", rows * dim * element_slots as u128)?;
        let row_numbers = match spec.window.rows {
            Some(_) if is_stochastic(spec) => Some(memory(stream, spec, "row numbers", rows)?),
            _ => None,
        };
        let parts_host = parts(spec, &weights, &row_state, &element_state);
        let mut parts = stream.uninit(parts_host.len())?;
        stream.upload(&parts_host, parts.whole_mut())?;
        let elements = parts_host.iter().map(|part| part.width as usize).sum();
        Ok(Self { weights, row_state, element_state, row_numbers, parts, parts_host, elements })
    }
}

/// Memory of `len` elements, whose refusal names the table.
fn memory<T: bytemuck::Pod>(
    stream: &Stream,
    spec: &TableSpec,
    what: &str,
    len: u128,
) -> Result<Buffer<T>> {
    let what = format!("table {:?}: {what}", spec.name);
    let bytes = u64::try_from(len * size_of::<T>() as u128).unwrap_or(u64::MAX);
    let refused = |reason: String| Error::Memory { what: what.clone(), bytes, reason };
    let len = usize::try_from(len).map_err(|_| refused("more than an address has".to_owned()))?;
    stream.uninit(len).map_err(|error| match Error::from(error) {
        Error::Memory { reason, .. } => refused(reason),
        other => other,
    })
}

/// Whether updated weights need random bits.
pub(super) fn is_stochastic(spec: &TableSpec) -> bool {
    spec.dtype != Dtype::F32 && spec.rounding == Rounding::Stochastic
}

/// Whether initial weights depend on their global row.
pub(super) fn is_random(spec: &TableSpec) -> bool {
    matches!(spec.init, Init::Uniform { .. })
}

/// `emb::Dtype`.
pub(super) fn dtype_code(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::F32 => 0,
        Dtype::F16 => 1,
        Dtype::Bf16 => 2,
    }
}

fn describe(spec: &TableSpec, table: &Table, first_key: u64, seed: u64) -> TableDescriptor {
    let slots = spec.optimizer.slots();
    TableDescriptor {
        weights: table.weights.whole().pointer(),
        row_state: table.row_state.whole().pointer(),
        element_state: table.element_state.whole().pointer(),
        row_numbers: table.row_numbers.as_ref().map_or(0, |numbers| numbers.whole().pointer()),
        rows: spec.rows,
        first_key,
        first_row: spec.window.first_row,
        row_step: spec.window.row_step,
        dim: spec.dim as u32,
        dtype: dtype_code(spec.dtype),
        row_slots: row_slots(slots) as u32,
        element_slots: element_slots(slots) as u32,
        first_column: spec.window.first_column as u32,
        table_dim: spec.window.table_dim as u32,
        stochastic: u32::from(is_stochastic(spec)),
        rounding_key: Key::new(seed, &spec.name, Purpose::Rounding).words(),
        padding: 0,
    }
}

/// Weights, then each slot in the order of the rule's.
fn parts(
    spec: &TableSpec,
    weights: &Buffer<u8>,
    row_state: &Buffer<f32>,
    element_state: &Buffer<f32>,
) -> Vec<Part> {
    let slots = spec.optimizer.slots();
    let (dim, row_slots, element_slots) = (spec.dim, row_slots(slots), element_slots(slots));
    let mut parts = vec![Part {
        memory: weights.whole().pointer(),
        stride: dim as u64,
        width: dim as u32,
        dtype: dtype_code(spec.dtype),
        ..Part::default()
    }];
    let (mut rows, mut elements, mut column) = (0, 0, dim);
    for slot in slots {
        let width = slot_width(spec, slot.extent);
        let (base, before, stride) = match slot.extent {
            Extent::Row => (row_state.whole().pointer(), &mut rows, row_slots),
            Extent::Element => {
                (element_state.whole().pointer(), &mut elements, element_slots * dim)
            }
        };
        parts.push(Part {
            memory: base + (*before * 4) as u64,
            stride: stride as u64,
            width: width as u32,
            dtype: dtype_code(Dtype::F32),
            column: column as u32,
            padding: 0,
        });
        *before += width;
        column += width;
    }
    parts
}
