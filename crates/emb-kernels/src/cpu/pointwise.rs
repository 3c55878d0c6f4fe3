//! Bias, activation and column sums: one pass over the elements, limited by memory.

use super::shape::{self, names, over_rows, reborrow, row, row_mut, same};
use crate::{Activation, Mat, Result};

#[cfg(test)]
mod tests;

/// Rows of a column sum that are added before they join the total.
const BLOCK: usize = 256;

/// Columns that are summed together, in registers.
const TILE: usize = 64;

/// See [`Backend::bias_activation`](crate::Backend::bias_activation). A NaN stays a NaN, so that a
/// run that diverges shows it.
///
/// # Errors
/// A bias of another length than the columns; nothing has been written then.
pub(crate) fn bias_activation(
    threads: usize,
    x: Mat<&mut [f32]>,
    bias: &[f32],
    activation: Activation,
) -> Result<()> {
    shape::inside("bias_activation", names!("x"), &x)?;
    same("bias_activation", "elements of bias", x.cols, bias.len())?;
    over_rows(threads, 1, x, &|_, mut x| {
        for i in 0..x.rows {
            let x = row_mut(&mut x, i).iter_mut().zip(bias);
            match activation {
                Activation::Linear => x.for_each(|(x, b)| *x += b),
                Activation::Relu => x.for_each(|(x, b)| {
                    let sum = *x + b;
                    *x = if sum < 0.0 { 0.0 } else { sum };
                }),
            }
        }
    });
    Ok(())
}

/// See [`Backend::bias_activation_backward`](crate::Backend::bias_activation_backward). The column
/// sums add rows in blocks of 256, whatever the number of threads.
///
/// # Errors
/// Shapes that differ; nothing has been written then.
pub(crate) fn bias_activation_backward(
    threads: usize,
    y: Mat<&[f32]>,
    activation: Activation,
    mut gradient: Mat<&mut [f32]>,
    bias_gradient: &mut [f32],
) -> Result<()> {
    let operation = "bias_activation_backward";
    shape::inside(operation, names!("y"), &y)?;
    shape::mat(operation, names!("gradient"), &gradient, y.rows, y.cols)?;
    same(operation, "elements of bias_gradient", y.cols, bias_gradient.len())?;
    if activation == Activation::Relu {
        over_rows(threads, 1, reborrow(&mut gradient), &|first, mut gradient| {
            for i in 0..gradient.rows {
                for (g, &y) in row_mut(&mut gradient, i).iter_mut().zip(row(&y, first + i)) {
                    *g = if y > 0.0 { *g } else { 0.0 };
                }
            }
        });
    }
    let Mat { data, rows, cols, stride } = gradient;
    column_sums(threads, Mat::with_stride(data, rows, cols, stride), bias_gradient);
    Ok(())
}

/// `out[j]` = sum of column `j`: rows are added in blocks of 256, the blocks in order. Threads
/// share out the columns, so the order does not depend on them.
pub(crate) fn column_sums(threads: usize, mat: Mat<&[f32]>, out: &mut [f32]) {
    fn part(threads: usize, mat: Mat<&[f32]>, first: usize, out: &mut [f32]) {
        let tiles = out.len().div_ceil(TILE);
        let left = threads / 2;
        let at = (tiles * left).checked_div(threads).unwrap_or(0) * TILE;
        if threads <= 1 || at == 0 {
            for (t, out) in out.chunks_mut(TILE).enumerate() {
                tile(&mat, first + t * TILE, out);
            }
        } else {
            let (head, tail) = out.split_at_mut(at);
            rayon::join(
                || part(left, mat, first, head),
                || part(threads - left, mat, first + at, tail),
            );
        }
    }
    part(threads, mat, 0, out);
}

/// Sums of columns `first..first + out.len()`.
fn tile(mat: &Mat<&[f32]>, first: usize, out: &mut [f32]) {
    let mut total = [0.0f32; TILE];
    for block in (0..mat.rows).step_by(BLOCK) {
        let mut sum = [0.0f32; TILE];
        for i in block..mat.rows.min(block + BLOCK) {
            let from = &row(mat, i)[first..][..out.len()];
            if let Ok(from) = <&[f32; TILE]>::try_from(from) {
                sum.iter_mut().zip(from).for_each(|(sum, x)| *sum += x);
            } else {
                sum.iter_mut().zip(from).for_each(|(sum, x)| *sum += x);
            }
        }
        total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
    }
    out.copy_from_slice(&total[..out.len()]);
}

/// See [`Backend::fill`](crate::Backend::fill).
///
/// # Errors
/// A view shorter than its shape.
pub(crate) fn fill(mut x: Mat<&mut [f32]>, value: f32) -> Result<()> {
    shape::inside("fill", names!("x"), &x)?;
    for i in 0..x.rows {
        row_mut(&mut x, i).fill(value);
    }
    Ok(())
}

/// See [`Backend::add`](crate::Backend::add).
///
/// # Errors
/// Shapes that differ; nothing has been written then.
pub(crate) fn add(threads: usize, x: Mat<&[f32]>, out: Mat<&mut [f32]>) -> Result<()> {
    shape::inside("add", names!("x"), &x)?;
    shape::mat("add", names!("out"), &out, x.rows, x.cols)?;
    over_rows(threads, 1, out, &|first, mut out| {
        for i in 0..out.rows {
            let pairs = row_mut(&mut out, i).iter_mut().zip(row(&x, first + i));
            pairs.for_each(|(sum, x)| *sum += x);
        }
    });
    Ok(())
}
