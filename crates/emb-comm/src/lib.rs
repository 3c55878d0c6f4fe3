//! Collectives between the ranks of a training run, and the wire formats of what they carry.
//!
//! ```text
//!   rows, f32 --encode--> bytes --all_to_all_v--> bytes --decode--> rows, f32
//!             [`Wire`]           [`Collective`]          [`Wire`]
//! ```
//!
//! [`Collective`] is the seam between training and a transport; [`Solo`] is the transport of a
//! run of one rank, where every exchange is a copy; [`Local`] is that between threads of one
//! process, over the memory of a [`Space`]; [`Traced`] records what any of them does when. With the
//! feature `cuda`, `DeviceSpace` is the memory of GPUs, so that `Local` joins several ranks of one
//! GPU or the GPUs of one process; with `nccl`, `Nccl` joins GPUs of many processes, a rank each,
//! and `Staged` exchanges slices over either. With `mpi`, `Mpi` joins processes that an MPI launcher
//! has started. [`Wire`] says how rows of `f32` become bytes:
//! unchanged, as 16-bit floats, as 8-bit integers or floats with a scale for each row, or as 4-bit
//! integers with a scale for each group of columns. [`ids`]
//! packs lists of ids and of lengths into fewer words, exactly.
//!
//! **It knows nothing of** tables, kernels or plans: it moves slices.
//!
//! **Invariants.** Sums are taken in rank order: the same bits on every rank, in every run. Counts
//! and lengths are checked before anything is written; an error names the operation, what was
//! expected and what was given. Every collective ends, in success or in an error that names rank,
//! operation and step, within the timeout: see [`Failure`].
//!
//! # How threads meet
//!
//! Every rank publishes where its data lie; peers copy or reduce straight from there, so that each
//! byte moves once.
//!
//! ```text
//!   rank 0                          rank 1
//!     publish call and views          publish call and views
//!     wait until all have published   wait until all have published      timeout: names the missing
//!     compare calls                   compare calls                      mismatch: names who differs
//!     pin peers, read, unpin          pin peers, read, unpin             copies, sums in rank order
//!     done                            done
//!     wait until all are done         wait until all are done
//!     return: views are no longer lent
//! ```
//!
//! A rank that gives up (timeout, failure of a peer, panic) first revokes what it published, then
//! waits for those who are reading it at that moment, then returns. So no peer reads memory whose
//! borrow has ended. Waiting spins briefly and then yields: ranks may outnumber cores.
//!
//! # Rows on the wire
//!
//! ```
//! use emb_comm::{Collective, Solo, Wire};
//!
//! let rows = [0.5f32, -1.0, 3.0, 8.0]; // two rows of two columns
//! let mut sent = vec![0u8; Wire::Bf16.bytes(2, 2)?];
//! Wire::Bf16.encode(&rows, 2, &mut sent)?;
//!
//! let mut received = vec![0u8; sent.len()];
//! Solo.all_to_all_v(&sent, &[sent.len()], &mut received, &[sent.len()])?;
//!
//! let mut back = [0.0f32; 4];
//! Wire::Bf16.decode(&received, 2, &mut back)?;
//! assert_eq!(back, rows);
//! # Ok::<(), emb_comm::Error>(())
//! ```

mod arguments;
#[cfg(any(feature = "nccl", feature = "mpi"))]
mod check;
mod codec;
mod collective;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "cuda")]
mod cuda;
mod element;
mod error;
mod failure;
#[cfg(any(feature = "nccl", feature = "mpi"))]
mod header;
mod local;
mod meter;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "nccl")]
mod nccl;
mod operation;
mod solo;
mod space;
mod sync;
mod trace;

#[cfg(any(feature = "nccl", feature = "mpi"))]
pub use check::Check;
pub use codec::{Wire, ids};
pub use collective::Collective;
#[cfg(feature = "cuda")]
pub use cuda::{DeviceSpace, Staged};
pub use element::{Element, Reduction, Sum};
pub use error::Error;
pub use failure::{Failure, FailureKind};
#[cfg(loom)]
pub use local::model;
pub use local::{Guard, Local, Options, run, run_over};
pub use meter::{Meter, Meters};
#[cfg(feature = "mpi")]
pub use mpi::{Mpi, MpiOptions};
#[cfg(feature = "nccl")]
pub use nccl::{Nccl, NcclControl, NcclOptions, Sums, UniqueId};
pub use operation::Operation;
pub use solo::Solo;
pub use space::{Host, Space};
pub use trace::{Lane, Span, Trace, Traced};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Runs the examples of the README with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
