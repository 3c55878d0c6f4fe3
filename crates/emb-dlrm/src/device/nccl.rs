//! Ranks on a GPU each that meet by NCCL: [`find`] looks for the library.

#[cfg(feature = "data")]
use super::Work;
#[cfg(feature = "data")]
use super::linked::{Linked, OneOf};
#[cfg(feature = "data")]
pub(super) use super::met::Met;
use crate::Result;
#[cfg(feature = "data")]
use crate::config::Config;
use emb_comm::Nccl;

/// Looks for the library.
///
/// # Errors
/// No library, with the names and paths tried.
pub(crate) fn find() -> Result<()> {
    Nccl::library()?;
    Ok(())
}

/// Does `work` on GPUs, one a rank, with ranks that meet by NCCL.
///
/// # Errors
/// The driver or the library fails; what the work returns.
#[cfg(feature = "data")]
pub(super) fn with_nccl<W: Work>(config: &Config, work: W) -> Result<W::Output> {
    work.on(&Linked::open(config)?)
}

/// Does `work` on a GPU, with ranks that are processes and meet by NCCL.
///
/// # Errors
/// The driver or the library fails; what the work returns.
#[cfg(feature = "data")]
pub(super) fn with_processes<W: Work>(config: &Config, met: Met, work: W) -> Result<W::Output> {
    work.on(&OneOf::open(config, met)?)
}
