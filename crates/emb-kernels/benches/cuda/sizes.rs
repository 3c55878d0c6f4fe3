//! Problem sizes.

use emb_kernels::Dtype;

/// Tables, and what is looked up in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) tables: usize,
    /// Rows of a table.
    pub(crate) rows: u64,
    pub(crate) dim: usize,
    pub(crate) dtype: Dtype,
    pub(crate) batch: usize,
    /// Ids of a bag.
    pub(crate) ids: usize,
}

impl Shape {
    pub(crate) fn lookups(&self) -> u64 {
        (self.tables * self.batch * self.ids) as u64
    }

    pub(crate) fn row_bytes(&self) -> u64 {
        (self.dim * self.dtype.bytes()) as u64
    }

    /// Of the pooled output, which is `f32`.
    pub(crate) fn output_bytes(&self) -> u64 {
        (self.tables * self.batch * self.dim * 4) as u64
    }
}

/// Sizes of all cells.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// Bytes copied from one buffer to another.
    pub(crate) copy: usize,
    /// Bytes written between two samples: more than any L2 cache has.
    pub(crate) flush: usize,
    /// Rows and columns of the matrices multiplied.
    pub(crate) product: usize,
    pub(crate) dims: Vec<usize>,
    pub(crate) uniform: Shape,
    pub(crate) power_law: Shape,
    pub(crate) step: Shape,
}

impl Sizes {
    /// Full sizes for a device with this much free memory, or the smallest that run everything.
    pub(crate) fn of(tiny: bool, free: u64) -> Self {
        let shape =
            |tables, rows, dim, dtype, batch, ids| Shape { tables, rows, dim, dtype, batch, ids };
        if tiny {
            return Self {
                copy: 1 << 16,
                flush: 1 << 10,
                product: 16,
                dims: vec![64, 128],
                uniform: shape(2, 500, 64, Dtype::F32, 8, 3),
                power_law: shape(1, 1000, 256, Dtype::F16, 16, 8),
                step: shape(1, 500, 128, Dtype::F32, 8, 3),
            };
        }
        // The widest tables take at most a third of the memory, and 16 GiB of any.
        let room = (free / 3).min(16 << 30);
        Self {
            copy: 2 << 30,
            flush: 512 << 20,
            product: 8192,
            dims: vec![64, 128, 256],
            uniform: shape(8, room / (8 * 256 * 4), 64, Dtype::F32, 8192, 20),
            power_law: shape(1, 10_000_000, 256, Dtype::F16, 65_536, 64),
            step: shape(1, 4_000_000, 128, Dtype::F32, 65_536, 20),
        }
    }
}
