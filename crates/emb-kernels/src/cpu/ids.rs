//! The one pass over ids that everything else relies on: bounds, then first touch.

use super::Cpu;
use super::parallel::split;
use super::table::CpuTables;
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
        position => Err(out_of_range(tables, map, batch, position)),
    }
}

/// Checks that a batch, a map and tables belong together.
pub(crate) fn check_shapes(
    operation: &'static str,
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
) -> Result<()> {
    let features = map.features().len();
    expect(operation, "features of the batch", features, batch.names.len())?;
    expect(operation, "offsets", features * batch.batch + 1, batch.offsets.len())?;
    expect(operation, "values", batch.len, batch.values.len())?;
    let last = batch.offsets.last().copied().unwrap_or(0);
    expect(operation, "last offset", batch.len, last as usize)?;
    if let Some(weights) = batch.weights {
        expect(operation, "per-sample weights", batch.len, weights.len())?;
    }
    for (f, feature) in map.features().iter().enumerate() {
        let Some(table) = tables.tables().get(feature.table) else {
            return Err(Error::UnknownTable {
                feature: feature.name.clone(),
                table: feature.table,
                tables: tables.tables().len(),
            });
        };
        expect(operation, "dim of a feature's table", map.dim(f), table.dim)?;
    }
    Ok(())
}

/// An [`Error::Shape`] unless the two numbers are equal.
pub(crate) fn expect(
    operation: &'static str,
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { operation, what, expected, got }) }
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

/// Names everything about the id at `position` of the values.
fn out_of_range(
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    position: usize,
) -> Error {
    let bag = batch.offsets.partition_point(|&offset| offset as usize <= position) - 1;
    let (f, sample) = (bag / batch.batch, bag % batch.batch);
    let table = &tables.tables()[map.features()[f].table];
    Error::IdOutOfRange {
        table: table.name.clone(),
        feature: map.features()[f].name.clone(),
        sample,
        position: position - batch.offsets[bag] as usize,
        id: batch.values[position],
        rows: table.rows,
    }
}
