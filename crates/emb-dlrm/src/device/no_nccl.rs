//! What is there of NCCL in a build without it.

#[cfg(feature = "data")]
use super::Work;
#[cfg(feature = "data")]
use crate::config::Config;
use crate::{Error, Result};

/// Looks for the library.
///
/// # Errors
/// Always: this build has no NCCL.
pub(crate) fn find() -> Result<()> {
    Err(Error::NotBuilt("nccl"))
}

/// Does `work` on GPUs, one a rank, with ranks that meet by NCCL.
///
/// # Errors
/// Always: this build has no NCCL.
#[cfg(feature = "data")]
pub(super) fn with_nccl<W: Work>(_config: &Config, _work: W) -> Result<W::Output> {
    Err(Error::NotBuilt("nccl"))
}
