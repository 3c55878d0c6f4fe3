//! The CPU backend.

pub mod gemm;
pub mod interaction;
pub(crate) mod shape;
#[cfg(test)]
mod testing;
