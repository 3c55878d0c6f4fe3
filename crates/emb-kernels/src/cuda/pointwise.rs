//! Element by element.

use super::Cuda;
use crate::{Activation, Mat, Result};
use emb_cuda::{View, ViewMut};

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {}

pub(super) fn bias_activation(
    _cuda: &mut Cuda,
    _x: Mat<ViewMut<'_, f32>>,
    _bias: View<'_, f32>,
    _activation: Activation,
) -> Result<()> {
    Err(crate::Error::NotAvailable("bias_activation", String::new()))
}

pub(super) fn bias_activation_backward(
    _cuda: &mut Cuda,
    _y: Mat<View<'_, f32>>,
    _activation: Activation,
    _gradient: Mat<ViewMut<'_, f32>>,
    _bias_gradient: ViewMut<'_, f32>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("bias_activation_backward", String::new()))
}

pub(super) fn fill(_cuda: &mut Cuda, _x: Mat<ViewMut<'_, f32>>, _value: f32) -> Result<()> {
    Err(crate::Error::NotAvailable("fill", String::new()))
}

pub(super) fn add(
    _cuda: &mut Cuda,
    _x: Mat<View<'_, f32>>,
    _out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("add", String::new()))
}
