//! A world of processes: which rank this one is, where all of them meet, how they are started.
//!
//! ```text
//!   variables of mpirun, srun, torchrun --> [`Place`]: rank, world, local rank
//!                                             |
//!                        [`Point`]: host and port of rank 0
//!                                             |
//!                        [`meet`]: every rank learns all hosts and rank 0's blob (NCCL's id)
//! ```
//!
//! **It knows nothing of** training: processes are programs with arguments, a blob is bytes.

#[cfg(feature = "cli")]
mod again;
mod blame;
#[cfg(feature = "cli")]
mod children;
#[cfg(feature = "cli")]
mod chorus;
#[cfg(feature = "cli")]
mod ending;
mod error;
#[cfg(feature = "cli")]
mod frames;
mod hello;
#[cfg(feature = "cli")]
mod hints;
#[cfg(feature = "cli")]
mod hosts;
#[cfg(feature = "cli")]
mod keeper;
#[cfg(feature = "cli")]
mod leash;
#[cfg(feature = "cli")]
mod line;
mod meet;
#[cfg(feature = "cli")]
pub mod mpirun;
mod nodes;
mod place;
mod point;
#[cfg(feature = "cli")]
mod room;
#[cfg(feature = "cli")]
mod said;
#[cfg(feature = "cli")]
mod signals;
#[cfg(feature = "cli")]
mod start;
mod status;
#[cfg(feature = "cli")]
mod world;

#[cfg(feature = "cli")]
pub use again::{Smaller, smaller};
pub use blame::exit_code;
#[cfg(feature = "mpi")]
pub(crate) use blame::last_words;
#[cfg(feature = "cli")]
pub use chorus::Chorus;
#[cfg(feature = "cli")]
pub use ending::{End, How, Verdict, judge};
pub use error::Error;
#[cfg(feature = "cli")]
pub use hosts::Hosts;
#[cfg(feature = "cli")]
pub use keeper::{KEEPER, host_name, keep};
#[cfg(feature = "cli")]
pub use leash::{LEASH, become_leashed};
pub use meet::{Met, Name, meet};
pub use place::{Launcher, Place};
pub use point::{Point, meeting_name};
#[cfg(feature = "cli")]
pub use room::look_at_folder;
#[cfg(feature = "cli")]
pub use signals::Requests;
#[cfg(feature = "cli")]
pub use start::{MpiRun, Start};
pub use status::{PEER_FAILED, Status};
#[cfg(feature = "cli")]
pub use world::{Launch, Outcome, Voice};

/// What a variable of the environment is, if it is set: the environment of this process, or a test's.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment of this process. A value that is not Unicode counts as unset.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// GPUs of this host.
///
/// # Errors
/// This build has no CUDA, or no driver is found.
pub fn gpus() -> crate::Result<usize> {
    crate::device::count()
}

/// Whether this build has MPI.
///
/// # Errors
/// It has none: how to build it.
#[cfg(feature = "data")]
pub fn has_mpi() -> crate::Result<()> {
    crate::device::find_mpi()
}
