//! Ids at their owners: [`Exchanged`], [`Prepared`].

use super::ShardedEmbeddings;
use super::error::Result;
use super::route::Routed;
use super::spares::Lent;
use super::staged::Staged;
use super::trip::Trip;
use emb_comm::Collective;
use emb_kernels::Backend;

/// Ids that arrived at their owners; nothing was looked up yet.
#[derive(Debug)]
pub struct Exchanged {
    pub(super) trip: Lent<Trip>,
}

/// Ids that are in the memory of their owners' devices, which may have begun to sort them.
#[derive(Debug)]
pub struct Prepared<B: Backend> {
    pub(super) trip: Lent<Trip>,
    /// One for each exchange.
    pub(super) staged: Lent<Vec<Staged<B>>>,
}

impl Exchanged {
    /// Takes the ids to the device. Batches may be prepared ahead, and are pooled in the order in which
    /// they were. Waits for syncs that go on beside.
    ///
    /// # Errors
    /// A peer that fails, a device out of memory.
    pub fn prepare<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Prepared<B>> {
        let prepared = self.stage(embeddings, backend);
        prepared.map_err(|error| embeddings.give_up(error))
    }

    fn stage<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Prepared<B>> {
        embeddings.bring_back()?;
        let trip = self.trip;
        let mut staged = embeddings.staged.lend();
        staged.resize_with(embeddings.classes.len(), Staged::default);
        let ShardedEmbeddings { classes, side, .. } = embeddings;
        let stream = side.as_mut().unwrap_or(backend);
        for (class, (leg, staged)) in classes.iter_mut().zip(trip.legs.iter().zip(&mut *staged)) {
            class.prepare(stream, leg, staged)?;
        }
        Ok(Prepared { trip, staged })
    }
}

impl<B: Backend> Prepared<B> {
    /// Samples and ids of the batch.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.trip.batch, self.trip.offsets.last().map_or(0, |&ids| ids as usize))
    }
}

impl Routed {
    /// Sends the ids to their owners.
    ///
    /// # Errors
    /// A peer that fails.
    pub fn exchange<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
    ) -> Result<Exchanged> {
        let mut trip = self.trip;
        let Trip { batch, legs, .. } = &mut *trip;
        for (class, leg) in embeddings.classes.iter_mut().zip(legs) {
            class.exchange(*batch, leg)?;
        }
        Ok(Exchanged { trip })
    }
}
