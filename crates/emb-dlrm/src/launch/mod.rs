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

mod error;
mod hello;
mod meet;
mod place;
mod point;

pub use error::Error;
pub use meet::{Met, Name, meet};
pub use place::{Launcher, Place};
pub use point::{Point, meeting_name};

/// What a variable of the environment is, if it is set: the environment of this process, or a test's.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment of this process. A value that is not Unicode counts as unset.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
