//! The CPU backend.

pub mod cross;
pub mod dense;
pub mod gemm;
pub mod interaction;
pub mod loss;
pub mod pointwise;
pub(crate) mod shape;
#[cfg(test)]
mod testing;
