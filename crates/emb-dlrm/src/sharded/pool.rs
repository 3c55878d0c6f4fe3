//! Pooled bags back where their samples are: [`Pooled`].

use super::columns::Direction;
use super::error::Result;
use super::exchange::Exchanged;
use super::layout::{Layout, Place};
use super::memory::Grown;
use super::spares::Lent;
use super::trip::{Arrived, Trip};
use super::{Class, ShardedEmbeddings};
use emb_comm::Collective;
use emb_kernels::{Backend, JaggedView, Mat};

/// The pooled bags of this rank's samples, and what the backward pass needs.
///
/// Dropped without [`backward`](Self::backward), as in an evaluation, it gives its memory back all
/// the same.
pub struct Pooled<B: Backend> {
    pub(super) width: usize,
    pub(super) trip: Lent<Trip>,
    /// One for each exchange.
    pub(super) staged: Lent<Vec<Staged<B>>>,
}

/// The bags of one owner in its backend's memory.
pub(super) struct Staged<B: Backend> {
    offsets: Grown<B, u64>,
    ids: Grown<B, i64>,
    weights: Grown<B, f32>,
}

impl Exchanged {
    /// Pools at the owners and brings the sums back.
    ///
    /// # Errors
    /// A peer that fails, a device out of memory.
    pub fn pool<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Pooled<B>> {
        let pooled = self.pool_all(embeddings, backend);
        pooled.map_err(|error| embeddings.give_up(error))
    }

    fn pool_all<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Pooled<B>> {
        let (mut trip, width) = (self.trip, embeddings.map.width());
        let mut staged = embeddings.staged.lend();
        staged.resize_with(embeddings.classes.len(), Staged::default);
        let Trip { batch, divisors, arrived, output, .. } = &mut *trip;
        output.resize(*batch * width, 0.0);
        for ((class, arrived), staged) in
            embeddings.classes.iter_mut().zip(arrived).zip(&mut *staged)
        {
            staged.fill(backend, arrived)?;
            class.pool(backend, arrived, staged)?;
            class.exchange_columns(*batch, &arrived.samples, Direction::ToSamples)?;
            assemble(&class.layout, &class.received, divisors, width, output);
        }
        Ok(Pooled { width, trip, staged })
    }
}

impl<B: Backend> Pooled<B> {
    /// `[samples of this rank, map().width()]`, in the order of the configuration; the columns
    /// before the first feature are 0.
    pub fn output(&self) -> &[f32] {
        &self.trip.output
    }

    /// Samples of this rank.
    pub fn batch(&self) -> usize {
        self.trip.batch
    }

    /// `[ids of this rank's samples of sequence feature `feature`, dim]`, in the order of the
    /// batch's ids.
    pub fn sequence(&self, feature: usize) -> &[f32] {
        let _ = feature;
        &[]
    }
}

impl<B: Backend> std::fmt::Debug for Pooled<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pooled")
            .field("batch", &self.trip.batch)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> Default for Staged<B> {
    fn default() -> Self {
        let (offsets, ids) = (Grown::default(), Grown::default());
        Self { offsets, ids, weights: Grown::default() }
    }
}

impl<B: Backend> std::fmt::Debug for Staged<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staged").field("ids", &self.ids).finish_non_exhaustive()
    }
}

impl<B: Backend> Staged<B> {
    fn fill(&mut self, backend: &mut B, arrived: &Arrived) -> Result<()> {
        self.offsets.fill(backend, &arrived.offsets)?;
        self.ids.fill(backend, &arrived.ids)?;
        if arrived.weighted {
            self.weights.fill(backend, &arrived.weights)?;
        }
        Ok(())
    }

    /// The bags that it was filled with, of the features `names`.
    pub(super) fn view<'a>(&'a self, names: &'a [String], arrived: &Arrived) -> JaggedView<'a, B> {
        let len = arrived.ids.len();
        JaggedView {
            names,
            batch: arrived.total(),
            len,
            offsets: self.offsets.view(0..arrived.offsets.len()),
            values: self.ids.view(0..len),
            weights: arrived.weighted.then(|| self.weights.view(0..len)),
        }
    }
}

impl<B: Backend, C: Collective> Class<B, C> {
    /// Pools into `sums`: `[samples of the group, columns of this owner]`.
    fn pool(&mut self, backend: &mut B, arrived: &Arrived, staged: &Staged<B>) -> Result<()> {
        let (rows, cols) = (arrived.total(), self.layout.own().width);
        self.sums.resize(rows * cols, 0.0);
        if self.sums.is_empty() {
            return Ok(());
        }
        let out = Mat::new(self.device.room(backend, rows * cols)?, rows, cols);
        let batch = staged.view(&self.names, arrived);
        backend.pool(&mut self.tables, &self.map, batch, out)?;
        Ok(backend.download(self.device.view(0..rows * cols), &mut self.sums)?)
    }
}

/// Puts the columns of all owners in their places, sample by sample: parts of rows are added in the
/// order of owners, and once the whole bag is there, what is a mean of parts is divided.
fn assemble(layout: &Layout, sums: &[f32], divisors: &[f32], width: usize, output: &mut [f32]) {
    if width == 0 {
        return;
    }
    let batch = output.len() / width;
    for (b, output) in output.chunks_exact_mut(width).enumerate() {
        let mut start = 0;
        for owned in &layout.owned {
            let row = &sums[start + b * owned.width..][..owned.width];
            start += batch * owned.width;
            for portion in &owned.portions {
                let from = &row[portion.column..][..portion.width];
                let to = &mut output[portion.output..][..portion.width];
                let sums = to.iter_mut().zip(from);
                match portion.place {
                    Place::Whole => to.copy_from_slice(from),
                    // As if added to 0, which makes a difference for -0.
                    Place::First => sums.for_each(|(to, &from)| *to = 0.0 + from),
                    Place::Later => sums.for_each(|(to, &from)| *to += from),
                }
                if portion.divide && portion.last {
                    let divisor = divisors[portion.feature * batch + b];
                    // Where the weights sum to 0 there is no mean; the output is 0.
                    for to in to {
                        *to = if divisor == 0.0 { 0.0 } else { *to / divisor };
                    }
                }
            }
        }
    }
}
