//! The machine of GPUs in a build without CUDA.

use super::Work;
use crate::config::Config;
use crate::{Error, Result};

/// Does `work` on GPUs, with ranks that meet in the memory of this process.
///
/// # Errors
/// Always: this build has no CUDA.
pub(super) fn with_local<W: Work>(_config: &Config, _work: W) -> Result<W::Output> {
    Err(Error::NotBuilt("cuda"))
}
