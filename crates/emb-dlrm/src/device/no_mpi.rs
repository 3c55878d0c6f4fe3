//! What is there of MPI in a build without it.

use super::Work;
use super::machine::Devices;
use crate::{Error, Result};
use std::time::Duration;

/// This process in the world of MPI: there is none.
pub(crate) enum Joined {}

impl Joined {
    /// Starts MPI.
    ///
    /// # Errors
    /// Always: this build has no MPI.
    pub(super) fn start(_timeout: Duration, _ranks_per_node: Option<usize>) -> Result<Self> {
        Err(Error::NotBuilt("mpi"))
    }

    /// This rank.
    pub(super) fn rank(&self) -> usize {
        match *self {}
    }

    /// The host of every rank.
    pub(super) fn hosts(&self) -> &[String] {
        match *self {}
    }

    /// Ranks of each host, where all have equally many neighbours.
    pub(super) fn ranks_per_host(&self) -> Option<usize> {
        match *self {}
    }

    /// Its number among the ranks of this host.
    #[cfg(feature = "cuda")]
    pub(super) fn local_rank(&self) -> usize {
        match *self {}
    }

    /// Tells the other ranks that this one gives up.
    pub(super) fn abort(&self, _reason: &str) {
        match *self {}
    }
}

/// The library and its version: there is none.
pub(super) fn library() -> String {
    "no MPI".to_owned()
}

/// Whether there is MPI in this build.
pub(super) const BUILT: bool = false;

/// Does `work` on these devices, with the ranks of MPI.
///
/// # Errors
/// Never called: this build has no MPI.
pub(super) fn with_mpi<D: Devices, W: Work>(
    joined: Joined,
    _devices: D,
    _work: W,
) -> Result<W::Output> {
    match joined {}
}
