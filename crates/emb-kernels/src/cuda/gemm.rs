//! Matrix products.

use super::Cuda;
use crate::{Accumulate, Mat, Result, Transpose};
use emb_cuda::{View, ViewMut};

/// The library of matrix products, with its workspace.
#[derive(Debug)]
pub(super) struct Gemm {}

impl Gemm {
    pub(super) fn new(_stream: &emb_cuda::Stream, _precision: super::Precision) -> Result<Self> {
        Ok(Self {})
    }
}

pub(super) fn gemm(
    _cuda: &mut Cuda,
    _a: Mat<View<'_, f32>>,
    _transpose_a: Transpose,
    _b: Mat<View<'_, f32>>,
    _transpose_b: Transpose,
    _accumulate: Accumulate,
    _out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("gemm", String::new()))
}
