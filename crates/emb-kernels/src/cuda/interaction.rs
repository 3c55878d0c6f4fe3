//! Pairwise dot products.

use super::Cuda;
use crate::{Mat, PairOrder, Result};
use emb_cuda::{View, ViewMut};

pub(super) fn interact(
    _cuda: &mut Cuda,
    _x: Mat<View<'_, f32>>,
    _features: usize,
    _out: Mat<ViewMut<'_, f32>>,
    _order: PairOrder,
) -> Result<()> {
    Err(crate::Error::NotAvailable("interact", String::new()))
}

pub(super) fn interact_backward(
    _cuda: &mut Cuda,
    _x: Mat<View<'_, f32>>,
    _features: usize,
    _gradient: Mat<View<'_, f32>>,
    _x_gradient: Mat<ViewMut<'_, f32>>,
    _order: PairOrder,
) -> Result<()> {
    Err(crate::Error::NotAvailable("interact_backward", String::new()))
}
