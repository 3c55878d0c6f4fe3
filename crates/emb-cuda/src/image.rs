//! Where the image of the project's kernels is found.

use crate::{Error, Result};

/// The image: the file that `EMB_KERNELS` names.
pub(crate) fn image() -> Result<Vec<u8>> {
    let Some(file) = std::env::var_os("EMB_KERNELS") else {
        return Err(Error::NoImage("EMB_KERNELS names no file".to_owned()));
    };
    std::fs::read(&file)
        .map_err(|error| Error::NoImage(format!("EMB_KERNELS={}: {error}", file.display())))
}
