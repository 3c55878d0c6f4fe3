//! An update in two phases.

use super::{Cuda, CudaTables};
use crate::{FeatureMap, Gradients, JaggedView, Result, RowGradients};
use emb_optim::Rule;

pub(super) fn row_gradients(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _map: &FeatureMap,
    _batch: JaggedView<'_, Cuda>,
    _gradients: &Gradients<'_, '_, Cuda>,
    _rules: &[Rule],
    _out: &mut RowGradients,
) -> Result<()> {
    Err(crate::Error::NotAvailable("row_gradients", String::new()))
}

pub(super) fn apply(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _gradients: &RowGradients,
    _totals: &[&[f64]],
    _rules: &[Rule],
    _step: u64,
) -> Result<()> {
    Err(crate::Error::NotAvailable("apply", String::new()))
}
