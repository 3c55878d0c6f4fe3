//! Ranks that compute on NVIDIA GPUs: [`count`] finds them.

use crate::Result;

/// GPUs of this machine, at least 1.
///
/// # Errors
/// No driver, with the names and paths tried; a driver without a GPU.
pub(crate) fn count() -> Result<usize> {
    match emb_cuda::Device::count().map_err(emb_kernels::Error::from)? {
        0 => {
            Err(emb_kernels::Error::from(emb_cuda::Error::NoDevice { ordinal: 0, devices: 0 })
                .into())
        }
        count => Ok(count),
    }
}
