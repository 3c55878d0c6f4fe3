//! The matrix product, in the manner of Goto and van de Geijn 2008 ("Anatomy of high-performance
//! matrix multiplication", figure 8): blocks of the second operand are packed into panels that fit
//! the caches, and a tile of outputs is kept in registers.
//!
//! Every output is one chain of fused multiply-adds with `k` ascending, beginning with 0 or with
//! what was there. Results are therefore bitwise equal for any number of threads, and a row of a
//! product is bitwise the same whatever other rows are computed with it: parts of a batch give the
//! same activations as the whole batch. AVX2 and AVX-512 give the same bits too; processors
//! without FMA round once more per step. Products with one column are sums in a fixed lane order
//! instead, with the same guarantees, on every instruction set.
//!
//! Nothing is allocated, but the packing room of a thread (1.1 MiB) at its first product;
//! [`warm_up`] makes it for a whole pool.

pub(in crate::cpu) mod kernel;
pub(in crate::cpu) mod pack;
#[cfg(test)]
mod tests;
mod vector;

use crate::cpu::shape::{self, names, over_rows, same};
use crate::{Accumulate, Mat, Result, Transpose};
use kernel::{Kernel, Panel, WithKernel};
use pack::{KC, MC, NC};

/// Products of fewer multiply-adds stay on one thread.
const SERIAL: usize = 64 * 64 * 64;

/// `out = op(a) * op(b)` or `out += op(a) * op(b)`; call it inside the pool of `threads` threads.
///
/// For `2 * m * n * k` flops it reads `b` once on every thread, `a` once for every 1024 columns,
/// and `out` once for every 256 of `k`.
///
/// # Errors
/// Shapes that do not multiply, a matrix beyond its data; nothing has been written then.
pub(crate) fn gemm(
    threads: usize,
    a: Mat<&[f32]>,
    transpose_a: Transpose,
    b: Mat<&[f32]>,
    transpose_b: Transpose,
    accumulate: Accumulate,
    out: Mat<&mut [f32]>,
) -> Result<()> {
    let (m, k) = oriented(&a, transpose_a);
    let (inner, n) = oriented(&b, transpose_b);
    same("gemm", "inner dimension of b (that of a is expected)", k, inner)?;
    shape::mat("gemm", names!("out"), &out, m, n)?;
    shape::inside("gemm", names!("a"), &a)?;
    shape::inside("gemm", names!("b"), &b)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let threads = if m.saturating_mul(n).saturating_mul(k) < SERIAL { 1 } else { threads };
    if vector::fits(&a, transpose_a, &b, transpose_b, n, k) {
        over_rows(threads, 1, out, &|first, out| {
            vector::rows_times_column(&a, &b.data[..k], first, accumulate, out);
        });
    } else if transpose_b == Transpose::No && (m == 1 || (1..=2).contains(&k)) {
        over_rows(threads, 1, out, &|first, out| {
            vector::rows_times_rows(&a, transpose_a, &b, first, accumulate, out);
        });
    } else {
        let operands = Operands { a, transpose_a, b, transpose_b, k };
        kernel::dispatch(Product { threads, operands, accumulate, out });
    }
    Ok(())
}

/// Makes the packing room of every thread of the current pool, so that no later product allocates.
pub(crate) fn warm_up(threads: usize) {
    if threads > 1 {
        rayon::broadcast(|_| pack::with_panels(|_, _| ()));
    } else {
        pack::with_panels(|_, _| ());
    }
}

/// What a product reads.
struct Operands<'a> {
    a: Mat<&'a [f32]>,
    transpose_a: Transpose,
    b: Mat<&'a [f32]>,
    transpose_b: Transpose,
    k: usize,
}

/// Rows and columns of `op(mat)`.
fn oriented<V>(mat: &Mat<V>, transpose: Transpose) -> (usize, usize) {
    match transpose {
        Transpose::No => (mat.rows, mat.cols),
        Transpose::Yes => (mat.cols, mat.rows),
    }
}

/// A product, to be run with the tiles of this processor.
struct Product<'a> {
    threads: usize,
    operands: Operands<'a>,
    accumulate: Accumulate,
    out: Mat<&'a mut [f32]>,
}

impl WithKernel for Product<'_> {
    /// Gives each thread whole strips of `MR` rows; each packs the second operand for itself.
    fn run<const MR: usize, const NR: usize>(self, kernel: impl Kernel<MR, NR>) {
        let Self { threads, operands, accumulate, out } = self;
        over_rows(threads, MR, out, &|first, mut out| {
            pack::with_panels(|packed_a, packed_b| {
                blocks(kernel, &operands, accumulate, first, &mut out, packed_a, packed_b);
            });
        });
    }
}

/// Rows `first..first + out.rows` of the product.
fn blocks<const MR: usize, const NR: usize>(
    kernel: impl Kernel<MR, NR>,
    operands: &Operands<'_>,
    accumulate: Accumulate,
    first: usize,
    out: &mut Mat<&mut [f32]>,
    packed_a: &mut [f32],
    packed_b: &mut [f32],
) {
    let (k, n) = (operands.k, out.cols);
    if k == 0 && accumulate == Accumulate::Replace {
        (0..out.rows).for_each(|i| shape::row_mut(out, i).fill(0.0));
    }
    for column in (0..n).step_by(NC) {
        let columns = (column, NC.min(n - column));
        for depth in (0..k).step_by(KC) {
            let depths = (depth, KC.min(k - depth));
            let load = depth > 0 || accumulate == Accumulate::Add;
            let used = match operands.transpose_b {
                Transpose::No => pack::from_rows::<NR>(&operands.b, depths, columns, packed_b),
                Transpose::Yes => pack::from_columns::<NR>(&operands.b, depths, columns, packed_b),
            };
            let panels = &packed_b[..used];
            for row in (0..out.rows).step_by(MC) {
                let rows = (row, MC.min(out.rows - row));
                let block = Block::<NR> { panels, depths, column, rows, load };
                let strips = (first + row, rows.1);
                // With few panels a packed copy would cost more than it saves.
                let few = columns.1 <= 2 * NR;
                match operands.transpose_a {
                    Transpose::No if few => block.of_rows(kernel, &operands.a, first, out),
                    Transpose::No => {
                        pack::from_columns::<MR>(&operands.a, depths, strips, packed_a);
                        block.of_columns(kernel, packed_a, out);
                    }
                    Transpose::Yes => {
                        pack::from_rows::<MR>(&operands.a, depths, strips, packed_a);
                        block.of_columns(kernel, packed_a, out);
                    }
                }
            }
        }
    }
}

/// One packed block of the second operand against one block of rows of the first.
struct Block<'a, const NR: usize> {
    /// Panels `[kc][NR]`, one after the other.
    panels: &'a [f32],
    /// First `k` and count.
    depths: (usize, usize),
    /// First column of the output.
    column: usize,
    /// First row of the output and count.
    rows: (usize, usize),
    /// Whether chains begin with what is in the output.
    load: bool,
}

impl<const NR: usize> Block<'_, NR> {
    /// With the first operand read where it lies.
    fn of_rows<const MR: usize>(
        &self,
        kernel: impl Kernel<MR, NR>,
        a: &Mat<&[f32]>,
        first: usize,
        out: &mut Mat<&mut [f32]>,
    ) {
        self.tiles::<MR>(out, |strip, panel, c, stride| {
            let rows = std::array::from_fn(|i| {
                // The last strip repeats its last row; the copies are thrown away.
                let row = first + (strip + i).min(self.rows.0 + self.rows.1 - 1);
                &a.data[row * a.stride + self.depths.0..][..self.depths.1]
            });
            kernel.rows(rows, panel, c, stride, self.load);
        });
    }

    /// With the first operand packed in strips `[kc][MR]`.
    fn of_columns<const MR: usize>(
        &self,
        kernel: impl Kernel<MR, NR>,
        strips: &[f32],
        out: &mut Mat<&mut [f32]>,
    ) {
        let kc = self.depths.1;
        self.tiles::<MR>(out, |strip, panel, c, stride| {
            let at = (strip - self.rows.0) * kc;
            kernel.columns(&strips[at..], MR, panel, c, stride, self.load);
        });
    }

    /// Calls `tile(first row, panel, outputs, stride)` for every tile of the block: a panel stays
    /// in L1 while the strips pass. Tiles that stick out go through a whole tile on the stack.
    fn tiles<const MR: usize>(
        &self,
        out: &mut Mat<&mut [f32]>,
        tile: impl Fn(usize, Panel<'_>, &mut [f32], usize),
    ) {
        let end = self.rows.0 + self.rows.1;
        for (p, panel) in self.panels.chunks_exact(self.depths.1 * NR).enumerate() {
            let panel = Panel::packed::<NR>(panel);
            let column = self.column + p * NR;
            let width = NR.min(out.cols - column);
            for strip in (self.rows.0..end).step_by(MR) {
                let height = MR.min(end - strip);
                let at = strip * out.stride + column;
                if height == MR && width == NR {
                    tile(strip, panel, &mut out.data[at..], out.stride);
                    continue;
                }
                let mut whole = [[0.0f32; NR]; MR];
                if self.load {
                    for (i, row) in whole.iter_mut().take(height).enumerate() {
                        row[..width].copy_from_slice(&out.data[at + i * out.stride..][..width]);
                    }
                }
                tile(strip, panel, whole.as_flattened_mut(), NR);
                for (i, row) in whole.iter().take(height).enumerate() {
                    out.data[at + i * out.stride..][..width].copy_from_slice(&row[..width]);
                }
            }
        }
    }
}
