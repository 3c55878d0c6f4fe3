//! Rows by number against the same rows one after the other.

use crate::support::Group;
use emb_kernels::{Backend, Cpu, Dtype, Error, Pooling, Rounding, RowTransfer, TableSpec};
use emb_optim::{Optimizer, RuleKind};

/// A table of each rule and type of weights, with its own initial weights.
fn specs() -> Vec<TableSpec> {
    let rules = [RuleKind::Sgd, RuleKind::AdaGrad, RuleKind::RowWiseAdaGrad, RuleKind::RowWiseAdam];
    let types = [Dtype::F32, Dtype::F16, Dtype::Bf16];
    let pairs = rules.into_iter().flat_map(|rule| types.map(|dtype| (rule, dtype)));
    let spec = |(t, (rule, dtype)): (usize, (RuleKind, Dtype))| TableSpec {
        dtype,
        rounding: Rounding::Nearest,
        ..TableSpec::new(format!("t{t}"), 700, 3 + t, Optimizer::new(rule))
    };
    pairs.enumerate().map(spec).collect()
}

/// Row `row` as `[weights, slot, slot..]`.
fn row(group: &mut Group, table: usize, row: usize) -> Vec<f32> {
    let dim = Cpu::specs(&group.tables)[table].dim;
    let (weights, state) = group.rows(table);
    let mut values = weights[row * dim..(row + 1) * dim].to_vec();
    for slot in &state {
        let width = slot.len() * dim / weights.len();
        values.extend_from_slice(&slot[row * width..(row + 1) * width]);
    }
    values
}

#[test]
fn rows_by_number_are_those_rows_touched_or_not() {
    let mut group = Group::new(&specs(), Pooling::Sum);
    for table in 0..specs().len() {
        // Two are written, so that one block of rows is touched and others are not.
        let rows = [650, 651];
        let mut written = [row(&mut group, table, 650), row(&mut group, table, 651)].concat();
        for (k, value) in written.iter_mut().enumerate() {
            *value = k as f32 - 2.0;
        }
        let write = RowTransfer::Write(&written);
        group.cpu.transfer_rows(&mut group.tables, table, &rows, write).expect("rows");
        // In any order, also twice.
        let rows = [699, 0, 651, 650, 0, 13];
        let mut read = vec![f32::NAN; written.len() / 2 * rows.len()];
        let into = RowTransfer::Read(&mut read);
        group.cpu.transfer_rows(&mut group.tables, table, &rows, into).expect("rows");
        let expected: Vec<f32> =
            rows.iter().flat_map(|&r| row(&mut group, table, r as usize)).collect();
        assert_eq!(read, expected, "table {table}");
        let second = 2 * (written.len() / 2)..3 * (written.len() / 2);
        assert_eq!(read[second], written[written.len() / 2..], "table {table}");
    }
}

#[test]
fn what_was_read_and_written_back_changes_no_bit() {
    let mut group = Group::new(&specs(), Pooling::Sum);
    for table in 0..specs().len() {
        let before = group.rows(table);
        let rows: Vec<u64> = (0..700).rev().step_by(3).collect();
        let elements = row(&mut group, table, 0).len();
        let mut values = vec![0.0; rows.len() * elements];
        let read = RowTransfer::Read(&mut values);
        group.cpu.transfer_rows(&mut group.tables, table, &rows, read).expect("rows");
        let write = RowTransfer::Write(&values);
        group.cpu.transfer_rows(&mut group.tables, table, &rows, write).expect("rows");
        assert!(group.rows(table) == before, "table {table}");
    }
}

#[test]
fn rows_beyond_the_table_and_other_lengths_are_refused_before_anything_is_written() {
    let mut group = Group::new(&specs(), Pooling::Sum);
    let before = group.rows(0);
    let elements = row(&mut group, 0, 0).len();
    let values = vec![1.0; 2 * elements];
    let mut write = |table, rows: &[u64], values| {
        let refused =
            group.cpu.transfer_rows(&mut group.tables, table, rows, RowTransfer::Write(values));
        refused.expect_err("refused")
    };
    let error = write(0, &[1, 700], &values);
    assert!(matches!(&error, Error::BadTable { table, .. } if table == "t0"), "{error}");
    assert!(error.to_string().contains("row 700 of 700"), "{error}");
    write(0, &[1, 2], &values[1..]);
    write(0, &[1], &values);
    write(specs().len(), &[1, 2], &values);
    assert!(group.rows(0) == before);
}
