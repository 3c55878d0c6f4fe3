//! How a [`Cuda`](super::Cuda) backend computes.

/// Choices of a backend; they hold for all of its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaOptions {
    /// Of matrix products.
    pub precision: Precision,
}

impl CudaOptions {
    /// The same with another precision.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision }
    }
}

/// What the factors of matrix products are rounded to; sums are always `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// Nothing: products of `f32`.
    #[default]
    F32,
    /// `TF32`: 10 bits of fraction, the range of `f32`.
    Tf32,
    /// bfloat16: 7 bits of fraction, the range of `f32`.
    Bf16,
}
