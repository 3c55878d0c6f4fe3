//! Gradients of per-sample weights.

use super::{Cuda, CudaTables};
use crate::{FeatureMap, JaggedView, Mat, Result};
use emb_cuda::{View, ViewMut};

pub(super) fn weight_gradients(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _map: &FeatureMap,
    _batch: JaggedView<'_, Cuda>,
    _pooled_gradient: Mat<View<'_, f32>>,
    _out: ViewMut<'_, f32>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("weight_gradients", String::new()))
}
