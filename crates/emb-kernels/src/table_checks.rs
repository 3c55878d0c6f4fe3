//! What tables are asked before they exist, and before their rows are copied, whatever the backend.

use crate::shape::same;
use crate::{Error, Result, TableSpec};
use emb_optim::Extent;

/// Refuses tables that cannot be, or not together.
pub(crate) fn check_tables(specs: &[TableSpec]) -> Result<()> {
    for (position, spec) in specs.iter().enumerate() {
        check(spec)?;
        let mut others = specs[..position].iter().filter(|other| other.name == spec.name);
        others.try_for_each(|other| check_parts(spec, other))?;
    }
    Ok(())
}

/// Refuses a table position that is not one.
pub(crate) fn check_position(
    operation: &'static str,
    specs: &[TableSpec],
    table: usize,
) -> Result<()> {
    let (expected, got) = (specs.len(), table);
    let what = "table position";
    if got < expected { Ok(()) } else { Err(Error::Shape { operation, what, expected, got }) }
}

/// How many rows from `first` on `len` weights are.
pub(crate) fn whole_rows(
    operation: &'static str,
    spec: &TableSpec,
    first: u64,
    len: usize,
) -> Result<usize> {
    let rows = len / spec.dim;
    same(operation, "weights of whole rows", rows * spec.dim, len)?;
    if first.checked_add(rows as u64).is_none_or(|end| end > spec.rows) {
        return Err(Error::BadTable {
            table: spec.name.clone(),
            what: format!("{operation} of rows {first}..+{rows} of {}", spec.rows),
        });
    }
    Ok(rows)
}

/// Refuses a row by number that the table does not have.
pub(crate) fn check_rows(operation: &'static str, spec: &TableSpec, rows: &[u64]) -> Result<()> {
    let Some(row) = rows.iter().find(|&&row| row >= spec.rows) else { return Ok(()) };
    Err(Error::BadTable {
        table: spec.name.clone(),
        what: format!("{operation} of row {row} of {}", spec.rows),
    })
}

/// Values of a slot in one row.
pub(crate) fn slot_width(spec: &TableSpec, extent: Extent) -> usize {
    match extent {
        Extent::Row => 1,
        Extent::Element => spec.dim,
    }
}

fn check(spec: &TableSpec) -> Result<()> {
    let bad = |what: String| Err(Error::BadTable { table: spec.name.clone(), what });
    let window = &spec.window;
    if spec.rows == 0 {
        return bad("0 rows, at least 1 needed".to_owned());
    }
    if spec.dim == 0 || spec.dim > TableSpec::MAX_DIM {
        return bad(format!("dim {} is outside 1..={}", spec.dim, TableSpec::MAX_DIM));
    }
    if window.first_column.checked_add(spec.dim).is_none_or(|end| end > window.table_dim) {
        let (first, whole) = (window.first_column, window.table_dim);
        return bad(format!("columns {first}..+{} are outside the table's {whole}", spec.dim));
    }
    let last = window.row_step.checked_mul(spec.rows - 1);
    if window.row_step == 0 || last.and_then(|last| last.checked_add(window.first_row)).is_none() {
        let (first, step) = (window.first_row, window.row_step);
        return bad(format!("{} rows from {first} in steps of {step} leave 64 bits", spec.rows));
    }
    Ok(())
}

/// Refuses two tables of one name that cannot be different parts of one table.
fn check_parts(spec: &TableSpec, other: &TableSpec) -> Result<()> {
    if spec.window == other.window {
        return Err(Error::DuplicateName { kind: "table", name: spec.name.clone() });
    }
    let (dim, before) = (spec.window.table_dim, other.window.table_dim);
    if dim == before {
        return Ok(());
    }
    Err(Error::BadTable {
        table: spec.name.clone(),
        what: format!("a part of {dim} columns in all, but another part of it says {before}"),
    })
}
