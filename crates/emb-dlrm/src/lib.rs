#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(feature = "cli")]
pub mod calibrate;
pub mod checkpoint;
pub mod config;
#[cfg(feature = "data")]
pub mod data;
mod device;
#[cfg(feature = "cli")]
pub mod doctor;
mod embeddings;
mod error;
pub mod launch;
pub mod metrics;
pub mod model;
#[cfg(feature = "cli")]
pub mod planning;
#[cfg(feature = "data")]
pub mod profile;
mod queue;
pub mod sharded;
#[cfg(feature = "data")]
pub mod sources;
pub mod train;

pub use embeddings::{EmbeddingBags, Embeddings};
pub use error::Error;
pub use model::{DeviceBatch, Dlrm};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
