//! Ids at their owners: [`Exchanged`].

use super::ShardedEmbeddings;
use super::error::Result;
use super::route::Routed;
use super::spares::Lent;
use super::trip::Trip;
use emb_comm::Collective;
use emb_kernels::Backend;

/// Ids that arrived at their owners; nothing was looked up yet.
#[derive(Debug)]
pub struct Exchanged {
    pub(super) trip: Lent<Trip>,
}

impl Exchanged {
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
