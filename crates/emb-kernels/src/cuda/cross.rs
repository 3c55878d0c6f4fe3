//! The cross layer.

use super::Cuda;
use crate::{Mat, Result};
use emb_cuda::{View, ViewMut};

pub(super) fn cross(
    _cuda: &mut Cuda,
    _x0: Mat<View<'_, f32>>,
    _u: Mat<View<'_, f32>>,
    _bias: View<'_, f32>,
    _x: Mat<View<'_, f32>>,
    _out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("cross", String::new()))
}

pub(super) fn cross_backward(
    _cuda: &mut Cuda,
    _x0: Mat<View<'_, f32>>,
    _u: Mat<View<'_, f32>>,
    _bias: View<'_, f32>,
    _gradient: Mat<View<'_, f32>>,
    _u_gradient: Mat<ViewMut<'_, f32>>,
    _x0_gradient: Mat<ViewMut<'_, f32>>,
    _bias_gradient: ViewMut<'_, f32>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("cross_backward", String::new()))
}
