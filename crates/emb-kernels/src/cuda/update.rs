//! Backward and update in one.

use super::{Cuda, CudaTables};
use crate::{FeatureMap, Gradients, JaggedView, Result};
use emb_optim::Rule;

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {}

pub(super) fn scatter_update(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _map: &FeatureMap,
    _batch: JaggedView<'_, Cuda>,
    _gradients: &Gradients<'_, '_, Cuda>,
    _rules: &[Rule],
    _step: u64,
) -> Result<()> {
    Err(crate::Error::NotAvailable("scatter_update", String::new()))
}
