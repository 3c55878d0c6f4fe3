//! Rows that are not what the parser expects: their reasons, their report, their counts.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Longest part of a field that an error shows, in bytes.
const SHOWN_BYTES: usize = 64;

/// What to do with a row that cannot be parsed.
///
/// An id outside its table is no bad row but a wrong table: it is an error under both policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadRowPolicy {
    /// Stop with an error that names file, line, column, text and reason.
    #[default]
    Error,
    /// Leave the row out and count it by reason.
    Skip,
}

/// A column of a Criteo row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The label.
    Label,
    /// Integer column `I1` to `I13`, from 0.
    Integer(usize),
    /// Id column `C1` to `C26`, from 0.
    Id(usize),
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label => f.write_str("label"),
            Self::Integer(column) => write!(f, "I{}", column + 1),
            Self::Id(column) => write!(f, "C{}", column + 1),
        }
    }
}

/// Why a row is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A wrong number of tab-separated fields.
    Fields {
        /// Fields found.
        found: usize,
        /// Fields of a row.
        expected: usize,
        /// Commas in the row: many mean a comma-separated file.
        commas: usize,
    },
    /// A label other than 0 and 1 while labels are hard.
    Label,
    /// A label outside `[0, 1]`, or no number, while labels are soft.
    SoftLabel,
    /// An integer field that is no decimal integer.
    Integer,
    /// An integer outside 32 bits.
    IntegerRange,
    /// An id that is not hexadecimal.
    Id,
    /// An id of more than 8 hexadecimal digits.
    IdDigits,
    /// A line longer than the reader keeps.
    LineLength {
        /// The limit in bytes.
        limit: usize,
    },
}

impl Reason {
    /// Names of the reasons in the order of [`BadRows::counts`].
    pub const NAMES: [&'static str; 8] = [
        "fields",
        "label",
        "soft-label",
        "integer",
        "integer-range",
        "id",
        "id-digits",
        "line-length",
    ];

    fn index(self) -> usize {
        match self {
            Self::Fields { .. } => 0,
            Self::Label => 1,
            Self::SoftLabel => 2,
            Self::Integer => 3,
            Self::IntegerRange => 4,
            Self::Id => 5,
            Self::IdDigits => 6,
            Self::LineLength { .. } => 7,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fields { found, expected, commas } => {
                let plural = if found == 1 { "field" } else { "fields" };
                write!(f, "{found} {plural} found, {expected} expected")?;
                if found < expected && commas > 0 {
                    let plural = if commas == 1 { "comma" } else { "commas" };
                    write!(f, "; {commas} {plural} seen: fields must be separated by tabs")?;
                }
                Ok(())
            }
            Self::Label => f.write_str("the label must be 0 or 1"),
            Self::SoftLabel => f.write_str("a soft label must be a number from 0 to 1"),
            Self::Integer => f.write_str("not an integer"),
            Self::IntegerRange => f.write_str("outside the 32-bit range"),
            Self::Id => f.write_str("not a hexadecimal id"),
            Self::IdDigits => f.write_str("an id has at most 8 hexadecimal digits"),
            Self::LineLength { limit } => write!(f, "the line is longer than {limit} bytes"),
        }
    }
}

/// One bad row: where it is and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// The file.
    pub path: PathBuf,
    /// Line in the file, from 1.
    pub line: u64,
    /// The column, where the fault is in one.
    pub column: Option<Column>,
    /// The beginning of the field or of the line, control and non-ASCII bytes escaped.
    pub text: String,
    /// What is wrong.
    pub reason: Reason,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.path.display(), self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}: \"{}\"", self.reason, self.text)
    }
}

/// Rows that were skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BadRows {
    counts: [u64; Reason::NAMES.len()],
}

impl BadRows {
    /// Rows skipped for any reason.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The reasons that occurred, each with its count.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Reason::NAMES.into_iter().zip(self.counts).filter(|&(_, count)| count > 0)
    }

    pub(crate) fn add(&mut self, reason: Reason) {
        self.counts[reason.index()] += 1;
    }
}

impl Serialize for BadRows {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.counts())
    }
}

/// The beginning of a field as printable ASCII, with `...` where it was cut.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let cut = bytes.len() > SHOWN_BYTES;
    let mut text = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii().to_string();
    if cut {
        text.push_str("...");
    }
    text
}
