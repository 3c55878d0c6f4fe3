//! Rows by number, to and from the host.
//!
//! Moves `dim * element bytes + state bytes` a row on the side of the table and 4 bytes an element
//! on that of the host.

use super::gather::{find, load_row, slot_of, store_row, width};
use super::ids::expect;
use super::table::{CpuTables, Table};
use crate::table_checks::check_rows;
use crate::{Result, RowTransfer};

/// Rows between a prefetch and its use.
const DISTANCE: usize = 8;

const OPERATION: &str = "transfer_rows";

/// See [`Backend::transfer_rows`](crate::Backend::transfer_rows).
pub(crate) fn transfer_rows(
    tables: &mut CpuTables,
    table: usize,
    rows: &[u64],
    transfer: RowTransfer<'_>,
) -> Result<()> {
    let table = find(tables, table, OPERATION)?;
    let state: usize = table.slots.iter().map(|slot| width(table, slot.extent)).sum();
    let elements = table.dim + state;
    let given = match &transfer {
        RowTransfer::Read(values) => values.len(),
        RowTransfer::Write(values) => values.len(),
    };
    expect(OPERATION, "values, all of every row", rows.len() * elements, given)?;
    check_rows(OPERATION, table.spec(), rows)?;
    match transfer {
        RowTransfer::Read(values) => {
            for (k, values) in values.chunks_exact_mut(elements).enumerate() {
                prefetch(table, rows, k);
                read(table, rows[k], values);
            }
        }
        RowTransfer::Write(values) => {
            for (k, values) in values.chunks_exact(elements).enumerate() {
                prefetch(table, rows, k);
                write(table, rows[k], values);
            }
        }
    }
    Ok(())
}

fn prefetch(table: &Table, rows: &[u64], k: usize) {
    if let Some(&next) = rows.get(k + DISTANCE) {
        table.prefetch_row(next);
    }
}

fn read(table: &Table, row: u64, values: &mut [f32]) {
    let (weights, mut state) = values.split_at_mut(table.dim);
    if !table.is_touched(row) {
        table.initial_row(row, weights);
        for (s, slot) in table.slots.iter().enumerate() {
            let (values, rest) = state.split_at_mut(width(table, slot.extent));
            values.fill(table.initial_slot(s));
            state = rest;
        }
        return;
    }
    load_row(table, row, weights);
    for s in 0..table.slots.len() {
        let (stored, width) = slot_of(table, row, s);
        let (values, rest) = state.split_at_mut(width);
        values.copy_from_slice(stored);
        state = rest;
    }
}

fn write(table: &Table, row: u64, values: &[f32]) {
    table.touch(row);
    let (weights, mut state) = values.split_at(table.dim);
    store_row(table, row, weights);
    for s in 0..table.slots.len() {
        let (stored, width) = slot_of(table, row, s);
        let (values, rest) = state.split_at(width);
        stored.copy_from_slice(values);
        state = rest;
    }
}
