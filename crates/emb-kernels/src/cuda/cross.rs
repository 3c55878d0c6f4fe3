//! The element-wise part of a cross layer: kernels of `cuda/cross.cu`.

use super::Cuda;
use super::pointwise::{column_sums, over_elements};
use crate::shape::{self, names, same};
use crate::{Mat, Result};
use emb_cuda::{View, ViewMut};

pub(super) fn cross(
    cuda: &mut Cuda,
    x0: Mat<View<'_, f32>>,
    u: Mat<View<'_, f32>>,
    bias: View<'_, f32>,
    x: Mat<View<'_, f32>>,
    out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    let (rows, cols) = (x0.rows, x0.cols);
    shape::inside("cross", names!("x0"), &x0)?;
    shape::mat("cross", names!("u"), &u, rows, cols)?;
    same("cross", "elements of bias", cols, bias.len())?;
    shape::mat("cross", names!("x"), &x, rows, cols)?;
    shape::mat("cross", names!("out"), &out, rows, cols)?;
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    let kernel = cuda.stream.device().kernel("emb_cross")?;
    let args = (
        x0.data,
        x0.stride as u64,
        u.data,
        u.stride as u64,
        bias,
        x.data,
        x.stride as u64,
        out.data,
        out.stride as u64,
        rows as u64,
        cols as u64,
    );
    // SAFETY: what the kernel takes; the matrices lie inside their views, by the checks above.
    unsafe { cuda.stream.launch(kernel, over_elements(rows, cols), args) }?;
    Ok(())
}

pub(super) fn cross_backward(
    cuda: &mut Cuda,
    x0: Mat<View<'_, f32>>,
    u: Mat<View<'_, f32>>,
    bias: View<'_, f32>,
    gradient: Mat<View<'_, f32>>,
    u_gradient: Mat<ViewMut<'_, f32>>,
    x0_gradient: Mat<ViewMut<'_, f32>>,
    bias_gradient: ViewMut<'_, f32>,
) -> Result<()> {
    let (operation, rows, cols) = ("cross_backward", x0.rows, x0.cols);
    shape::inside(operation, names!("x0"), &x0)?;
    shape::mat(operation, names!("u"), &u, rows, cols)?;
    same(operation, "elements of bias", cols, bias.len())?;
    shape::mat(operation, names!("gradient"), &gradient, rows, cols)?;
    shape::mat(operation, names!("u_gradient"), &u_gradient, rows, cols)?;
    shape::mat(operation, names!("x0_gradient"), &x0_gradient, rows, cols)?;
    same(operation, "elements of bias_gradient", cols, bias_gradient.len())?;
    let Cuda { stream, dense, .. } = cuda;
    let kernel = stream.device().kernel("emb_cross_backward")?;
    let size = (rows as u64, cols as u64);
    column_sums(stream, &mut dense.sums, size, bias_gradient, |shape, sums| {
        let args = (
            x0.data,
            x0.stride as u64,
            u.data,
            u.stride as u64,
            bias,
            gradient.data,
            gradient.stride as u64,
            u_gradient.data,
            u_gradient.stride as u64,
            x0_gradient.data,
            x0_gradient.stride as u64,
            size.0,
            size.1,
            sums,
        );
        // SAFETY: what the kernel takes; matrices and sums lie inside their views.
        unsafe { stream.launch(kernel, shape, args) }?;
        Ok(())
    })
}
