//! What is there of CUDA in a build without it.

#[cfg(feature = "data")]
use super::Work;
#[cfg(feature = "data")]
use crate::config::Device;
use crate::{Error, Result};

/// GPUs of this machine, at least 1.
///
/// # Errors
/// Always: this build has no CUDA.
pub(crate) fn count() -> Result<usize> {
    Err(Error::NotBuilt("cuda"))
}

/// Does `work` on GPUs, with ranks that meet in the memory of this process.
///
/// # Errors
/// Always: this build has no CUDA.
#[cfg(feature = "data")]
pub(super) fn with_local<W: Work>(_device: &Device, _work: W) -> Result<W::Output> {
    Err(Error::NotBuilt("cuda"))
}
