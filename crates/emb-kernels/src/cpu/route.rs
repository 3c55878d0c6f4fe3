//! Routing of host batches: owners of ids, distinct ids, sums by distinct id.

use super::ids::{expect, expect_shape};
use super::parallel::split;
use super::shared::SharedMut;
use super::sort::{bits_for, sort};
use crate::{Bucketized, Error, JaggedRef, Mat, Result, RowMapView, Unique};

/// Scratch of the routing operations, kept between calls.
#[derive(Debug, Default)]
pub(crate) struct RouteScratch {
    owners: Vec<u32>,
    cursors: Vec<u64>,
    keys: Vec<u64>,
    spare: Vec<u64>,
    order: Vec<u32>,
}

/// See [`Backend::bucketize`](crate::Backend::bucketize).
pub(crate) fn bucketize(
    scratch: &mut RouteScratch,
    batch: JaggedRef<'_>,
    maps: &[RowMapView<'_>],
    out: &mut Bucketized<'_>,
) -> Result<()> {
    let owners = check_maps(batch, maps)?;
    let bags = batch.features() * batch.batch;
    expect("bucketize", "lengths", owners * bags, out.lengths.len())?;
    expect("bucketize", "ids", batch.values.len(), out.ids.len())?;
    expect("bucketize", "positions", batch.values.len(), out.positions.len())?;
    scratch.owners.clear();
    for (f, map) in maps.iter().enumerate() {
        for position in batch.feature_range(f) {
            let Some(owner) = owner(map, batch.values[position]) else {
                return Err(no_owner(batch, f, position));
            };
            scratch.owners.push(owner as u32);
        }
    }
    out.lengths.fill(0);
    for (bag, pair) in batch.offsets.windows(2).enumerate() {
        for &owner in &scratch.owners[pair[0] as usize..pair[1] as usize] {
            out.lengths[owner as usize * bags + bag] += 1;
        }
    }
    let mut start = 0;
    scratch.cursors.clear();
    scratch.cursors.extend(out.lengths.iter().map(|length| {
        start += length;
        start - length
    }));
    for (bag, pair) in batch.offsets.windows(2).enumerate() {
        let map = &maps[bag / batch.batch];
        for position in pair[0] as usize..pair[1] as usize {
            let owner = scratch.owners[position] as usize;
            let cursor = &mut scratch.cursors[owner * bags + bag];
            out.ids[*cursor as usize] = local(map, owner, batch.values[position]);
            out.positions[*cursor as usize] = position as u64;
            *cursor += 1;
        }
    }
    Ok(())
}

/// See [`Backend::unique`](crate::Backend::unique).
pub(crate) fn unique(
    scratch: &mut RouteScratch,
    ids: &[i64],
    out: &mut Unique<'_>,
) -> Result<usize> {
    expect("unique", "ids", ids.len(), out.ids.len())?;
    expect("unique", "inverse", ids.len(), out.inverse.len())?;
    if let Some(position) = ids.iter().position(|&id| id < 0) {
        let id = ids[position];
        return Err(Error::NegativeId { position, id });
    }
    if ids.len() > u32::MAX as usize {
        let expected = u32::MAX as usize;
        return Err(Error::Shape { operation: "unique", what: "ids", expected, got: ids.len() });
    }
    let largest = ids.iter().copied().max().unwrap_or(0) as u64;
    let (width, low) = (bits_for(largest + 1), bits_for(ids.len() as u64));
    if width + low <= u64::BITS {
        scratch.keys.clear();
        scratch.keys.extend(ids.iter().enumerate().map(|(k, &id)| (id as u64) << low | k as u64));
        sort(&mut scratch.keys, &mut scratch.spare, low, width);
        let mask = (1_u64 << low) - 1;
        Ok(number(scratch.keys.iter().map(|key| (key & mask) as usize), ids, out))
    } else {
        // Ids too wide to be packed with their position.
        scratch.order.clear();
        scratch.order.extend(0..ids.len() as u32);
        scratch.order.sort_unstable_by_key(|&k| ids[k as usize]);
        Ok(number(scratch.order.iter().map(|&k| k as usize), ids, out))
    }
}

/// Numbers the ids, visited in ascending order.
fn number(order: impl Iterator<Item = usize>, ids: &[i64], out: &mut Unique<'_>) -> usize {
    let mut count = 0;
    for k in order {
        if count == 0 || out.ids[count - 1] != ids[k] {
            out.ids[count] = ids[k];
            count += 1;
        }
        out.inverse[k] = (count - 1) as u32;
    }
    count
}

/// See [`Backend::segment_sum`](crate::Backend::segment_sum).
#[expect(clippy::needless_pass_by_value, reason = "an exclusive view is handed over")]
pub(crate) fn segment_sum(
    threads: usize,
    values: Mat<&[f32]>,
    inverse: &[u32],
    out: Mat<&mut [f32]>,
) -> Result<()> {
    /// Fewest columns worth a part of their own: one cache line.
    const COLUMNS: usize = 16;
    let dim = values.cols;
    let shape = (values.rows, values.cols, values.stride, values.data.len());
    expect_shape("segment_sum", "values", shape, inverse.len(), dim)?;
    let shape = (out.rows, out.cols, out.stride, out.data.len());
    expect_shape("segment_sum", "output", shape, out.rows, dim)?;
    if let Some(&index) = inverse.iter().find(|&&index| index as usize >= out.rows) {
        let (expected, got) = (out.rows, index as usize);
        return Err(Error::Shape { operation: "segment_sum", what: "index below", expected, got });
    }
    let parts = if threads == 1 { 1 } else { dim.div_ceil(COLUMNS).min(threads) };
    let width = dim.div_ceil(parts.max(1)).next_multiple_of(COLUMNS);
    let (rows, stride) = (out.rows, out.stride);
    let out = SharedMut::new(out.data);
    split(threads, dim.div_ceil(width.max(1)), &|part: usize| {
        let first = part * width;
        let n = width.min(dim - first);
        for row in 0..rows {
            // SAFETY: every part has its own columns, and drops one row before the next.
            unsafe { out.part(row * stride + first, n) }.fill(0.0);
        }
        for (k, &row) in inverse.iter().enumerate() {
            let value = &values.data[k * values.stride + first..][..n];
            // SAFETY: as above.
            let sum = unsafe { out.part(row as usize * stride + first, n) };
            for (sum, v) in sum.iter_mut().zip(value) {
                *sum += v;
            }
        }
    });
    Ok(())
}

/// The number of owners, the same for all maps.
fn check_maps(batch: JaggedRef<'_>, maps: &[RowMapView<'_>]) -> Result<usize> {
    expect("bucketize", "row maps, one for each feature", batch.features(), maps.len())?;
    let owners = |map: &RowMapView<'_>| match map {
        RowMapView::Range(starts) => starts.len().saturating_sub(1),
        RowMapView::Modulo { owners } => *owners,
    };
    let first = maps.first().map_or(0, owners);
    for map in maps {
        expect("bucketize", "owners of a row map", first, owners(map))?;
    }
    if first > u32::MAX as usize {
        let expected = u32::MAX as usize;
        return Err(Error::Shape { operation: "bucketize", what: "owners", expected, got: first });
    }
    Ok(first)
}

fn owner(map: &RowMapView<'_>, id: i64) -> Option<usize> {
    let id = u64::try_from(id).ok()?;
    match *map {
        RowMapView::Range(starts) => {
            let after = starts.partition_point(|&start| start <= id);
            (after > 0 && after < starts.len()).then(|| after - 1)
        }
        RowMapView::Modulo { owners: 0 } => None,
        RowMapView::Modulo { owners } => Some((id % owners as u64) as usize),
    }
}

fn local(map: &RowMapView<'_>, owner: usize, id: i64) -> i64 {
    match *map {
        RowMapView::Range(starts) => id - starts[owner] as i64,
        RowMapView::Modulo { owners } => id / owners as i64,
    }
}

fn no_owner(batch: JaggedRef<'_>, f: usize, position: usize) -> Error {
    let bag = batch.offsets.partition_point(|&offset| offset as usize <= position) - 1;
    Error::NoOwner {
        feature: batch.names[f].clone(),
        sample: bag % batch.batch,
        position: position - batch.offsets[bag] as usize,
        id: batch.values[position],
    }
}
