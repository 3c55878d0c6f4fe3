//! Updates of dense parameters.

use super::Cuda;
use crate::Result;
use emb_cuda::{View, ViewMut};
use emb_optim::Rule;

pub(super) fn dense_update(
    _cuda: &mut Cuda,
    _rule: &Rule,
    _parameter: ViewMut<'_, f32>,
    _state: ViewMut<'_, f32>,
    _gradient: View<'_, f32>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("dense_update", String::new()))
}
