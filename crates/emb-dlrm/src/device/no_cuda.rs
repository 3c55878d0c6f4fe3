//! What is there of CUDA in a build without it.

use crate::{Error, Result};

/// GPUs of this machine, at least 1.
///
/// # Errors
/// Always: this build has no CUDA.
pub(crate) fn count() -> Result<usize> {
    Err(Error::NotBuilt("cuda"))
}
