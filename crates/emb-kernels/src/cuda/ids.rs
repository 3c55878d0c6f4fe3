//! Refusal of ids outside their tables, and what kernels are told about features.

use super::descriptors::FeatureDescriptor;
use super::pool::{Slot, slots_of};
use super::table::dtype_code;
use super::{Cuda, CudaTables};
use crate::batch_checks::{Lengths, check_batch, out_of_range};
use crate::shape::same;
use crate::{Error, FeatureMap, JaggedView, Pooling, Result};
use emb_cuda::{Kept, Shape, Stream, View};
use std::ops::Range;

/// Numbers of the report before the starts of sequences: `emb::Report` of `cuda/ids.cu`.
const REPORT: usize = 6;

/// Ids of a block: four a thread.
const IDS_OF_A_BLOCK: u64 = 1024;

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks for each multiprocessor.
const WAVES: u32 = 8;

/// Feature maps whose descriptors are kept in the device.
const MAPS: usize = 8;

/// Memory of the checks.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    maps: Vec<Features>,
    current: usize,
    fresh: Vec<FeatureDescriptor>,
    report: Kept<u64>,
    host: Vec<u64>,
}

/// What kernels are told about the features of one map over one group of tables.
#[derive(Debug, Default)]
struct Features {
    host: Vec<FeatureDescriptor>,
    descriptors: Kept<FeatureDescriptor>,
    slots: Kept<Slot>,
    slot_count: usize,
}

/// What the device says about the ids of a batch.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(super) struct Report {
    /// Position of the first id outside its table, `u64::MAX` where there is none.
    first_bad: u64,
    /// Values of the features that were looked at.
    pub(super) values: usize,
    /// Elements of the rows of all sequence features.
    pub(super) elements: usize,
}

impl Scratch {
    /// Descriptors of the features that were looked at last.
    pub(super) fn features(&mut self, stream: &Stream) -> Result<View<'_, FeatureDescriptor>> {
        let map = &mut self.maps[self.current];
        let len = map.host.len();
        Ok(map.descriptors.room(stream, len)?.view(0..len))
    }

    /// The same, as the host has them.
    pub(super) fn told(&self) -> &[FeatureDescriptor] {
        &self.maps[self.current].host
    }

    /// Descriptors of those features, and the slots of a pooled lookup of them.
    pub(super) fn slots(
        &mut self,
        stream: &Stream,
    ) -> Result<(View<'_, FeatureDescriptor>, View<'_, Slot>)> {
        let map = &mut self.maps[self.current];
        let (len, slots) = (map.host.len(), map.slot_count);
        let descriptors = map.descriptors.room(stream, len)?.view(0..len);
        Ok((descriptors, map.slots.room(stream, slots)?.view(0..slots)))
    }

    /// Descriptors of those features, and where the rows of each sequence feature begin in the
    /// output of a gather of all.
    pub(super) fn starts(
        &mut self,
        stream: &Stream,
    ) -> Result<(View<'_, FeatureDescriptor>, View<'_, u64>)> {
        let map = &mut self.maps[self.current];
        let len = map.host.len();
        let descriptors = map.descriptors.room(stream, len)?.view(0..len);
        let report = self.report.room(stream, REPORT + len + 1)?;
        Ok((descriptors, report.view(REPORT..REPORT + len + 1)))
    }

    /// Values of sequence feature `f` of those features.
    pub(super) fn sequence_values(&self, f: usize) -> usize {
        let starts = &self.host[REPORT..];
        ((starts[f + 1] - starts[f]) / u64::from(self.maps[self.current].host[f].dim)) as usize
    }

    /// Makes the features of `map` the current ones; uploads them unless they are known.
    pub(super) fn tell(
        &mut self,
        stream: &Stream,
        tables: &CudaTables,
        map: &FeatureMap,
    ) -> Result<()> {
        // Features have addresses of the tables, which may be those of another device.
        stream.device().reach(tables.descriptors().home().device())?;
        self.fresh.clear();
        let mut sequences = 0;
        for (f, feature) in map.features().iter().enumerate() {
            let table = &tables.host()[feature.table];
            self.fresh.push(FeatureDescriptor {
                table: feature.table as u32,
                pooling: pooling_code(feature.pooling),
                column: map.column(f) as u32,
                dim: table.dim,
                weights: table.weights,
                rows: table.rows,
                first_key: table.first_key,
                dtype: dtype_code(tables.specs()[feature.table].dtype),
                sequence: sequences,
            });
            sequences += u32::from(feature.pooling == Pooling::None);
        }
        if let Some(known) = self.maps.iter().position(|map| map.host == self.fresh) {
            self.current = known;
            return Ok(());
        }
        if self.maps.len() < MAPS {
            self.maps.push(Features::default());
            self.current = self.maps.len() - 1;
        } else {
            self.current = (self.current + 1) % MAPS;
        }
        let (current, fresh) = (&mut self.maps[self.current], &self.fresh);
        // Not known before the device has been told: it may be full.
        current.host.clear();
        let descriptors = current.descriptors.room(stream, fresh.len())?;
        stream.upload(fresh, descriptors.view_mut(0..fresh.len()))?;
        let slots = slots_of(fresh);
        current.slot_count = slots.len();
        let room = current.slots.room(stream, slots.len())?;
        stream.upload(&slots, room.view_mut(0..slots.len()))?;
        current.host.clone_from(fresh);
        Ok(())
    }
}

/// Checks what needs no look at the batch itself.
pub(super) fn check_shapes(
    operation: &'static str,
    tables: &CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
) -> Result<()> {
    let lengths = Lengths {
        names: batch.names.len(),
        batch: batch.batch,
        len: batch.len,
        offsets: batch.offsets.len(),
        values: batch.values.len(),
        last: None,
        weights: batch.weights.map(View::len),
    };
    check_batch(operation, tables.specs(), map, lengths)?;
    // Kernels count the ids of neighbouring bags in 32 bits.
    let most = u32::MAX as usize / 2;
    if batch.len > most {
        let (what, expected, got) = ("values of one batch, at most", most, batch.len);
        return Err(Error::Shape { operation, what, expected, got });
    }
    Ok(())
}

/// Checks shapes, and looks at the ids of `features`; waits for the device. Nothing is refused yet
/// that depends on ids: see [`Report::refuse`].
pub(super) fn look(
    cuda: &mut Cuda,
    operation: &'static str,
    tables: &CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
    features: Range<usize>,
) -> Result<Report> {
    check_shapes(operation, tables, map, batch)?;
    let Cuda { stream, ids, .. } = cuda;
    ids.tell(stream, tables, map)?;
    let count = map.features().len();
    let Scratch { maps, current, report, host, .. } = ids;
    let descriptors = maps[*current].descriptors.room(stream, count)?.view(0..count);
    let len = REPORT + count + 1;
    let (mut summary, mut starts) = report.room(stream, len)?.view_mut(0..len).split_at(REPORT);
    let (samples, first, end) = (batch.batch as u64, features.start as u32, features.end as u32);
    let (offsets, device) = (batch.offsets, stream.device());
    let args = (
        descriptors,
        count as u32,
        offsets,
        samples,
        first,
        end,
        summary.reborrow(),
        starts.reborrow(),
    );
    // SAFETY: one offset a bag and one more, as checked; a start a feature and one more.
    unsafe { stream.launch(device.kernel("emb_describe_batch")?, Shape::new(1, 32), args) }?;
    let (bags, ids) = ((count * batch.batch) as u64, batch.len as u64);
    if bags.max(ids) > 0 {
        let blocks = bags.max(ids).div_ceil(IDS_OF_A_BLOCK);
        let blocks = blocks.min(u64::from(WAVES * device.multiprocessors()?));
        let args = (descriptors, first, end, offsets, samples, bags, batch.values, ids, summary);
        // SAFETY: as above; values beyond their number are not read, whatever the offsets.
        unsafe {
            stream.launch(device.kernel("emb_check_ids")?, Shape::new(blocks as u32, THREADS), args)
        }?;
    }
    host.resize(len, 0);
    stream.download(report.room(stream, len)?.view(0..len), host)?;
    refuse_offsets(stream, offsets, host[5])?;
    same(operation, "last offset", batch.len, host[1] as usize)?;
    let values = (host[3] - host[2]) as usize;
    Ok(Report { first_bad: host[0], values, elements: host[4] as usize })
}

impl Report {
    /// Refuses a batch with an id outside its table.
    pub(super) fn refuse(
        self,
        cuda: &Cuda,
        tables: &CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Cuda>,
    ) -> Result<()> {
        if self.first_bad == u64::MAX {
            return Ok(());
        }
        let position = self.first_bad as usize;
        let mut offsets = vec![0; batch.offsets.len()];
        cuda.stream.download(batch.offsets, &mut offsets)?;
        let mut id = [0];
        cuda.stream.download(batch.values.slice(position..position + 1), &mut id)?;
        Err(out_of_range(tables.specs(), map, batch.batch, &offsets, position, id[0]))
    }
}

/// Refuses offsets that do not ascend from 0, of which `first_bad` is the first index.
fn refuse_offsets(stream: &Stream, offsets: View<'_, u64>, first_bad: u64) -> Result<()> {
    let index = match usize::try_from(first_bad) {
        Ok(index) if index < offsets.len() => index,
        _ => return Ok(()),
    };
    let mut pair = [0; 2];
    let from = index.saturating_sub(1);
    stream.download(offsets.slice(from..index + 1), &mut pair[..=index - from])?;
    let [previous, next] = pair.map(|offset| offset as i64);
    Err(match index {
        0 => Error::OffsetsStart { first: previous },
        _ => Error::OffsetsDecrease { index, previous, next },
    })
}

/// [`look`] at all features, and refusal of the first bad id.
pub(super) fn check(
    cuda: &mut Cuda,
    operation: &'static str,
    tables: &CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
) -> Result<Report> {
    let report = look(cuda, operation, tables, map, batch, 0..map.features().len())?;
    report.refuse(cuda, tables, map, batch)?;
    Ok(report)
}

/// `emb::Pooling`.
fn pooling_code(pooling: Pooling) -> u32 {
    match pooling {
        Pooling::Sum => 0,
        Pooling::Mean => 1,
        Pooling::None => 2,
    }
}
