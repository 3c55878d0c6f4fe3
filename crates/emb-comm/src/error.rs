//! The one error type of this crate.

use crate::{Failure, Operation, Wire};

/// What went wrong, with the names and values a person needs to find it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Rows without columns, which have no wire format.
    #[error("{operation}: rows of 0 columns cannot travel")]
    NoColumns {
        /// The operation that refused.
        operation: &'static str,
    },
    /// Values that do not fill whole rows.
    #[error("{operation}: {values} values are not whole rows of {dim} columns")]
    PartialRow {
        /// The operation that refused.
        operation: &'static str,
        /// Values given.
        values: usize,
        /// Columns of a row.
        dim: usize,
    },
    /// A message whose size does not fit in this machine's memory.
    #[error("{rows} rows of {dim} columns are more bytes than can be addressed")]
    TooLarge {
        /// Rows of the message.
        rows: usize,
        /// Columns of a row.
        dim: usize,
    },
    /// A value that the wire format cannot hold.
    #[error("row {row}, column {column}: {value} cannot travel as {wire}, only finite values can")]
    NotFinite {
        /// The format.
        wire: Wire,
        /// Row of the message.
        row: usize,
        /// Column of the row.
        column: usize,
        /// The value: not a number, or infinite.
        value: f32,
    },
    /// A row whose values are further apart than the format can say.
    #[error(
        "row {row}: values from {min:e} to {max:e} are too large, or too far apart, to travel as {wire}"
    )]
    RangeTooWide {
        /// The format.
        wire: Wire,
        /// Row of the message.
        row: usize,
        /// Its smallest value.
        min: f32,
        /// Its largest value.
        max: f32,
    },
    /// A word that names no wire format.
    #[error("{word:?} is no wire format: one of {}", Wire::NAMES.join(", "))]
    UnknownWire {
        /// The word.
        word: String,
    },
    /// A buffer or a list of counts of the wrong length.
    #[error("{operation}: {what}: expected length {expected}, got {got}")]
    Length {
        /// The operation that refused.
        operation: &'static str,
        /// The argument that does not fit.
        what: &'static str,
        /// The length needed.
        expected: usize,
        /// The length given.
        got: usize,
    },
    /// Ids that are not in ascending order.
    #[error("pack_sorted: id {id} at position {position} is below {before} before it")]
    NotSorted {
        /// Position of the id in the list.
        position: usize,
        /// The id.
        id: u64,
        /// The id before it.
        before: u64,
    },
    /// Packed ids that end too early or were damaged.
    #[error("packed ids, word {word}: {problem}")]
    PackedIds {
        /// Word of the list, its header being word 0.
        word: usize,
        /// What is wrong.
        problem: String,
    },
    /// Counts whose sum is more than any buffer can hold.
    #[error("{operation}: {what} sum to more than 2^64 elements")]
    CountsTooLarge {
        /// The operation that refused.
        operation: &'static str,
        /// The list of counts.
        what: &'static str,
    },
    /// Counts that two ranks disagree on.
    #[error(
        "{operation}: rank {from} sends {sent} elements to rank {to}, which expects {expected}"
    )]
    Counts {
        /// The operation that refused.
        operation: &'static str,
        /// The sending rank.
        from: usize,
        /// The receiving rank.
        to: usize,
        /// Elements sent.
        sent: usize,
        /// Elements expected.
        expected: usize,
    },
    /// A rank outside the world.
    #[error("{operation}: rank {rank} does not exist: there are {world}")]
    NoSuchRank {
        /// The operation that refused.
        operation: &'static str,
        /// The rank named.
        rank: usize,
        /// Ranks of the collective.
        world: usize,
    },
    /// A collective that cannot end because of something that happened on some rank.
    #[error("{operation} on rank {rank} in step {step}: {failure}")]
    Failed {
        /// The operation that this rank called.
        operation: Operation,
        /// This rank, as numbered in the world.
        rank: usize,
        /// The step this rank was in.
        step: u64,
        /// What happened first.
        #[source]
        failure: Box<Failure>,
    },
    /// Two collectives of one rank at the same time, on two threads.
    #[error("{operation} on rank {rank}: the rank is in another collective already")]
    Busy {
        /// The operation that refused.
        operation: &'static str,
        /// The rank, as numbered in the world.
        rank: usize,
    },
    /// A list of subgroups that cannot be.
    #[error("subgroups of {world} ranks: {problem}")]
    Subgroups {
        /// Ranks of the collective that was to be divided.
        world: usize,
        /// What is wrong with which ranks.
        problem: String,
    },
    /// Two ranks of NCCL on one device.
    #[error(
        "NCCL takes one rank a device: ranks {first} and {second} are both on device {device}; \
         use the local transport"
    )]
    SharedDevice {
        /// A rank.
        first: usize,
        /// Another rank.
        second: usize,
        /// The device that both are on.
        device: usize,
    },
    /// A call of NCCL that failed.
    #[error(
        "{call} failed on rank {rank} of {world}, {place}: {problem}; \
         NCCL_DEBUG=INFO in the environment shows what led to it"
    )]
    Nccl {
        /// The call.
        call: &'static str,
        /// The rank, as numbered in its set.
        rank: usize,
        /// Ranks of the set.
        world: usize,
        /// Host and device of the rank.
        place: String,
        /// What the library says.
        problem: String,
    },
    /// A call of MPI that failed, or processes that cannot form a world.
    #[error("{call} failed on {place}: {problem}")]
    Mpi {
        /// The call.
        call: &'static str,
        /// Rank and host.
        place: String,
        /// What the library says, or what is wrong.
        problem: String,
    },
    /// Processes that did not all come: nothing is known of those that did not, nor who they are.
    #[error("{call} failed on {place}: not all processes of the job came within {time:?}")]
    Absent {
        /// The call.
        call: &'static str,
        /// Rank and host.
        place: String,
        /// How long this process waited for the others.
        time: std::time::Duration,
    },
    /// What a device reported.
    #[error("{0}")]
    Space(String),
}
