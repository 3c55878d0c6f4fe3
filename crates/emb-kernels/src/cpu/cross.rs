//! The element-wise part of a `DCNv2` cross layer. Multiplications and additions are not fused, so
//! every instruction set gives the same bits.

use super::pointwise::column_sums;
use super::shape::{self, names, over_rows, over_rows2, reborrow, row, row_mut, same};
use crate::{Mat, Result};

#[cfg(test)]
mod tests;

/// See [`Backend::cross`](crate::Backend::cross).
///
/// # Errors
/// Shapes that differ from that of `x0`; nothing has been written then.
pub(crate) fn cross(
    threads: usize,
    x0: Mat<&[f32]>,
    u: Mat<&[f32]>,
    bias: &[f32],
    x: Mat<&[f32]>,
    out: Mat<&mut [f32]>,
) -> Result<()> {
    let (rows, cols) = (x0.rows, x0.cols);
    shape::inside("cross", names!("x0"), &x0)?;
    shape::mat("cross", names!("u"), &u, rows, cols)?;
    same("cross", "elements of bias", cols, bias.len())?;
    shape::mat("cross", names!("x"), &x, rows, cols)?;
    shape::mat("cross", names!("out"), &out, rows, cols)?;
    over_rows(threads, 1, out, &|first, mut out| {
        for i in 0..out.rows {
            let inputs = row(&x0, first + i).iter().zip(row(&u, first + i));
            let inputs = inputs.zip(bias).zip(row(&x, first + i));
            for (out, (((x0, u), b), x)) in row_mut(&mut out, i).iter_mut().zip(inputs) {
                *out = x0 * (u + b) + x;
            }
        }
    });
    Ok(())
}

/// See [`Backend::cross_backward`](crate::Backend::cross_backward). The column sums add rows in
/// blocks of 256, whatever the number of threads.
///
/// # Errors
/// Shapes that differ from that of `x0`; nothing has been written then.
pub(crate) fn cross_backward(
    threads: usize,
    x0: Mat<&[f32]>,
    u: Mat<&[f32]>,
    bias: &[f32],
    gradient: Mat<&[f32]>,
    mut u_gradient: Mat<&mut [f32]>,
    x0_gradient: Mat<&mut [f32]>,
    bias_gradient: &mut [f32],
) -> Result<()> {
    let (operation, rows, cols) = ("cross_backward", x0.rows, x0.cols);
    shape::inside(operation, names!("x0"), &x0)?;
    shape::mat(operation, names!("u"), &u, rows, cols)?;
    same(operation, "elements of bias", cols, bias.len())?;
    shape::mat(operation, names!("gradient"), &gradient, rows, cols)?;
    shape::mat(operation, names!("u_gradient"), &u_gradient, rows, cols)?;
    shape::mat(operation, names!("x0_gradient"), &x0_gradient, rows, cols)?;
    same(operation, "elements of bias_gradient", cols, bias_gradient.len())?;
    over_rows2(threads, reborrow(&mut u_gradient), x0_gradient, &|first, mut of_u, mut of_x0| {
        for i in 0..of_u.rows {
            let inputs = row(&x0, first + i).iter().zip(row(&u, first + i)).zip(bias);
            let inputs = inputs.zip(row(&gradient, first + i));
            let outputs = row_mut(&mut of_u, i).iter_mut().zip(row_mut(&mut of_x0, i));
            for ((of_u, of_x0), (((x0, u), b), g)) in outputs.zip(inputs) {
                *of_u = g * x0;
                *of_x0 += g * (u + b);
            }
        }
    });
    let Mat { data, stride, .. } = u_gradient;
    column_sums(threads, Mat::with_stride(data, rows, cols, stride), bias_gradient);
    Ok(())
}
