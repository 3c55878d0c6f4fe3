//! A look into data files: rows, bytes, check sum, labels, and what each column holds.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::distinct::Counter;
use super::row::{Layout, Row};
use super::rows::{Rows, Rules};
use super::{BadRows, Column, DENSE, Distinct, Error, Result, SPARSE, files};

/// What one file holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Bytes as stored.
    pub bytes: u64,
    /// SHA-256 of the bytes as stored, in hexadecimal.
    pub sha256: String,
    /// `gzip`, `zstd`, or none.
    pub compression: Option<&'static str>,
    /// Fields of a row: 40 with a label, 39 without.
    pub fields: usize,
    /// Rows that could be parsed.
    pub rows: u64,
    /// Rows that could not, by reason.
    pub bad_rows: BadRows,
    /// Line, column, text and reason of the first of them.
    pub first_bad_row: Option<String>,
    /// Labels, where rows have one.
    pub labels: Option<LabelReport>,
    /// `I1` to `I13`.
    pub integers: Vec<IntegerReport>,
    /// `C1` to `C26`.
    pub ids: Vec<IdReport>,
}

/// Labels of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LabelReport {
    /// Rows with label 0.
    pub zeros: u64,
    /// Rows with label 1.
    pub ones: u64,
    /// Rows with a label between them.
    pub soft: u64,
    /// Mean label: the click rate.
    pub mean: f64,
}

/// One integer column of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntegerReport {
    /// Name, `I1` to `I13`.
    pub column: String,
    /// Rows without a value.
    pub missing: u64,
    /// Rows with a value below 0, which count as 0 in training.
    pub negative: u64,
    /// Least value, if any.
    pub min: Option<i32>,
    /// Greatest value, if any.
    pub max: Option<i32>,
}

/// One id column of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdReport {
    /// Name, `C1` to `C26`.
    pub column: String,
    /// Rows without an id.
    pub missing: u64,
    /// Different ids.
    pub distinct: Distinct,
    /// Greatest id, if any: a table without `modulo` needs more rows than this.
    pub max: Option<u32>,
}

/// Reads files whole and reports on each. Bad rows are counted, not refused.
///
/// # Errors
/// Files that cannot be found, opened or decompressed to their end, files without a good row,
/// files that mix rows with and without label.
pub fn inspect<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<FileReport>> {
    files::expand(paths)?.iter().map(|path| inspect_file(path)).collect()
}

fn inspect_file(path: &Path) -> Result<FileReport> {
    let mut rules = Rules::detect();
    let mut rows = Rows::open(path, Vec::new())?;
    let mut columns = Columns::new();
    let mut row = Row::default();
    while rows.next_row(&mut rules, &mut row)? {
        columns.add(&row);
    }
    let layout = rules.layout().unwrap_or(Layout::Bare);
    let labels = matches!(layout, Layout::Labelled { .. }).then(|| columns.labels(rows.rows()));
    let (bytes, sha256) = check_sum(path)?;
    Ok(FileReport {
        path: path.to_owned(),
        bytes,
        sha256,
        compression: rows.lines().stream().compression(),
        fields: layout.fields(),
        rows: rows.rows(),
        bad_rows: rules.skipped,
        first_bad_row: rows.first_skipped().map(ToString::to_string),
        labels,
        integers: columns.integers,
        ids: columns.ids.into_iter().map(IdCounts::report).collect(),
    })
}

struct Columns {
    labels: LabelReport,
    sum_of_labels: f64,
    integers: Vec<IntegerReport>,
    ids: Vec<IdCounts>,
}

struct IdCounts {
    column: String,
    missing: u64,
    distinct: Counter,
    max: Option<u32>,
}

impl Columns {
    fn new() -> Self {
        let integer = |column| IntegerReport {
            column: Column::Integer(column).to_string(),
            missing: 0,
            negative: 0,
            min: None,
            max: None,
        };
        let id = |column| IdCounts {
            column: Column::Id(column).to_string(),
            missing: 0,
            distinct: Counter::new(),
            max: None,
        };
        Self {
            labels: LabelReport::default(),
            sum_of_labels: 0.0,
            integers: (0..DENSE).map(integer).collect(),
            ids: (0..SPARSE).map(id).collect(),
        }
    }

    fn add(&mut self, row: &Row) {
        let labels = &mut self.labels;
        let count = match row.label {
            0.0 => &mut labels.zeros,
            1.0 => &mut labels.ones,
            _ => &mut labels.soft,
        };
        *count += 1;
        self.sum_of_labels += f64::from(row.label);
        for (integer, report) in row.integers.iter().zip(&mut self.integers) {
            match *integer {
                None => report.missing += 1,
                Some(x) => {
                    report.negative += u64::from(x < 0);
                    report.min = Some(report.min.map_or(x, |min| min.min(x)));
                    report.max = report.max.max(Some(x));
                }
            }
        }
        for (id, counts) in row.ids.iter().zip(&mut self.ids) {
            match *id {
                None => counts.missing += 1,
                Some(id) => {
                    counts.distinct.add(id);
                    counts.max = counts.max.max(Some(id));
                }
            }
        }
    }

    fn labels(&self, rows: u64) -> LabelReport {
        LabelReport { mean: self.sum_of_labels / rows as f64, ..self.labels }
    }
}

impl IdCounts {
    fn report(self) -> IdReport {
        let Self { column, missing, distinct, max } = self;
        IdReport { column, missing, distinct: distinct.distinct(), max }
    }
}

/// Bytes and SHA-256 of a file as stored.
fn check_sum(path: &Path) -> Result<(u64, String)> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; 1 << 18];
    let mut hash = Sha256::new();
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                hash.update(&buffer[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        write!(text, "{byte:02x}").expect("invariant: writing to a string cannot fail");
    }
    Ok((bytes, text))
}
