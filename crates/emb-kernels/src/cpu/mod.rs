//! The CPU backend.

pub mod gemm;
pub(crate) mod shape;
