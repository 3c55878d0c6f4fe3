//! Rows by number against the same rows one after the other.

use super::case::Random;
use super::{Case, Values, cases, values_of};
use crate::{Backend, RowTransfer, TableSpec};
use emb_optim::Extent;

/// Rows read by number are those rows, written ones hold what was written (of a row listed twice
/// the last), the others keep their bits, for another stream of the device as well; what does not fit
/// is refused before anything is written.
///
/// # Panics
/// When a bit differs, or when something is not refused.
pub fn transfer_rows<B: Backend>(make: impl Fn() -> B) {
    let mut backend = make();
    let mut another = backend.another().expect("another stream");
    // Every rule and type of weights is in each third of the cases.
    for case in cases().step_by(3) {
        let mut tables = backend.create_tables(&case.specs, case.seed).expect("tables");
        let mut expected = values_of(&mut backend, &mut tables);
        let mut random = Random(case.seed);
        for (t, spec) in case.specs.iter().enumerate() {
            let what = format!("case {}, table {t}", case.seed);
            // Of large tables a few rows, so that others are untouched.
            let count = (2 * spec.rows).min(40);
            let rows: Vec<u64> = (0..count).map(|_| random.below(spec.rows)).collect();
            let read = read(&mut backend, &mut tables, t, spec, &rows);
            assert_eq!(read, listed(&expected, t, spec, &rows), "{what}, untouched");

            // Eighths are exact in every type of weights.
            let written = || (random.below(64) as f32 - 32.0) / 8.0;
            let written: Vec<f32> = std::iter::repeat_with(written).take(read.len()).collect();
            let write = RowTransfer::Write(&written);
            backend.transfer_rows(&mut tables, t, &rows, write).expect("rows of the table");
            store(&mut expected, t, spec, &rows, &written);
            assert!(values_of(&mut backend, &mut tables) == expected, "{what}, written");
            let all: Vec<u64> = (0..spec.rows).rev().collect();
            let read = self::read(&mut another, &mut tables, t, spec, &all);
            assert!(read == listed(&expected, t, spec, &all), "{what}, read again");
        }
        refusals(&mut backend, &mut tables, &case);
        assert!(values_of(&mut backend, &mut tables) == expected, "case {}", case.seed);
    }
}

fn refusals<B: Backend>(backend: &mut B, tables: &mut B::Tables, case: &Case) {
    let (spec, count) = (&case.specs[0], case.specs.len());
    let mut values = vec![7.0; 2 * elements(spec)];
    for (table, rows, len, what) in [
        (0, &[0, spec.rows][..], values.len(), "a row beyond the table"),
        (0, &[0, u64::MAX], values.len(), "a row that no table has"),
        (0, &[0, 0], values.len() - 1, "too few values"),
        (0, &[0], values.len(), "too many values"),
        (count, &[0, 0], values.len(), "a table that is not there"),
    ] {
        let write = RowTransfer::Write(&values[..len]);
        backend.transfer_rows(tables, table, rows, write).expect_err(what);
        let read = RowTransfer::Read(&mut values[..len]);
        backend.transfer_rows(tables, table, rows, read).expect_err(what);
        assert!(values.iter().all(|&value| value == 7.0), "{what}: read all the same");
    }
}

fn read<B: Backend>(
    backend: &mut B,
    tables: &mut B::Tables,
    table: usize,
    spec: &TableSpec,
    rows: &[u64],
) -> Vec<f32> {
    let mut values = vec![f32::NAN; rows.len() * elements(spec)];
    let read = RowTransfer::Read(&mut values);
    backend.transfer_rows(tables, table, rows, read).expect("rows of the table");
    values
}

/// Values of a row: weights, then each slot.
fn elements(spec: &TableSpec) -> usize {
    spec.dim + widths(spec).sum::<usize>()
}

/// Values of a row in each slot.
fn widths(spec: &TableSpec) -> impl Iterator<Item = usize> {
    let slots = spec.optimizer.slots().iter();
    slots.map(|slot| if slot.extent == Extent::Row { 1 } else { spec.dim })
}

/// Rows as [`RowTransfer`] lists them.
fn listed(values: &Values, table: usize, spec: &TableSpec, rows: &[u64]) -> Vec<f32> {
    let mut listed = Vec::new();
    for &row in rows {
        let row = row as usize;
        listed.extend_from_slice(&values.weights[table][row * spec.dim..][..spec.dim]);
        for (state, width) in values.state[table].iter().zip(widths(spec)) {
            listed.extend_from_slice(&state[row * width..][..width]);
        }
    }
    listed
}

/// The inverse of [`listed`].
fn store(values: &mut Values, table: usize, spec: &TableSpec, rows: &[u64], listed: &[f32]) {
    for (&row, listed) in rows.iter().zip(listed.chunks_exact(elements(spec))) {
        let row = row as usize;
        let (weights, mut rest) = listed.split_at(spec.dim);
        values.weights[table][row * spec.dim..][..spec.dim].copy_from_slice(weights);
        for (state, width) in values.state[table].iter_mut().zip(widths(spec)) {
            let (slot, others) = rest.split_at(width);
            state[row * width..][..width].copy_from_slice(slot);
            rest = others;
        }
    }
}
