//! From what a person wrote ([`Options`]) to what runs ([`Config`]).
//!
//! ```text
//! command line --+
//!                +-> Options --resolve--> Config: tables, features, shape, optimizers, schedule
//! TOML file -----+
//! ```
//! A [`Config`] exists only when it is consistent: options that contradict each other, or that
//! would have no effect, are refused by name.

#[cfg(feature = "data")]
pub mod choices;
mod device;
mod file;
pub mod nearest;
mod optimizers;
mod options;
mod over;
mod placing;
mod planner;
mod ranks;
mod replicas;
mod resolve;
mod table_options;
mod tables;
mod wire;
mod words;
mod workload;

pub use device::Device;
#[cfg(feature = "cli")]
pub(crate) use file::{did_you_mean, json_file, toml_file};
pub use optimizers::Optimizers;
#[cfg(feature = "cli")]
pub(crate) use optimizers::state_bytes_of;
pub use options::Options;
#[cfg(feature = "data")]
pub(crate) use placing::is_planned;
pub use ranks::Ranks;
#[cfg(feature = "data")]
pub(crate) use ranks::timeout;
pub use resolve::{Config, Length, Origin};
pub use table_options::{FeatureOptions, InitOptions, TableOptions};
pub use tables::{FeaturePlan, TablePlan, Tables};
pub use wire::WireOptions;
pub use words::{
    BadRows, DecayKind, DenseKind, DeviceKind, IdPolicy, IdWireKind, LayoutKind, ModelKind,
    OptimizerKind, PlacementKind, PoolingKind, PrecisionKind, RoundingMode, ScalingKind, SyncKind,
    TransportKind, WeightType,
};

/// Dense columns of Criteo data and of synthetic data.
pub const DENSE_COLUMNS: usize = 13;

/// Sparse columns of Criteo data, `C1` to `C26`.
pub const SPARSE_COLUMNS: usize = 26;
