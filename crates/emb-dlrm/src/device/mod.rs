//! The one place where the concrete device and transport of a run are chosen: [`with_machine`].
//!
//! Everything else is generic over [`Backend`](emb_kernels::Backend) and
//! [`Collective`](emb_comm::Collective). Where a feature is off, the same functions are there and
//! say how to build with it.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "no_cuda.rs"]
mod cuda;
#[cfg(all(feature = "data", feature = "cuda"))]
mod gpus;
#[cfg(all(feature = "data", not(feature = "cuda")))]
#[path = "no_gpus.rs"]
mod gpus;
#[cfg(all(feature = "data", feature = "nccl"))]
mod linked;
#[cfg(feature = "data")]
mod machine;
#[cfg(all(feature = "data", feature = "nccl"))]
mod met;
#[cfg(all(feature = "data", feature = "mpi"))]
mod mpi;
#[cfg(all(feature = "data", not(feature = "mpi")))]
#[path = "no_mpi.rs"]
mod mpi;
#[cfg(feature = "nccl")]
mod nccl;
#[cfg(not(feature = "nccl"))]
#[path = "no_nccl.rs"]
mod nccl;
#[cfg(feature = "data")]
mod peers;
#[cfg(all(feature = "data", any(feature = "mpi", feature = "nccl")))]
mod process;
#[cfg(feature = "data")]
mod threads;

pub(crate) use cuda::count;
#[cfg(feature = "data")]
pub(crate) use machine::{Machine, Work, with_machine};
pub(crate) use nccl::find as find_nccl;
#[cfg(feature = "data")]
pub use peers::Peers;
#[cfg(feature = "data")]
pub(crate) use peers::find_mpi;
