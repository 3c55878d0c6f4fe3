//! Pooled look-ups.

use super::{Cuda, CudaTables};
use crate::{FeatureMap, JaggedView, Mat, Result};
use emb_cuda::ViewMut;

pub(super) fn pool(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _map: &FeatureMap,
    _batch: JaggedView<'_, Cuda>,
    _out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("pool", String::new()))
}
