//! Matrix products through cuBLASLt.
//!
//! The library counts columns first, our matrices are row by row: a row-major matrix is the
//! transpose of what it sees. So `out = op(a) * op(b)` is asked for as
//! `out^T = op(b)^T * op(a)^T`, without moving an element.
//!
//! What the library chooses for a shape is asked once and kept, with its descriptions: a step of
//! shapes that were seen allocates nothing on the host or the device. The choice depends on the
//! shape, the strides, the alignment of the operands and the device alone, and the choices it has
//! add in a fixed order: equal calls give equal bits. Where the library has nothing for a shape in
//! the precision asked for, it multiplies in `f32`.

mod library;
mod plan;

use super::{Cuda, Precision, pointwise};
use crate::shape::{self, names, same};
use crate::{Accumulate, Activation, Mat, Result, Transpose};
use emb_cuda::{Buffer, Stream, View, ViewMut};
use library::Handle;
use plan::{Epilogue, Key, Operand, Plans, Product};

/// The library of matrix products, with its workspace; loaded at the first product, so that a
/// machine without it still looks up and updates.
#[derive(Debug)]
pub(super) struct Gemm {
    precision: Precision,
    ready: Option<Ready>,
}

#[derive(Debug)]
struct Ready {
    // Before the handle, which outlives what was made with it.
    plans: Plans,
    handle: Handle,
    workspace: Buffer<u8>,
}

/// Bytes of workspace, as NVIDIA recommends (cuBLAS documentation, `cublasSetWorkspace`): 32 MiB
/// from Hopper on, 4 MiB before.
const WORKSPACE: [usize; 2] = [4 << 20, 32 << 20];

impl Gemm {
    pub(super) fn new(precision: Precision) -> Self {
        Self { precision, ready: None }
    }

    fn ready(&mut self, stream: &Stream) -> Result<(&mut Ready, Precision)> {
        if self.ready.is_none() {
            stream.device().bind()?;
            let handle = Handle::new()?;
            let hopper = stream.device().compute_capability()?.0 >= 9;
            let workspace = stream.uninit(WORKSPACE[usize::from(hopper)])?;
            self.ready = Some(Ready { plans: Plans::default(), handle, workspace });
        }
        Ok((self.ready.as_mut().expect("invariant: made above"), self.precision))
    }
}

pub(super) fn gemm(
    cuda: &mut Cuda,
    a: Mat<View<'_, f32>>,
    transpose_a: Transpose,
    b: Mat<View<'_, f32>>,
    transpose_b: Transpose,
    accumulate: Accumulate,
    out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    let (m, n, k) = check("gemm", (&a, transpose_a), (&b, transpose_b), &out)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    if k == 0 {
        return match accumulate {
            Accumulate::Replace => pointwise::fill(cuda, out, 0.0),
            Accumulate::Add => Ok(()),
        };
    }
    let key = key((m, n, k), (&a, transpose_a), (&b, transpose_b), &out, Epilogue::None);
    let keep = if accumulate == Accumulate::Add { 1.0 } else { 0.0 };
    multiply(cuda, key, a.data, b.data, out.data, None, keep)
}

impl Cuda {
    /// A layer in one launch: `out = activation(op(a) * op(b) + bias)`, with one bias a column.
    ///
    /// What [`gemm`](crate::Backend::gemm) and
    /// [`bias_activation`](crate::Backend::bias_activation) give one after the other, up to the
    /// rounding of the sum; the library's `ReLU` may give 0 for not-a-number.
    ///
    /// # Errors
    /// Shapes that do not multiply, a bias of another length than the columns, no library.
    pub fn linear(
        &mut self,
        a: Mat<View<'_, f32>>,
        transpose_a: Transpose,
        b: Mat<View<'_, f32>>,
        transpose_b: Transpose,
        bias: View<'_, f32>,
        activation: Activation,
        mut out: Mat<ViewMut<'_, f32>>,
    ) -> Result<()> {
        let (m, n, k) = check("linear", (&a, transpose_a), (&b, transpose_b), &out)?;
        same("linear", "elements of bias", n, bias.len())?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        if k == 0 {
            let (rows, cols, stride) = (out.rows, out.cols, out.stride);
            pointwise::fill(self, Mat::with_stride(out.data.reborrow(), rows, cols, stride), 0.0)?;
            return pointwise::bias_activation(self, out, bias, activation);
        }
        let epilogue = match activation {
            Activation::Linear => Epilogue::Bias,
            Activation::Relu => Epilogue::BiasRelu,
        };
        let key = key((m, n, k), (&a, transpose_a), (&b, transpose_b), &out, epilogue);
        multiply(self, key, a.data, b.data, out.data, Some(bias), 0.0)
    }
}

/// Checks the operands and returns `(m, n, k)`.
fn check(
    operation: &'static str,
    (a, transpose_a): (&Mat<View<'_, f32>>, Transpose),
    (b, transpose_b): (&Mat<View<'_, f32>>, Transpose),
    out: &Mat<ViewMut<'_, f32>>,
) -> Result<(usize, usize, usize)> {
    let (m, k) = oriented(a, transpose_a);
    let (inner, n) = oriented(b, transpose_b);
    same(operation, "inner dimension of b (that of a is expected)", k, inner)?;
    shape::mat(operation, names!("out"), out, m, n)?;
    shape::inside(operation, names!("a"), a)?;
    shape::inside(operation, names!("b"), b)?;
    Ok((m, n, k))
}

/// Rows and columns of `op(mat)`.
fn oriented<V>(mat: &Mat<V>, transpose: Transpose) -> (usize, usize) {
    match transpose {
        Transpose::No => (mat.rows, mat.cols),
        Transpose::Yes => (mat.cols, mat.rows),
    }
}

/// All that the choice of the library depends on. Its first factor is our second.
fn key(
    (m, n, k): (usize, usize, usize),
    (a, transpose_a): (&Mat<View<'_, f32>>, Transpose),
    (b, transpose_b): (&Mat<View<'_, f32>>, Transpose),
    out: &Mat<ViewMut<'_, f32>>,
    epilogue: Epilogue,
) -> Key {
    let yes = |transpose| transpose == Transpose::Yes;
    // The stride of a single row may be anything, and is never used.
    let stride = |stride: usize, cols: usize| stride.max(cols);
    Key {
        size: [n, m, k],
        first: Operand {
            transposed: yes(transpose_b),
            stride: stride(b.stride, b.cols),
            alignment: alignment(b.data.pointer()),
        },
        second: Operand {
            transposed: yes(transpose_a),
            stride: stride(a.stride, a.cols),
            alignment: alignment(a.data.pointer()),
        },
        out: Operand {
            transposed: false,
            stride: stride(out.stride, out.cols),
            alignment: alignment(out.data.pointer()),
        },
        epilogue,
    }
}

/// The largest power of two up to 256 that divides an address: more means nothing to the library.
fn alignment(pointer: u64) -> u32 {
    1 << pointer.trailing_zeros().min(8)
}

/// Queues one product.
fn multiply(
    cuda: &mut Cuda,
    key: Key,
    a: View<'_, f32>,
    b: View<'_, f32>,
    out: ViewMut<'_, f32>,
    bias: Option<View<'_, f32>>,
    keep: f32,
) -> Result<()> {
    let stream = &cuda.stream;
    let (Ready { plans, handle, workspace }, precision) = cuda.gemm.ready(stream)?;
    let plan = plans.of(handle, key, precision, workspace.len())?;
    let bias_home = bias.map_or(stream, View::home);
    let homes = [a.home(), b.home(), out.home(), bias_home];
    for home in homes {
        stream.after(home)?;
    }
    stream.device().bind()?;
    let product = Product {
        first: b.pointer(),
        second: a.pointer(),
        out: out.pointer(),
        bias: bias.map(View::pointer),
        keep,
        workspace: (workspace.whole().pointer(), workspace.len()),
        stream: stream.raw(),
    };
    // SAFETY: the matrices of the key, checked to lie inside their views, all ordered before and
    // after this stream's work.
    unsafe { plan.run(handle, &product) }?;
    for home in homes {
        home.after(stream)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::alignment;

    #[test]
    fn alignment_is_a_power_of_two_up_to_256() {
        assert_eq!([4, 8, 48, 256, 4096, 4100].map(alignment), [4, 8, 16, 256, 256, 4]);
    }
}
