#![doc = include_str!("../README.md")]
//!
//! # Code map
//!
//! - [`Backend`] is the seam; [`Jagged`] batches, [`FeatureMap`], [`TableSpec`] and [`Mat`] are its
//!   vocabulary.
//! - [`cpu`] is the CPU backend, `cuda` (a feature) that of NVIDIA GPUs; [`host`] is what a rank does around its collectives.
//! - [`reference`](mod@reference) is the specification, `conformance` (a feature) the suite against it.

mod backend;
mod batch_checks;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
mod features;
pub mod host;
mod jagged;
mod mat;
mod operands;
pub mod reference;
mod rng;
mod row_gradients;
mod rule_checks;
mod rules;
mod shape;
mod spec;
mod table_checks;
mod window;

pub use backend::Backend;
pub use cpu::{Cpu, CpuOptions};
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, CudaOptions, Precision};
pub use error::Error;
pub use features::{Feature, FeatureMap, Pooling};
pub use jagged::{Jagged, JaggedRef, offsets_from_lengths};
pub use mat::{Mat, Transpose};
pub use operands::{
    Accumulate, Activation, Bucketized, Gradients, JaggedView, PairOrder, RowMapView, RowTransfer,
    Scalar, Unique,
};
pub use rng::normal;
pub use row_gradients::RowGradients;
pub use spec::{Dtype, Init, Pages, Rounding, TableSpec};
pub use window::{RowNumbers, Window};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
