//! The lookups of a batch, sorted by row over all tables of a group, and where their gradients lie.

use super::Cuda;
use super::descriptors::{FeatureDescriptor, TableDescriptor};
use super::records::{Chunk, Launch, RuleRecord, Sequence, Source};
use super::rules::lanes;
use super::sort::{Pairs, Sorted};
use crate::cpu::sort::bits_for;
use crate::{Error, FeatureMap, Gradients, JaggedView, Mat, Pooling, Result, TableSpec};
use emb_cuda::{Kept, Plain, Shape, Stream, View};

/// Values of a block of `emb_keys`: `kKeyTile` of `keys.cu`.
const KEY_TILE: usize = 1024;

/// Lookups of a run that one part sums: `kChunk` of `runs.cuh`.
const CHUNK: usize = 2048;

/// Threads of a block.
const THREADS: u32 = 256;

/// Threads of a block of the kernels that sum: `kUpdateThreads` of `update.cuh`.
pub(super) const SUM_THREADS: u32 = 128;

/// Blocks for each multiprocessor: more than fit at once, so that short ones make room.
const WAVES: u32 = 16;

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pairs: Pairs,
    sources: Kept<Source>,
    totals: Kept<f32>,
    sequences: Kept<Sequence>,
    sequences_host: Vec<Sequence>,
    chunks: Kept<Chunk>,
    chunk_sums: Kept<f32>,
    /// Whether the lookups of a batch are sorted, and wait for their gradients.
    is_sorted: bool,
    /// What they were sorted by, where that was before their update.
    pub(super) features: Vec<FeatureDescriptor>,
    has_sources: bool,
    has_chunks: bool,
    stride: usize,
}

/// The tables of a step, and the rules that they are updated by.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) stream: &'a Stream,
    pub(super) specs: &'a [TableSpec],
    pub(super) descriptors: View<'a, TableDescriptor>,
    pub(super) records: View<'a, RuleRecord>,
}

/// A batch and its gradients in device memory, checked.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) tables: Tables<'a>,
    pub(super) map: &'a FeatureMap,
    pub(super) features: View<'a, FeatureDescriptor>,
    pub(super) samples: usize,
    pub(super) offsets: View<'a, u64>,
    pub(super) values: View<'a, i64>,
    pub(super) weights: Option<View<'a, f32>>,
    pub(super) pooled: Mat<View<'a, f32>>,
    pub(super) sequences: &'a [(usize, Mat<View<'a, f32>>)],
}

/// Sorted lookups, and what kernels are told to find their gradients.
pub(super) struct Lookups<'a> {
    pub(super) sorted: Sorted<'a>,
    pub(super) sources: Option<View<'a, Source>>,
    pub(super) sequences: Option<View<'a, Sequence>>,
    /// Sums of the chunks of long runs, where there may be long runs.
    pub(super) chunk_sums: Option<View<'a, f32>>,
    /// Numbers of every launch; the group is still to be said.
    pub(super) launch: Launch,
}

/// Blocks for `items` rows of `lanes` lanes each.
pub(super) fn covering(stream: &Stream, items: usize, lanes: u32) -> Result<Shape> {
    let threads = items as u64 * u64::from(lanes);
    Ok(Shape::covering(threads, SUM_THREADS, WAVES * stream.device().multiprocessors()?))
}

/// Floats from one row of any table to the next, in memory that is shared by all tables.
pub(super) fn stride(specs: &[TableSpec]) -> usize {
    specs.iter().map(|spec| spec.dim.next_multiple_of(4)).max().unwrap_or(4)
}

impl Keys {
    /// Sorts the lookups unless they are, and sums the chunks of long runs. Nothing is waited for:
    /// how many rows there are stays on the device.
    pub(super) fn build(&mut self, step: Step<'_>) -> Result<()> {
        if !std::mem::take(&mut self.is_sorted) {
            self.sort(step)?;
            self.is_sorted = false;
        }
        self.stride = stride(step.tables.specs);
        self.tell_sequences(step)?;
        self.has_chunks = step.len() > CHUNK;
        if self.has_chunks { self.sum_chunks(step) } else { Ok(()) }
    }

    /// Sorts the lookups and finds the runs of equal rows: what needs ids alone.
    pub(super) fn sort(&mut self, step: Step<'_>) -> Result<()> {
        let stream = step.tables.stream;
        if u32::try_from(step.len()).is_err() || u32::try_from(step.bags()).is_err() {
            let (expected, got) = (u32::MAX as usize, step.len().max(step.bags()));
            let (operation, what) = ("scatter_update", "values or bags of one step, at most");
            return Err(Error::Shape { operation, what, expected, got });
        }
        self.write(step)?;
        let rows = step.tables.specs.iter().map(|spec| spec.rows).sum();
        self.pairs.sort(stream, bits_for(rows))?;
        self.pairs.find_runs(stream, Some(step.tables.descriptors))?;
        self.is_sorted = true;
        Ok(())
    }

    fn write(&mut self, step: Step<'_>) -> Result<()> {
        let stream = step.tables.stream;
        let (bags, device) = (step.bags() as u32, stream.device());
        let plain = |pooling| pooling == Pooling::Sum && step.weights.is_none();
        self.has_sources = !step.map.features().iter().all(|feature| plain(feature.pooling));
        let means = step.map.features().iter().any(|feature| feature.pooling == Pooling::Mean);
        let totals = match step.weights {
            Some(weights) if means => {
                let mut totals = self.totals.room(stream, bags as usize)?.whole_mut();
                let values = step.len() as u32;
                let args = (step.offsets, bags, values, weights, totals.reborrow());
                let blocks = WAVES * device.multiprocessors()?;
                let shape = Shape::covering(u64::from(bags), THREADS, blocks);
                // SAFETY: offsets of all bags, and a total for each.
                unsafe { stream.launch(device.kernel("emb_bag_totals")?, shape, args) }?;
                Some(totals)
            }
            _ => None,
        };
        let sources = if self.has_sources {
            Some(self.sources.room(stream, step.len())?.whole_mut())
        } else {
            None
        };
        let (keys, tags) = self.pairs.room(stream, step.len())?;
        let shape = Shape::new(step.len().div_ceil(KEY_TILE) as u32, THREADS);
        let (samples, count) = (step.samples as u32, step.len() as u32);
        let (offsets, values, weights) = (step.offsets, step.values, step.weights);
        let args = (
            step.features,
            offsets,
            samples,
            bags,
            values,
            count,
            weights,
            totals,
            keys,
            tags,
            sources,
        );
        // SAFETY: offsets end at the values; keys, tags and sources have one for each value.
        Ok(unsafe { stream.launch(device.kernel("emb_keys")?, shape, args) }?)
    }

    /// Tells the device where the gradients of sequences are.
    fn tell_sequences(&mut self, step: Step<'_>) -> Result<()> {
        self.sequences_host.clear();
        for (_, mat) in step.sequences {
            step.tables.stream.reach(mat.data.home())?;
            let (gradient, stride) = (mat.data.pointer(), mat.stride as u64);
            self.sequences_host.push(Sequence { gradient, stride });
        }
        if self.sequences_host.is_empty() {
            return Ok(());
        }
        let count = self.sequences_host.len();
        let to = self.sequences.room(step.tables.stream, count)?.view_mut(0..count);
        Ok(step.tables.stream.upload(&self.sequences_host, to)?)
    }

    fn sum_chunks(&mut self, step: Step<'_>) -> Result<()> {
        let stream = step.tables.stream;
        let (device, slots) = (stream.device(), 2 * (step.len() / CHUNK + 1));
        let stride = self.stride;
        let chunks = self.chunks.room(stream, slots)?;
        stream.clear(chunks.view_mut(0..slots))?;
        let sorted = self.pairs.sorted(stream)?;
        let blocks = WAVES * device.multiprocessors()?;
        let shape = Shape::covering(step.len() as u64, THREADS, blocks);
        let args = (sorted.runs, sorted.count, chunks.view_mut(0..slots));
        // SAFETY: as many runs as counted, and a slot for every chunk that runs may have.
        unsafe { stream.launch(device.kernel("emb_long_runs")?, shape, args) }?;
        self.chunk_sums.room(stream, slots * stride)?;
        let Self { chunks, chunk_sums, .. } = self;
        let chunks = chunks.room(stream, slots)?.view(0..slots);
        let sums = chunk_sums.room(stream, slots * stride)?.whole_mut();
        let lookups = Lookups {
            sorted: self.pairs.sorted(stream)?,
            sources: view(&mut self.sources, self.has_sources, stream, step.len())?,
            sequences: sequences(&mut self.sequences, &self.sequences_host, stream)?,
            chunk_sums: None,
            launch: step.launch(stride),
        };
        let lookups_launch = Launch { lanes: lanes(stride), ..lookups.launch };
        let shape = covering(stream, slots, lookups_launch.lanes)?;
        let args = (
            step.tables.descriptors,
            step.tables.records,
            chunks,
            slots as u32,
            lookups.sorted.tags,
            lookups.sources,
            step.features,
            step.offsets,
            lookups.sequences,
            step.pooled.data,
            sums,
            Plain(lookups_launch),
        );
        // SAFETY: chunks lie within the lookups; gradients were checked against the batch; every slot
        // has room for the longest row.
        Ok(unsafe { stream.launch(device.kernel("emb_chunk_sums")?, shape, args) }?)
    }

    /// What [`build`](Self::build) made.
    pub(super) fn lookups(&mut self, step: Step<'_>) -> Result<Lookups<'_>> {
        let (stream, len) = (step.tables.stream, step.len());
        let slots = 2 * (len / CHUNK + 1);
        Ok(Lookups {
            sorted: self.pairs.sorted(stream)?,
            sources: view(&mut self.sources, self.has_sources, stream, len)?,
            sequences: sequences(&mut self.sequences, &self.sequences_host, stream)?,
            chunk_sums: view(&mut self.chunk_sums, self.has_chunks, stream, slots * self.stride)?,
            launch: step.launch(self.stride),
        })
    }
}

impl<'a> Step<'a> {
    pub(super) fn new<'b: 'a, 's: 'a, 'g: 'a>(
        tables: Tables<'a>,
        map: &'a FeatureMap,
        features: View<'a, FeatureDescriptor>,
        batch: JaggedView<'b, Cuda>,
        gradients: &Gradients<'s, 'g, Cuda>,
    ) -> Self {
        let JaggedView { batch: samples, offsets, values, weights, .. } = batch;
        let Gradients { pooled, sequences } = *gradients;
        Self { tables, map, features, samples, offsets, values, weights, pooled, sequences }
    }

    /// Values of the batch.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    fn bags(&self) -> usize {
        self.map.features().len() * self.samples
    }

    fn launch(&self, stride: usize) -> Launch {
        Launch {
            pooled_stride: self.pooled.stride as u64,
            rows_stride: stride as u64,
            batch: self.samples as u32,
            stage_stride: stride as u32,
            ..Launch::default()
        }
    }

    /// Puts later work of the streams that gave gradients of sequences behind what was queued.
    pub(super) fn release_sequences(&self) -> Result<()> {
        let mut homes = self.sequences.iter().map(|(_, mat)| mat.data.home());
        Ok(homes.try_for_each(|home| home.after(self.tables.stream))?)
    }
}

fn view<'a, T: bytemuck::Pod>(
    kept: &'a mut Kept<T>,
    there: bool,
    stream: &Stream,
    len: usize,
) -> Result<Option<View<'a, T>>> {
    Ok(if there { Some(kept.room(stream, len)?.view(0..len)) } else { None })
}

fn sequences<'a>(
    kept: &'a mut Kept<Sequence>,
    host: &[Sequence],
    stream: &Stream,
) -> Result<Option<View<'a, Sequence>>> {
    view(kept, !host.is_empty(), stream, host.len())
}
