//! Lists of tables as CSV, with the header `workload,table,rows,dim,pooling`.

use crate::config::nearest;
use crate::{Error, Result};
use emb_shard::WorkloadRow;
use serde::Deserialize;
use std::path::Path;

const COLUMNS: [&str; 5] = ["workload", "table", "rows", "dim", "pooling"];

/// A line as text: names that look like numbers stay as they are written.
#[derive(Deserialize)]
struct Line {
    workload: String,
    table: String,
    rows: u64,
    dim: usize,
    pooling: f64,
}

/// The tables of all workloads in a file.
///
/// # Errors
/// A file that can't be read; by line and column: columns that are missing, unknown or there
/// twice, fields that are no numbers, lines of too many or too few fields.
pub(super) fn read(path: &Path) -> Result<Vec<WorkloadRow>> {
    let failed = |error: csv::Error| located(path, &error);
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(failed)?;
    check_header(path, reader.headers().map_err(failed)?)?;
    let lines = reader.deserialize::<Line>();
    let rows: Vec<WorkloadRow> = lines
        .map(|line| {
            line.map_err(failed).map(|line| WorkloadRow {
                workload: line.workload,
                table: line.table,
                rows: line.rows,
                dim: line.dim,
                pooling: line.pooling,
            })
        })
        .collect::<Result<_>>()?;
    if rows.is_empty() {
        return Err(Error::Config(format!("{}: no tables", path.display())));
    }
    Ok(rows)
}

fn check_header(path: &Path, header: &csv::StringRecord) -> Result<()> {
    let refuse = |what: String| {
        let header = COLUMNS.join(",");
        Err(Error::Config(format!("{}:1: {what}; the header is {header}", path.display())))
    };
    for (number, name) in header.iter().enumerate() {
        if !COLUMNS.contains(&name) {
            let near = nearest::nearest(name, &COLUMNS)
                .map_or_else(String::new, |near| format!("did you mean {near:?}? "));
            return refuse(format!("column {}: {name:?}: {near}unknown", number + 1));
        }
        if header.iter().take(number).any(|other| other == name) {
            return refuse(format!("column {}: a second {name:?}", number + 1));
        }
    }
    match COLUMNS.iter().find(|name| !header.iter().any(|own| own == **name)) {
        Some(name) => refuse(format!("there is no column {name:?}")),
        None => Ok(()),
    }
}

fn located(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or_else(String::new, |at| format!(":{}", at.line()));
    let what = match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => match err.field() {
            Some(field) => format!("column {}: {}", field + 1, err.kind()),
            None => err.kind().to_string(),
        },
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields, the header has {expected_len}")
        }
        _ => error.to_string(),
    };
    Error::Config(format!("{}{line}: {what}", path.display()))
}
