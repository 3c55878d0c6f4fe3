//! What a table is before it exists: [`TableSpec`].

use crate::Window;
use emb_optim::Optimizer;

/// Element type of stored weights. Arithmetic is always `f32` (statistics `f64`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 4 bytes.
    F32,
    /// IEEE binary16, 2 bytes.
    F16,
    /// bfloat16, 2 bytes.
    Bf16,
}

impl Dtype {
    /// Bytes of one stored element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// How an updated `f32` is stored into a 16-bit weight; `f32` weights ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Up or down with probability equal to the distance from the other neighbour: unbiased.
    /// Random bits are counter-based, keyed by (seed, table name, step, row, column).
    Stochastic,
    /// To the nearest, ties to even.
    Nearest,
}

/// Initial value of every weight, keyed by (seed, table name, row, column): no plan, rank or
/// thread count changes a bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Uniform in `[low, high)`.
    Uniform {
        /// Smallest value.
        low: f32,
        /// Upper end, not included.
        high: f32,
    },
    /// One value everywhere.
    Constant(f32),
}

impl Init {
    /// The field's default: uniform within `1 / sqrt(rows)` of zero.
    pub fn default_for(rows: u64) -> Self {
        let bound = (1.0 / (rows.max(1) as f64).sqrt()) as f32;
        Self::Uniform { low: -bound, high: bound }
    }
}

/// Page size of a table's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Huge pages when the table is small beside the machine's memory, else small ones.
    Auto,
    /// 4 KiB: costs the least memory when few rows are ever touched.
    Small,
    /// 2 MiB: fewer address translations, faster on hot tables.
    Huge,
}

/// One table (or one shard of a table) to be created by a backend.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// Name of the whole table; keys initial weights and checkpoints. In a group, tables of one name
    /// are different parts of one table.
    pub name: String,
    /// Rows held here; at least 1.
    pub rows: u64,
    /// Columns held here; at least 1, at most [`TableSpec::MAX_DIM`].
    pub dim: usize,
    /// Element type of the weights.
    pub dtype: Dtype,
    /// How updates are stored into 16-bit weights.
    pub rounding: Rounding,
    /// Initial weights.
    pub init: Init,
    /// Page size of the table's memory.
    pub pages: Pages,
    /// The update rule and its options; decides the optimizer state.
    pub optimizer: Optimizer,
    /// Which part of the global table this is.
    pub window: Window,
}

impl TableSpec {
    /// Largest `dim` any backend accepts; larger is refused, never cut short.
    pub const MAX_DIM: usize = 16_384;

    /// A whole `f32` table with default initial weights.
    pub fn new(name: impl Into<String>, rows: u64, dim: usize, optimizer: Optimizer) -> Self {
        Self {
            name: name.into(),
            rows,
            dim,
            dtype: Dtype::F32,
            rounding: Rounding::Stochastic,
            init: Init::default_for(rows),
            pages: Pages::Auto,
            optimizer,
            window: Window::whole(dim),
        }
    }
}
