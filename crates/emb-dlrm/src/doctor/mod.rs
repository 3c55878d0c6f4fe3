//! What a machine has and lacks for training over ranks: [`examine`], and [`exchange`], a timed
//! exchange over all of them.
//!
//! ```text
//!   System: /proc and /sys below a root, variables, programs --> examine --> Check, Check, ..
//!   ranks of any transport ------------------------------------> exchange --> Exchanged
//! ```
//!
//! Nothing here fails because of what a machine lacks: what can't be read becomes a check that says
//! so.

mod check;
mod disks;
mod emb;
mod exchange;
mod gather;
#[cfg(feature = "cuda")]
mod gpus;
#[cfg(not(feature = "cuda"))]
#[path = "no_gpus.rs"]
mod gpus;
mod interfaces;
mod known;
mod launcher;
mod limits;
mod memory;
mod mpi;
#[cfg(feature = "nccl")]
mod nccl;
#[cfg(not(feature = "nccl"))]
#[path = "no_nccl.rs"]
mod nccl;
mod network;
mod pairs;
mod processor;
mod system;
#[cfg(test)]
mod tests;

pub use check::{Check, Verdict};
pub use exchange::{Exchanged, Operated, exchange};
pub use gather::gather;
pub use memory::usable_bytes;
pub use pairs::Pairs;
pub use processor::usable_cores;
pub use system::{Disk, System};

/// Everything that can be told without other ranks.
pub fn examine(system: &System<'_>) -> Vec<Check> {
    let areas: [fn(&System<'_>) -> Vec<Check>; 10] = [
        emb::checks,
        processor::checks,
        memory::checks,
        limits::checks,
        disks::checks,
        network::checks,
        launcher::checks,
        mpi::checks,
        gpus::checks,
        nccl::checks,
    ];
    areas.iter().flat_map(|checks| checks(system)).collect()
}
