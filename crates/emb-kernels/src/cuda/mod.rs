//! The CUDA backend: [`Cuda`].
//!
//! One value is one stream of a device. Operations are queued and return; what comes back to the
//! host (downloads, losses, counts, refused ids) waits for the work before it. Kernels are those of
//! `cuda/`, each with its launch shape and bytes at its head; a file here an operation, as on the
//! CPU.
//!
//! ```no_run
//! use emb_kernels::{Cuda, CudaOptions};
//!
//! let device = emb_cuda::Device::open(0)?;
//! let backend = Cuda::new(&device, CudaOptions::default())?;
//! # let _ = backend;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod columns;
mod cross;
mod dense;
mod descriptors;
mod foreseen;
mod gather;
mod gemm;
mod graph;
mod ids;
mod init;
mod interaction;
mod keys;
mod loss;
mod options;
mod own_rule;
mod pointwise;
mod pool;
mod records;
mod route;
mod rows;
mod rules;
mod sort;
mod table;
mod update;
mod weights;

pub use backend::Cuda;
pub use emb_cuda::Device;
pub use graph::{Graph, Graphs};
pub use options::{CudaOptions, Precision};
pub use own_rule::{CompiledRule, CudaRule};
pub use table::CudaTables;
