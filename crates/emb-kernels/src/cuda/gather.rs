//! Look-ups without pooling.

use super::{Cuda, CudaTables};
use crate::{FeatureMap, JaggedView, Mat, Result};
use emb_cuda::ViewMut;

pub(super) fn gather(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _map: &FeatureMap,
    _feature: usize,
    _batch: JaggedView<'_, Cuda>,
    _out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("gather", String::new()))
}

pub(super) fn gather_all(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _map: &FeatureMap,
    _batch: JaggedView<'_, Cuda>,
    _out: ViewMut<'_, f32>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("gather_all", String::new()))
}
