//! Routing from plain arrays: owners of ids, distinct ids, sums by distinct id.

use super::Cuda;
use super::keys::covering;
use super::records::RowMap;
use super::rules::lanes;
use super::sort::Pairs;
use super::update::upload;
use crate::cpu::sort::bits_for;
use crate::shape::{self, same};
use crate::{Bucketized, Error, JaggedRef, Mat, Result, RowMapView, Unique};
use emb_cuda::{Kept, Shape, Stream, View, ViewMut};

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks for each multiprocessor.
const WAVES: u32 = 8;

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pairs: Pairs,
    values: Kept<i64>,
    offsets: Kept<u64>,
    maps: Kept<RowMap>,
    maps_host: Vec<RowMap>,
    starts: Kept<u64>,
    starts_host: Vec<u64>,
    bad: Kept<u32>,
    lengths: Kept<u64>,
    ids: Kept<i64>,
    positions: Kept<u64>,
    indices: Kept<u32>,
}

fn over(stream: &Stream, items: usize) -> Result<Shape> {
    Ok(Shape::covering(items as u64, THREADS, WAVES * stream.device().multiprocessors()?))
}

/// Kernels count in 32 bits.
fn count_of(operation: &'static str, what: &'static str, len: usize) -> Result<u32> {
    let expected = u32::MAX as usize;
    let most = u32::try_from(len).ok().filter(|&len| len < u32::MAX);
    most.ok_or(Error::Shape { operation, what, expected, got: len })
}

/// See [`Backend::bucketize`](crate::Backend::bucketize).
pub(super) fn bucketize(
    cuda: &mut Cuda,
    batch: JaggedRef<'_>,
    maps: &[RowMapView<'_>],
    out: &mut Bucketized<'_>,
) -> Result<()> {
    let Cuda { stream, route, .. } = cuda;
    let owners = route.tell_maps(stream, batch, maps)?;
    let bags = batch.features() * batch.batch;
    check_offsets(batch, bags)?;
    same("bucketize", "lengths", owners * bags, out.lengths.len())?;
    same("bucketize", "ids", batch.values.len(), out.ids.len())?;
    same("bucketize", "positions", batch.values.len(), out.positions.len())?;
    let count = count_of("bucketize", "values, at most", batch.values.len())?;
    count_of("bucketize", "bags, at most", bags)?;
    if count == 0 {
        out.lengths.fill(0);
        return Ok(());
    }
    if let Some(position) = route.find_owners(stream, batch)? {
        return Err(no_owner(batch, position));
    }
    route.split(stream, batch, owners, out)
}

/// See [`Backend::unique`](crate::Backend::unique).
pub(super) fn unique(cuda: &mut Cuda, ids: &[i64], out: &mut Unique<'_>) -> Result<usize> {
    let Cuda { stream, route, .. } = cuda;
    same("unique", "ids", ids.len(), out.ids.len())?;
    same("unique", "inverse", ids.len(), out.inverse.len())?;
    if let Some(position) = ids.iter().position(|&id| id < 0) {
        return Err(Error::NegativeId { position, id: ids[position] });
    }
    let count = count_of("unique", "ids, at most", ids.len())?;
    let Some(&largest) = ids.iter().max() else { return Ok(0) };
    let device = stream.device();
    let (keys, tags) = route.pairs.room(stream, ids.len())?;
    stream.upload(bytemuck::cast_slice(ids), keys)?;
    let none: (Option<View<'_, u32>>, Option<ViewMut<'_, u64>>) = (None, None);
    let args = (none.0, count, none.1, tags);
    // SAFETY: a tag for each id.
    unsafe { stream.launch(device.kernel("emb_positions")?, over(stream, ids.len())?, args) }?;
    route.pairs.sort(stream, bits_for(largest as u64 + 1))?;
    route.pairs.find_runs(stream, None)?;
    let sorted = route.pairs.sorted(stream)?;
    let mut distinct = route.ids.room(stream, ids.len())?.view_mut(0..ids.len());
    let mut inverse = route.indices.room(stream, ids.len())?.view_mut(0..ids.len());
    let to = (distinct.reborrow(), inverse.reborrow());
    let args = (sorted.keys, sorted.tags, count, sorted.tiles, to.0, to.1);
    // SAFETY: there are no more runs than ids; tags are positions of ids.
    unsafe { stream.launch(device.kernel("emb_unique")?, sorted.tiled(), args) }?;
    let mut found = [0];
    stream.download(sorted.count, &mut found)?;
    let found = found[0] as usize;
    stream.download(distinct.as_view().slice(0..found), &mut out.ids[..found])?;
    stream.download(inverse.as_view(), out.inverse)?;
    Ok(found)
}

/// See [`Backend::segment_sum`](crate::Backend::segment_sum).
pub(super) fn segment_sum(
    cuda: &mut Cuda,
    values: Mat<View<'_, f32>>,
    inverse: &[u32],
    mut out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    let Cuda { stream, route, .. } = cuda;
    shape::mat("segment_sum", shape::names!("values"), &values, inverse.len(), values.cols)?;
    shape::mat("segment_sum", shape::names!("output"), &out, out.rows, values.cols)?;
    if let Some(&index) = inverse.iter().find(|&&index| index as usize >= out.rows) {
        let (expected, got) = (out.rows, index as usize);
        return Err(Error::Shape { operation: "segment_sum", what: "index below", expected, got });
    }
    let count = count_of("segment_sum", "values, at most", inverse.len())?;
    let (rows, cols, device) = (out.rows as u64, out.cols as u64, stream.device());
    let shape = over(stream, out.rows * out.cols)?;
    let args = (out.data.reborrow(), rows, cols, out.stride as u64);
    // SAFETY: the matrix lies in its memory.
    unsafe { stream.launch(device.kernel("emb_clear_rows")?, shape, args) }?;
    if count == 0 || cols == 0 {
        return Ok(());
    }
    let indices = upload(&mut route.indices, stream, inverse)?;
    let (keys, tags) = route.pairs.room(stream, inverse.len())?;
    let args = (indices, count, keys, tags);
    // SAFETY: a key and a tag for each index.
    unsafe { stream.launch(device.kernel("emb_positions")?, over(stream, inverse.len())?, args) }?;
    route.pairs.sort(stream, bits_for(rows))?;
    route.pairs.find_runs(stream, None)?;
    let sorted = route.pairs.sorted(stream)?;
    let lanes = lanes(values.cols);
    let (stride, cols) = (values.stride as u64, values.cols as u32);
    let (runs, total, tags) = (sorted.runs, sorted.count, sorted.tags);
    let to = (out.data, out.stride as u64);
    let args = (runs, total, tags, values.data, stride, to.0, to.1, cols, lanes);
    let shape = covering(stream, inverse.len(), lanes)?;
    // SAFETY: indices are below the rows of the output, tags below those of the values.
    Ok(unsafe { stream.launch(device.kernel("emb_segment_sums")?, shape, args) }?)
}

impl Scratch {
    /// Describes the maps to the device; returns the number of owners, the same for all.
    fn tell_maps(
        &mut self,
        stream: &Stream,
        batch: JaggedRef<'_>,
        maps: &[RowMapView<'_>],
    ) -> Result<usize> {
        same("bucketize", "row maps, one for each feature", batch.features(), maps.len())?;
        self.maps_host.clear();
        self.starts_host.clear();
        let mut all = None;
        for map in maps {
            let first = self.starts_host.len() as u64;
            let (owners, modulo) = match map {
                RowMapView::Range(starts) => {
                    self.starts_host.extend_from_slice(starts);
                    (starts.len().saturating_sub(1), 0)
                }
                RowMapView::Modulo { owners } => (*owners, 1),
            };
            same("bucketize", "owners of a row map", *all.get_or_insert(owners), owners)?;
            self.maps_host.push(RowMap { owners: owners as u64, first, modulo, padding: 0 });
        }
        upload(&mut self.maps, stream, &self.maps_host)?;
        upload(&mut self.starts, stream, &self.starts_host)?;
        Ok(all.unwrap_or(0))
    }

    /// Finds the owner of every id; the first position without one, if there is any.
    fn find_owners(&mut self, stream: &Stream, batch: JaggedRef<'_>) -> Result<Option<usize>> {
        let (len, bags) = (batch.values.len(), batch.features() * batch.batch);
        let values = upload(&mut self.values, stream, batch.values)?;
        let offsets = upload(&mut self.offsets, stream, batch.offsets)?;
        upload(&mut self.bad, stream, &[u32::MAX])?;
        let mut bad = self.bad.room(stream, 1)?.view_mut(0..1);
        let maps = self.maps.room(stream, 1)?.whole();
        let starts = self.starts.room(stream, 1)?.whole();
        let (keys, tags) = self.pairs.room(stream, len)?;
        let (samples, bags, count) = (batch.batch as u32, bags as u32, len as u32);
        let args =
            (values, count, offsets, samples, bags, maps, starts, keys, tags, bad.reborrow());
        let kernel = stream.device().kernel("emb_owners")?;
        // SAFETY: a map for each feature with its starts; a key and a tag for each value.
        unsafe { stream.launch(kernel, over(stream, len)?, args) }?;
        let mut first = [0];
        stream.download(bad.as_view(), &mut first)?;
        Ok((first[0] != u32::MAX).then_some(first[0] as usize))
    }

    /// Lengths, local ids and positions by owner; all ids have one.
    fn split(
        &mut self,
        stream: &Stream,
        batch: JaggedRef<'_>,
        owners: usize,
        out: &mut Bucketized<'_>,
    ) -> Result<()> {
        let (device, len) = (stream.device(), batch.values.len());
        let (bags, samples, count) =
            ((batch.features() * batch.batch) as u32, batch.batch as u32, len as u32);
        let cells = out.lengths.len();
        let mut lengths = self.lengths.room(stream, cells)?.view_mut(0..cells);
        stream.clear(lengths.reborrow())?;
        let offsets = self.offsets.room(stream, 1)?.whole();
        let args = (offsets, bags, self.pairs.sorted(stream)?.keys, lengths.reborrow());
        let shape = over(stream, bags as usize)?;
        // SAFETY: owners of all values, not sorted yet; a length for each owner and bag.
        unsafe { stream.launch(device.kernel("emb_owner_lengths")?, shape, args) }?;
        self.pairs.sort(stream, bits_for(owners as u64))?;
        let sorted = self.pairs.sorted(stream)?;
        let values = self.values.room(stream, 1)?.whole();
        let maps = self.maps.room(stream, 1)?.whole();
        let starts = self.starts.room(stream, 1)?.whole();
        let mut ids = self.ids.room(stream, len)?.view_mut(0..len);
        let mut positions = self.positions.room(stream, len)?.view_mut(0..len);
        let to = (ids.reborrow(), positions.reborrow());
        let from = (sorted.keys, sorted.tags);
        let args =
            (from.0, from.1, count, values, offsets, samples, bags, maps, starts, to.0, to.1);
        // SAFETY: as above; an id and a position for each value.
        unsafe { stream.launch(device.kernel("emb_owner_ids")?, over(stream, len)?, args) }?;
        stream.download(lengths.as_view(), out.lengths)?;
        stream.download(ids.as_view(), out.ids)?;
        Ok(stream.download(positions.as_view(), out.positions)?)
    }
}

/// Kernels would read what is not there.
fn check_offsets(batch: JaggedRef<'_>, bags: usize) -> Result<()> {
    let offsets = batch.offsets;
    same("bucketize", "offsets", bags + 1, offsets.len())?;
    if let Some(index) = (1..=bags).find(|&index| offsets[index] < offsets[index - 1]) {
        let [previous, next] = [index - 1, index].map(|index| offsets[index] as i64);
        return Err(Error::OffsetsDecrease { index, previous, next });
    }
    if offsets[0] != 0 {
        return Err(Error::OffsetsStart { first: offsets[0] as i64 });
    }
    same("bucketize", "last offset", batch.values.len(), offsets[bags] as usize)
}

fn no_owner(batch: JaggedRef<'_>, position: usize) -> Error {
    let bag = batch.offsets.partition_point(|&offset| offset as usize <= position) - 1;
    Error::NoOwner {
        feature: batch.names[bag / batch.batch].clone(),
        sample: bag % batch.batch,
        position: position - batch.offsets[bag] as usize,
        id: batch.values[position],
    }
}
