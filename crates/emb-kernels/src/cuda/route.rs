//! Routing from plain arrays.

use super::Cuda;
use crate::{Bucketized, JaggedRef, Mat, Result, RowMapView, Unique};
use emb_cuda::{View, ViewMut};

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {}

pub(super) fn bucketize(
    _cuda: &mut Cuda,
    _batch: JaggedRef<'_>,
    _maps: &[RowMapView<'_>],
    _out: &mut Bucketized<'_>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("bucketize", String::new()))
}

pub(super) fn unique(_cuda: &mut Cuda, _ids: &[i64], _out: &mut Unique<'_>) -> Result<usize> {
    Err(crate::Error::NotAvailable("unique", String::new()))
}

pub(super) fn segment_sum(
    _cuda: &mut Cuda,
    _values: Mat<View<'_, f32>>,
    _inverse: &[u32],
    _out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("segment_sum", String::new()))
}
