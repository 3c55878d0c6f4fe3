//! The one error type of the data layer.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::bad_rows::BadRow;

/// Why data could not be read or made, with the names and values a person needs to find it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// No file was named at all.
    #[error("no data files were given")]
    NoFiles,
    /// A pattern with `*` or `?` names no file.
    #[error("no file matches {}", pattern.display())]
    NoMatch {
        /// The pattern as given.
        pattern: PathBuf,
    },
    /// A directory where a file is wanted.
    #[error(
        "{} is a directory, not a data file; name its files, for example {}",
        path.display(), path.join("*").display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// A pipe or a device, which cannot be read twice.
    #[error("{} is a pipe or a device, not a data file that can be read more than once", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// A name that promises compression and a content that has none.
    #[error(
        "{} is named as a {expected} file but begins with bytes {found:02x?}", path.display()
    )]
    Magic {
        /// The file.
        path: PathBuf,
        /// The compression its suffix promises.
        expected: &'static str,
        /// Its first bytes, up to four.
        found: Vec<u8>,
    },
    /// A file without a usable row.
    #[error("{}: 0 rows{}", path.display(), skipped_note(*skipped, first.as_deref()))]
    Empty {
        /// The file.
        path: PathBuf,
        /// Rows of the file that were skipped as bad.
        skipped: u64,
        /// The first of them.
        first: Option<Box<BadRow>>,
    },
    /// A compressed stream that ends before its end marker.
    #[error(
        "{}: the {compression} stream is cut off at compressed byte {offset}, after {rows} rows",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zstd`.
        compression: &'static str,
        /// Compressed bytes consumed.
        offset: u64,
        /// Complete rows read from this file before.
        rows: u64,
    },
    /// A compressed stream whose content or check sum is wrong.
    #[error(
        "{}: the {compression} stream is damaged near compressed byte {offset}, after {rows} rows: \
         {source}",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zstd`.
        compression: &'static str,
        /// Compressed bytes consumed.
        offset: u64,
        /// Complete rows read from this file before.
        rows: u64,
        /// What the decoder said.
        #[source]
        source: io::Error,
    },
    /// A row that is not what its format promises.
    #[error("{0}")]
    BadRow(Box<BadRow>),
    /// Rows with and without a label in one input.
    #[error(
        "{}, line {line}: {found} fields, but the rows before have {first}: rows with and without \
         a label cannot be mixed",
        path.display()
    )]
    MixedFields {
        /// The file.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// Fields of this row.
        found: usize,
        /// Fields of the first row.
        first: usize,
    },
    /// An id outside its table where ids are not taken modulo the rows.
    #[error(
        "{}, line {line}, column {column}: id {id} is outside table {table:?}, whose valid ids are \
         0..{rows}; give the table more rows or choose the id policy \"modulo\"",
        path.display()
    )]
    IdOutOfRange {
        /// The file.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// Column name, `C1` to `C26`.
        column: String,
        /// Table name.
        table: String,
        /// The id.
        id: u64,
        /// Rows for ids, the reserved row of missing values apart.
        rows: u64,
    },
    /// A sparse column that contradicts the format or another one.
    #[error("feature {feature:?}: {what}")]
    Column {
        /// The feature's name.
        feature: String,
        /// What is wrong.
        what: String,
    },
    /// An option outside its valid range.
    #[error("{option} = {value} is not valid: it must be {valid}")]
    Option {
        /// Name of the option.
        option: String,
        /// The value given.
        value: String,
        /// The valid values in words.
        valid: &'static str,
    },
    /// A source that failed before was asked for more.
    #[error("the source failed before; restart it to read again")]
    Failed,
    /// Ranks that read one source were to go on from different samples.
    #[error(
        "rank {first} restarts the data at row {row}, rank {other} at row {other_row}: all ranks \
         must restart at the same row"
    )]
    Restart {
        /// The first rank.
        first: usize,
        /// Where it wants to go on.
        row: u64,
        /// The first rank that disagrees.
        other: usize,
        /// Where that one wants to go on.
        other_row: u64,
    },
    /// An error that every rank gets, of the source that they share.
    #[error(transparent)]
    Shared(#[from] Arc<Error>),
    /// The background reader ended without an answer.
    #[error("the background reader stopped: {reason}")]
    Stopped {
        /// The panic message, or what is known.
        reason: String,
    },
    /// A batch that is not consistent.
    #[error(transparent)]
    Batch(#[from] emb_kernels::Error),
}

fn skipped_note(skipped: u64, first: Option<&BadRow>) -> String {
    match first {
        None => String::new(),
        Some(first) => format!(" ({skipped} bad rows were skipped, the first: {first})"),
    }
}
