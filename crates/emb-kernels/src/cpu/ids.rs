//! The one pass over ids that everything else relies on: bounds, then first touch.

use super::Cpu;
use super::parallel::split;
use super::table::CpuTables;
use crate::batch_checks::{Lengths, check_batch, out_of_range};
pub(crate) use crate::shape::same as expect;
use crate::{Error, FeatureMap, JaggedView, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ids that one part of the pass looks at.
const PART: usize = 1 << 15;

/// Checks every id of `features` against its table and initialises the rows, on the threads of
/// the current pool. Refuses the first bad id in the order of the batch, whatever the threads.
pub(crate) fn check_and_touch(
    threads: usize,
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    features: std::ops::Range<usize>,
) -> Result<()> {
    let start = batch.offsets[features.start * batch.batch] as usize;
    let end = batch.offsets[features.end * batch.batch] as usize;
    let ids = batch.values.get(start..end).ok_or(Error::Shape {
        operation: "jagged view",
        what: "values",
        expected: end,
        got: batch.values.len(),
    })?;
    let first_bad = AtomicUsize::new(usize::MAX);
    let parts = ids.len().div_ceil(PART);
    split(threads, parts, &|part: usize| {
        let (from, to) = (start + part * PART, (start + (part + 1) * PART).min(end));
        for f in features.clone() {
            let begin = (batch.offsets[f * batch.batch] as usize).max(from);
            let stop = (batch.offsets[(f + 1) * batch.batch] as usize).min(to);
            if begin >= stop {
                continue;
            }
            let table = &tables.tables()[map.features()[f].table];
            for (k, &id) in batch.values[begin..stop].iter().enumerate() {
                // A negative id is a huge unsigned one.
                if id as u64 >= table.rows {
                    first_bad.fetch_min(begin + k, Ordering::Relaxed);
                    return;
                }
                table.touch(id as u64);
            }
        }
    });
    match first_bad.into_inner() {
        usize::MAX => Ok(()),
        position => {
            let id = batch.values[position];
            Err(out_of_range(tables.specs(), map, batch.batch, batch.offsets, position, id))
        }
    }
}

/// Checks that a batch, a map and tables belong together.
pub(crate) fn check_shapes(
    operation: &'static str,
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
) -> Result<()> {
    let lengths = Lengths {
        names: batch.names.len(),
        batch: batch.batch,
        len: batch.len,
        offsets: batch.offsets.len(),
        values: batch.values.len(),
        last: batch.offsets.last().copied(),
        weights: batch.weights.map(<[f32]>::len),
    };
    check_batch(operation, tables.specs(), map, lengths)
}

/// An [`Error::Shape`] unless a matrix has this shape, and data for it.
pub(crate) fn expect_shape(
    operation: &'static str,
    what: &'static str,
    shape: (usize, usize, usize, usize),
    rows: usize,
    cols: usize,
) -> Result<()> {
    let (got_rows, got_cols, stride, len) = shape;
    expect(operation, what, rows, got_rows)?;
    expect(operation, what, cols, got_cols)?;
    let extent = if rows == 0 || cols == 0 { 0 } else { (rows - 1) * stride + cols };
    if len < extent || (rows > 1 && stride < cols) {
        return Err(Error::Shape { operation, what, expected: extent, got: len });
    }
    Ok(())
}
