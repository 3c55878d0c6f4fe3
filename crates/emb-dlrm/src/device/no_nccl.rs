//! What is there of NCCL in a build without it.

#[cfg(feature = "data")]
use super::Work;
#[cfg(feature = "data")]
use crate::config::Config;
#[cfg(feature = "data")]
use crate::launch::Place;
use crate::{Error, Result};
#[cfg(feature = "data")]
use std::net::TcpStream;
#[cfg(feature = "data")]
use std::time::Duration;

/// Looks for the library.
///
/// # Errors
/// Always: this build has no NCCL.
pub(crate) fn find() -> Result<()> {
    Err(Error::NotBuilt("nccl"))
}

/// This process among those that meet by NCCL: there are none.
#[cfg(feature = "data")]
pub(crate) enum Met {}

#[cfg(feature = "data")]
impl Met {
    /// Meets the other processes.
    ///
    /// # Errors
    /// Always: this build has no NCCL.
    pub(super) fn meet(_place: &Place, _timeout: Duration) -> Result<Self> {
        Err(Error::NotBuilt("nccl"))
    }

    /// One that met the others by other means.
    ///
    /// # Errors
    /// Always: this build has no NCCL.
    pub(super) fn of(
        _rank: usize,
        _hosts: Vec<String>,
        _id: [u8; 128],
        _lines: Vec<TcpStream>,
    ) -> Result<Self> {
        Err(Error::NotBuilt("nccl"))
    }

    /// Tells the others that this one gives up.
    pub(super) fn give_up(&self, _reason: &str, _timeout: Duration) {
        match *self {}
    }

    /// This rank.
    pub(super) fn rank(&self) -> usize {
        match *self {}
    }

    /// The host of every rank.
    pub(super) fn hosts(&self) -> &[String] {
        match *self {}
    }
}

/// Does `work` on GPUs, one a rank, with ranks that meet by NCCL.
///
/// # Errors
/// Always: this build has no NCCL.
#[cfg(feature = "data")]
pub(super) fn with_nccl<W: Work>(_config: &Config, _work: W) -> Result<W::Output> {
    Err(Error::NotBuilt("nccl"))
}

/// Does `work` on a GPU, with ranks that are processes and meet by NCCL.
///
/// # Errors
/// Never called: this build has no NCCL.
#[cfg(feature = "data")]
pub(super) fn with_processes<W: Work>(_config: &Config, met: Met, _work: W) -> Result<W::Output> {
    match met {}
}
