//! The machines of GPUs in a build without CUDA.

use super::Work;
use super::mpi::Joined;
use crate::config::Config;
use crate::{Error, Result};

/// Does `work` on GPUs, with ranks that meet in the memory of this process.
///
/// # Errors
/// Always: this build has no CUDA.
pub(super) fn with_local<W: Work>(_config: &Config, _work: W) -> Result<W::Output> {
    Err(Error::NotBuilt("cuda"))
}

/// Does `work` on a GPU, with ranks that are processes and meet by MPI.
///
/// # Errors
/// Always: this build has no CUDA.
pub(super) fn with_mpi<W: Work>(_config: &Config, _joined: Joined, _work: W) -> Result<W::Output> {
    Err(Error::NotBuilt("cuda"))
}
