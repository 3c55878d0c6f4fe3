//! Bias, activation, column sums, fill, add: kernels of `cuda/pointwise.cu`.

use super::Cuda;
use crate::shape::{self, names, same};
use crate::{Activation, Mat, Result};
use emb_cuda::{Kept, Shape, Stream, View, ViewMut};

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Sums of 256 rows.
    pub(super) sums: Kept<f32>,
    /// Sums of the losses of 256 samples, and of all.
    pub(super) losses: Kept<f64>,
}

/// Threads of a block of the element-wise kernels.
const THREADS: u64 = 256;

/// Most blocks of an element-wise launch: eight of them fill a multiprocessor, and 512
/// multiprocessors are more than any device has. Threads walk on from there.
const BLOCKS: u64 = 4096;

/// Rows of one sum and columns of a block, `kSumRows` and `kSumCols` of `column_sums.cuh`.
const SUM_ROWS: u64 = 256;
const SUM_COLS: u64 = 32;

/// Most blocks of a launch in its second direction.
const SECOND: u64 = 65_535;

pub(super) fn bias_activation(
    cuda: &mut Cuda,
    x: Mat<ViewMut<'_, f32>>,
    bias: View<'_, f32>,
    activation: Activation,
) -> Result<()> {
    shape::inside("bias_activation", names!("x"), &x)?;
    same("bias_activation", "elements of bias", x.cols, bias.len())?;
    if x.extent() == 0 {
        return Ok(());
    }
    let kernel = cuda.stream.device().kernel("emb_bias_activation")?;
    let shape = over_elements(x.rows, x.cols);
    let kind = u32::from(activation == Activation::Relu);
    let (stride, rows, cols) = (x.stride as u64, x.rows as u64, x.cols as u64);
    // SAFETY: what the kernel takes; the matrix lies inside its view, by the checks above.
    unsafe { cuda.stream.launch(kernel, shape, (x.data, stride, rows, cols, bias, kind)) }?;
    Ok(())
}

pub(super) fn bias_activation_backward(
    cuda: &mut Cuda,
    y: Mat<View<'_, f32>>,
    activation: Activation,
    gradient: Mat<ViewMut<'_, f32>>,
    bias_gradient: ViewMut<'_, f32>,
) -> Result<()> {
    let operation = "bias_activation_backward";
    shape::inside(operation, names!("y"), &y)?;
    shape::mat(operation, names!("gradient"), &gradient, y.rows, y.cols)?;
    same(operation, "elements of bias_gradient", y.cols, bias_gradient.len())?;
    let Cuda { stream, dense, .. } = cuda;
    let (rows, cols) = (y.rows as u64, y.cols as u64);
    let relu = activation == Activation::Relu;
    let kernel = if relu { "emb_relu_backward" } else { "emb_column_sums" };
    let kernel = stream.device().kernel(kernel)?;
    let strides = (y.stride as u64, gradient.stride as u64);
    column_sums(stream, &mut dense.sums, (rows, cols), bias_gradient, |shape, sums| {
        if relu {
            let args = (y.data, strides.0, gradient.data, strides.1, rows, cols, sums);
            // SAFETY: what the kernel takes; matrices and sums lie inside their views.
            unsafe { stream.launch(kernel, shape, args) }?;
        } else {
            let args = (gradient.data, strides.1, rows, cols, sums);
            // SAFETY: as above.
            unsafe { stream.launch(kernel, shape, args) }?;
        }
        Ok(())
    })
}

pub(super) fn fill(cuda: &mut Cuda, x: Mat<ViewMut<'_, f32>>, value: f32) -> Result<()> {
    shape::inside("fill", names!("x"), &x)?;
    if x.extent() == 0 {
        return Ok(());
    }
    let (rows, cols) = flat(x.rows, x.cols, &[x.stride]);
    let kernel = cuda.stream.device().kernel("emb_fill")?;
    let args = (x.data, x.stride as u64, rows as u64, cols as u64, value);
    // SAFETY: what the kernel takes; the matrix lies inside its view.
    unsafe { cuda.stream.launch(kernel, over_elements(rows, cols), args) }?;
    Ok(())
}

pub(super) fn add(
    cuda: &mut Cuda,
    x: Mat<View<'_, f32>>,
    out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    shape::inside("add", names!("x"), &x)?;
    shape::mat("add", names!("out"), &out, x.rows, x.cols)?;
    if x.extent() == 0 {
        return Ok(());
    }
    let (rows, cols) = flat(x.rows, x.cols, &[x.stride, out.stride]);
    let kernel = cuda.stream.device().kernel("emb_add")?;
    let strides = (x.stride as u64, out.stride as u64);
    let args = (x.data, strides.0, out.data, strides.1, rows as u64, cols as u64);
    // SAFETY: what the kernel takes; the matrices lie inside their views.
    unsafe { cuda.stream.launch(kernel, over_elements(rows, cols), args) }?;
    Ok(())
}

/// Sums columns in two stages: `first` launches the kernel that sums 256 rows at a time, into
/// `[ceil(rows / 256), cols]`, which is `out` itself where that is one row.
pub(super) fn column_sums(
    stream: &Stream,
    sums: &mut Kept<f32>,
    (rows, cols): (u64, u64),
    out: ViewMut<'_, f32>,
    first: impl FnOnce(Shape, ViewMut<'_, f32>) -> Result<()>,
) -> Result<()> {
    if rows == 0 || cols == 0 {
        return Ok(stream.clear(out)?);
    }
    let (chunks, tiles) = (rows.div_ceil(SUM_ROWS), cols.div_ceil(SUM_COLS));
    let grid = [chunks.min(i32::MAX as u64) as u32, tiles.min(SECOND) as u32, 1];
    let shape = Shape { grid, block: [SUM_COLS as u32, 8, 1], shared: 0 };
    if chunks == 1 {
        return first(shape, out);
    }
    let len = (chunks * cols) as usize;
    let sums = sums.room(stream, len)?;
    first(shape, sums.view_mut(0..len))?;
    let kernel = stream.device().kernel("emb_column_totals")?;
    let shape = Shape { grid: [grid[1], 1, 1], ..shape };
    // SAFETY: what the kernel takes; `sums` was written by the launch before, `out` has `cols`.
    unsafe { stream.launch(kernel, shape, (sums.view(0..len), chunks, cols, out)) }?;
    Ok(())
}

/// Blocks and threads for the kernels that walk over `[rows, cols]`, four columns a thread.
pub(super) fn over_elements(rows: usize, cols: usize) -> Shape {
    let (rows, fours) = (rows as u64, (cols as u64).div_ceil(4).max(1));
    let x = fours.next_power_of_two().min(THREADS);
    let y = THREADS / x;
    let across = fours.div_ceil(x).min(BLOCKS);
    let down = rows.div_ceil(y).clamp(1, (BLOCKS / across).max(1));
    Shape { grid: [across as u32, down as u32, 1], block: [x as u32, y as u32, 1], shared: 0 }
}

/// One long row where rows follow each other without gaps.
fn flat(rows: usize, cols: usize, strides: &[usize]) -> (usize, usize) {
    if strides.iter().all(|&stride| stride == cols) { (1, rows * cols) } else { (rows, cols) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_have_256_threads_and_a_bounded_grid() {
        for rows in [1, 2, 255, 4096, 1 << 20] {
            for cols in [1, 3, 64, 65, 1000, 1 << 22] {
                let Shape { grid: [x, y, _], block: [across, down, _], .. } =
                    over_elements(rows, cols);
                assert_eq!(u64::from(across * down), THREADS);
                assert!(u64::from(x) * u64::from(y) <= BLOCKS && x * y > 0, "{rows} {cols}");
            }
        }
    }

    #[test]
    fn rows_without_gaps_are_one_row() {
        assert_eq!(flat(5, 3, &[3, 3]), (1, 15));
        assert_eq!(flat(5, 3, &[3, 4]), (5, 3));
    }
}
