//! The one error type of this crate.

/// What went wrong, with the names and values a person needs to find it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Lengths do not make `features x batch` bags.
    #[error("{features} features, batch {batch}: expected {expected} lengths, got {got}")]
    LengthsCount {
        /// Features of the batch.
        features: usize,
        /// Samples of the batch.
        batch: usize,
        /// `features * batch`.
        expected: usize,
        /// Lengths given.
        got: usize,
    },
    /// A bag of negative length.
    #[error("feature {feature:?}, sample {sample}: negative length {length}")]
    NegativeLength {
        /// Feature name.
        feature: String,
        /// Sample in the batch.
        sample: usize,
        /// The length given.
        length: i64,
    },
    /// The lengths promise another number of values than there are.
    #[error("lengths sum to {lengths} but there are {values} values")]
    LengthsSum {
        /// Sum of lengths.
        lengths: u64,
        /// Values given.
        values: usize,
    },
    /// The values of one feature contradict its lengths.
    #[error("feature {feature:?}: {given} values given, its lengths sum to {lengths}")]
    FeatureValues {
        /// Feature name.
        feature: String,
        /// Count given for it.
        given: u64,
        /// Sum of its lengths.
        lengths: u64,
    },
    /// Offsets of the wrong count.
    #[error(
        "{features} features, batch {batch}: expected features*batch+1 = {expected} offsets, got {got}"
    )]
    OffsetsCount {
        /// Features of the batch.
        features: usize,
        /// Samples of the batch.
        batch: usize,
        /// `features * batch + 1`.
        expected: usize,
        /// Offsets given.
        got: usize,
    },
    /// Offsets that begin elsewhere than at 0.
    #[error("offsets must begin at 0, they begin at {first}")]
    OffsetsStart {
        /// The first offset.
        first: i64,
    },
    /// Offsets that decrease.
    #[error("offsets decrease at index {index}: {previous} then {next}")]
    OffsetsDecrease {
        /// Index of the smaller offset.
        index: usize,
        /// Offset before it.
        previous: i64,
        /// Offset at `index`.
        next: i64,
    },
    /// The last offset is not the number of values.
    #[error("the last offset is {last} but there are {values} values")]
    OffsetsEnd {
        /// The last offset.
        last: i64,
        /// Values given.
        values: usize,
    },
    /// Per-sample weights that do not match the values.
    #[error("{values} values but {weights} per-sample weights")]
    WeightsCount {
        /// Values given.
        values: usize,
        /// Weights given.
        weights: usize,
    },
    /// An id outside its table.
    #[error("table {table:?}, feature {feature:?}, sample {sample}, position {position} in the bag: id {id} is outside 0..={}", rows - 1)]
    IdOutOfRange {
        /// Table name.
        table: String,
        /// Feature name.
        feature: String,
        /// Sample in the batch.
        sample: usize,
        /// Position in the bag.
        position: usize,
        /// The id.
        id: i64,
        /// Rows of the table.
        rows: u64,
    },
    /// An id that no owner has.
    #[error(
        "feature {feature:?}, sample {sample}, position {position} in the bag: no owner has id {id}"
    )]
    NoOwner {
        /// Feature name.
        feature: String,
        /// Sample in the batch.
        sample: usize,
        /// Position in the bag.
        position: usize,
        /// The id.
        id: i64,
    },
    /// A negative id where the table is not known.
    #[error("value {position}: negative id {id}")]
    NegativeId {
        /// Position among the values.
        position: usize,
        /// The id.
        id: i64,
    },
    /// A feature that names no table.
    #[error("feature {feature:?} looks up table {table}, but there are {tables} tables")]
    UnknownTable {
        /// Feature name.
        feature: String,
        /// Table position asked for.
        table: usize,
        /// Tables in the group.
        tables: usize,
    },
    /// Two things of one name.
    #[error("two {kind}s are named {name:?}")]
    DuplicateName {
        /// `table` or `feature`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A table that cannot exist.
    #[error("table {table:?}: {what}")]
    BadTable {
        /// Table name.
        table: String,
        /// What is wrong, with the value and the valid range.
        what: String,
    },
    /// A batch and a map, tables or matrix that do not fit together.
    #[error("{operation}: {what}: expected {expected}, got {got}")]
    Shape {
        /// The operation that refused.
        operation: &'static str,
        /// What does not fit.
        what: &'static str,
        /// The size needed.
        expected: usize,
        /// The size given.
        got: usize,
    },
    /// Memory that could not be had.
    #[error("{what}: cannot map {bytes} bytes: {reason}")]
    Memory {
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        bytes: u64,
        /// The system's words.
        reason: String,
    },
    /// A device that failed.
    #[error("{0}")]
    Device(String),
    /// A backend, device or option that this build or machine does not have.
    #[error("{0} is not available: {1}")]
    NotAvailable(&'static str, String),
}

#[cfg(feature = "cuda")]
impl From<emb_cuda::Error> for Error {
    fn from(error: emb_cuda::Error) -> Self {
        match error {
            emb_cuda::Error::OutOfMemory { ordinal, bytes, free, total } => Self::Memory {
                what: format!("memory of device {ordinal}"),
                bytes,
                reason: format!("{free} of {total} bytes are free"),
            },
            _ => Self::Device(error.to_string()),
        }
    }
}
