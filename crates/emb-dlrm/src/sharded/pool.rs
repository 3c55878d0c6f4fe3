//! Pooled bags and sequences back where their samples are: [`Pooled`].

use super::ShardedEmbeddings;
use super::error::Result;
use super::exchange::{Exchanged, Prepared};
use super::spares::Lent;
use super::staged::Staged;
use super::trip::Trip;
use emb_comm::Collective;
use emb_kernels::{Backend, FeatureMap, Pooling};

/// The pooled bags of this rank's samples, the rows of its sequences, and what the backward pass
/// needs.
///
/// Dropped without [`backward`](Self::backward), as in an evaluation, it gives its memory back all
/// the same.
pub struct Pooled<B: Backend> {
    pub(super) width: usize,
    pub(super) trip: Lent<Trip>,
    /// One for each exchange.
    pub(super) staged: Lent<Vec<Staged<B>>>,
}

impl Exchanged {
    /// Looks rows up at their owners and brings them, or their sums, back.
    ///
    /// # Errors
    /// A peer that fails, a device out of memory.
    pub fn pool<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Pooled<B>> {
        self.prepare(embeddings, backend)?.pool(embeddings, backend)
    }
}

impl<B: Backend> Prepared<B> {
    /// [`Exchanged::pool`], of ids that are on the device already.
    ///
    /// # Errors
    /// As there.
    pub fn pool<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Pooled<B>> {
        let pooled = self.pool_all(embeddings, backend);
        pooled.map_err(|error| embeddings.give_up(error))
    }

    fn pool_all<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Pooled<B>> {
        embeddings.bring_back()?;
        let (mut trip, staged, width) = (self.trip, self.staged, embeddings.map.width());
        trip.make_room(&embeddings.map);
        for (number, (class, staged)) in embeddings.classes.iter_mut().zip(&*staged).enumerate() {
            class.forward(backend, number, &mut trip, staged, width)?;
        }
        trip.divide(&embeddings.map, &embeddings.divided);
        Ok(Pooled { width, trip, staged })
    }
}

impl Trip {
    /// Zeros that parts are added to.
    fn make_room(&mut self, map: &FeatureMap) {
        self.output.clear();
        self.output.resize(self.batch * map.width(), 0.0);
        self.sequences.resize_with(map.features().len(), Vec::new);
        for (f, feature) in map.features().iter().enumerate() {
            if feature.pooling == Pooling::None {
                let ids = self.offsets[(f + 1) * self.batch] - self.offsets[f * self.batch];
                // Every row is written: it is in some tier.
                self.sequences[f].resize(ids as usize * map.dim(f), 0.0);
            }
        }
    }

    /// Makes means of sums, where the whole bag is known here alone.
    fn divide(&mut self, map: &FeatureMap, divided: &[bool]) {
        let width = map.width();
        for f in (0..divided.len()).filter(|&f| divided[f]) {
            let columns = map.column(f)..map.column(f) + map.dim(f);
            for b in 0..self.batch {
                let divisor = self.divisors[f * self.batch + b];
                let bag = &mut self.output[b * width..][columns.clone()];
                // Where the weights sum to 0 there is no mean; the output is 0.
                for x in bag {
                    *x = if divisor == 0.0 { 0.0 } else { *x / divisor };
                }
            }
        }
    }
}

impl<B: Backend> Pooled<B> {
    /// `[samples of this rank, map().width()]`, in the order of the configuration; the columns
    /// before the first feature are 0.
    pub fn output(&self) -> &[f32] {
        &self.trip.output
    }

    /// The rows of a feature that is not pooled: `[its ids, dim]`, in the order of the batch; nothing
    /// for features that are.
    ///
    /// # Panics
    /// A feature that does not exist.
    pub fn sequence(&self, feature: usize) -> &[f32] {
        &self.trip.sequences[feature]
    }

    /// Samples of this rank.
    pub fn batch(&self) -> usize {
        self.trip.batch
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
