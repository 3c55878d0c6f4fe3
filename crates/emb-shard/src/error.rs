//! The one error type of this crate.

/// What went wrong, with the names and values a person needs to find it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An id that does not fit in its 32 bits.
    #[error("{kind} {index} does not fit in 32 bits")]
    IdTooLarge {
        /// What was to be named.
        kind: &'static str,
        /// Its position.
        index: usize,
    },
    /// A rank, group, owner, row or the like that is not there.
    #[error("{kind} {index} does not exist: there are {count}")]
    NoSuch {
        /// What was asked for.
        kind: &'static str,
        /// Its number.
        index: u64,
        /// How many there are, numbered from 0.
        count: u64,
    },
    /// A range that ends before it starts.
    #[error("{kind} range {start}..{end} ends before it starts")]
    RangeReversed {
        /// `row` or `column`.
        kind: &'static str,
        /// First.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// A table that cannot exist.
    #[error("table {table:?}: {what}")]
    BadTable {
        /// Table name.
        table: String,
        /// What is wrong, with the value and the valid range.
        what: String,
    },
    /// Two things of one name.
    #[error("two {kind}s are named {name:?}")]
    DuplicateName {
        /// `table` or `feature`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Ranks that cannot be split into groups of the size asked for.
    #[error("{world} ranks do not split into sharding groups of {group_ranks}")]
    GroupSize {
        /// Ranks of the run.
        world: u32,
        /// Ranks of a group asked for.
        group_ranks: u32,
    },
    /// A row map over nobody.
    #[error("a row map needs at least one owner")]
    NoOwners,
    /// Starts of row ranges that do not begin at 0.
    #[error("row starts must begin at 0, they begin at {first}")]
    StartsBegin {
        /// The first start.
        first: u64,
    },
    /// Starts of row ranges that decrease.
    #[error("row starts decrease at owner {owner}: {previous} then {next}")]
    StartsDecrease {
        /// The owner whose range would have negative length.
        owner: usize,
        /// Its start.
        previous: u64,
        /// Its end.
        next: u64,
    },
    /// A permutation of another number of rows than the map it feeds.
    #[error("the permutation has {permutation} rows, the row map behind it {rows}")]
    PermutationLength {
        /// Entries of the permutation.
        permutation: u64,
        /// Rows of the map.
        rows: u64,
    },
    /// A permutation that leaves the rows.
    #[error("the permutation sends row {row} to {place}, there are {rows} rows")]
    PermutationRange {
        /// The row.
        row: u64,
        /// Where it would go.
        place: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// A permutation that sends two rows to one place.
    #[error("the permutation sends rows {first} and {second} to {place}")]
    PermutationTwice {
        /// One row.
        first: u64,
        /// Another row.
        second: u64,
        /// Where both go.
        place: u64,
    },
}
