//! The objects of cuBLASLt, each with an owner.

use crate::{Error, Result};
use emb_cuda::cudarc::cublaslt::result::{self, CublasError};
use emb_cuda::cudarc::cublaslt::sys;
use std::sync::OnceLock;

/// A failed call of the library.
pub(super) fn failed(call: &'static str) -> impl FnOnce(CublasError) -> Error {
    move |error| Error::Device(format!("{call}: {error}"))
}

/// Makes sure that the library can be called: the bindings panic where it is missing.
fn library() -> Result<()> {
    static LIBRARY: OnceLock<emb_cuda::Result<()>> = OnceLock::new();
    let names = || emb_cuda::cudarc::get_lib_name_candidates("cublasLt");
    let open = || emb_cuda::open_library("cuBLASLt (libcublasLt)", &names()).map(drop);
    Ok(LIBRARY.get_or_init(open).clone()?)
}

/// The library in one context.
#[derive(Debug)]
pub(super) struct Handle(pub(super) sys::cublasLtHandle_t);

// SAFETY: "The library is thread safe and its functions can be called from multiple host threads,
// even with the same handle" (cuBLAS documentation, 2.1.3).
unsafe impl Send for Handle {}

impl Handle {
    pub(super) fn new() -> Result<Self> {
        library()?;
        result::create_handle().map(Self).map_err(failed("cublasLtCreate"))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created once.
        let _ = unsafe { result::destroy_handle(self.0) };
    }
}

/// A matrix as the library sees it: column by column.
#[derive(Debug)]
pub(super) struct Layout(pub(super) sys::cublasLtMatrixLayout_t);

// SAFETY: as `Handle`; a description is memory of the host.
unsafe impl Send for Layout {}

impl Layout {
    /// `[rows, cols]` of `f32`, columns `stride` elements apart.
    pub(super) fn new(rows: usize, cols: usize, stride: usize) -> Result<Self> {
        let kind = sys::cudaDataType::CUDA_R_32F;
        result::create_matrix_layout(kind, rows as u64, cols as u64, stride as i64)
            .map(Self)
            .map_err(failed("cublasLtMatrixLayoutCreate"))
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: created once.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

/// What is computed.
#[derive(Debug)]
pub(super) struct Description(pub(super) sys::cublasLtMatmulDesc_t);

// SAFETY: as `Layout`.
unsafe impl Send for Description {}

impl Description {
    pub(super) fn new(compute: sys::cublasComputeType_t) -> Result<Self> {
        result::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F)
            .map(Self)
            .map_err(failed("cublasLtMatmulDescCreate"))
    }

    /// Sets one attribute.
    ///
    /// # Safety
    /// `T` is the type of the attribute.
    pub(super) unsafe fn set<T>(
        &self,
        attribute: sys::cublasLtMatmulDescAttributes_t,
        value: T,
    ) -> Result<()> {
        let from = (&raw const value).cast();
        // SAFETY: the caller's promise; the value is copied.
        unsafe { result::set_matmul_desc_attribute(self.0, attribute, from, size_of::<T>()) }
            .map_err(failed("cublasLtMatmulDescSetAttribute"))
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: created once.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

/// What a choice has to keep to.
#[derive(Debug)]
pub(super) struct Preference(pub(super) sys::cublasLtMatmulPreference_t);

impl Preference {
    pub(super) fn new() -> Result<Self> {
        result::create_matmul_pref().map(Self).map_err(failed("cublasLtMatmulPreferenceCreate"))
    }

    /// Sets one attribute.
    ///
    /// # Safety
    /// `T` is the type of the attribute.
    pub(super) unsafe fn set<T>(
        &self,
        attribute: sys::cublasLtMatmulPreferenceAttributes_t,
        value: T,
    ) -> Result<()> {
        let from = (&raw const value).cast();
        // SAFETY: the caller's promise; the value is copied.
        unsafe { result::set_matmul_pref_attribute(self.0, attribute, from, size_of::<T>()) }
            .map_err(failed("cublasLtMatmulPreferenceSetAttribute"))
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: created once.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}
