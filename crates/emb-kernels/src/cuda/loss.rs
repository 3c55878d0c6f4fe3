//! The loss.

use super::Cuda;
use crate::Result;
use emb_cuda::{View, ViewMut};

pub(super) fn bce_with_logits(
    _cuda: &mut Cuda,
    _logits: View<'_, f32>,
    _labels: View<'_, f32>,
    _scale: f32,
    _gradient: ViewMut<'_, f32>,
) -> Result<f64> {
    Err(crate::Error::NotAvailable("bce_with_logits", String::new()))
}
