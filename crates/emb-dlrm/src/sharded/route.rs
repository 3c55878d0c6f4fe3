//! Which rank is asked for which row: [`Routed`].

use super::ShardedEmbeddings;
use super::error::{Error, Result};
use super::spares::Lent;
use super::trip::{Leg, Trip};
use emb_comm::Collective;
use emb_kernels::{Backend, FeatureMap, JaggedRef, Pooling};

/// A batch whose ids were checked and sorted by owner. Nothing was sent yet.
#[derive(Debug)]
pub struct Routed {
    pub(super) trip: Lent<Trip>,
}

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Sorts the ids of this rank's samples by owner, without communication.
    ///
    /// Batches may be routed ahead: each has memory of its own, which the embeddings lend again
    /// once the last stage of the batch is dropped.
    ///
    /// # Errors
    /// The first id outside its table, in the order of the batch: table, feature, sample of this
    /// rank, position, id, rows; a batch of other features. The other ranks then fail as well, in
    /// their next collective, with this reason.
    pub fn route(&self, batch: JaggedRef<'_>) -> Result<Routed> {
        self.route_checked(batch).map_err(|error| self.give_up(error))
    }

    fn route_checked(&self, batch: JaggedRef<'_>) -> Result<Routed> {
        let names = self.map.features().iter().map(|feature| &feature.name);
        if !names.clone().eq(batch.names) {
            let expected: Vec<_> = names.collect();
            let given = batch.names;
            return Err(Error::Mismatch(format!("features {expected:?}, the batch has {given:?}")));
        }
        self.check_ids(batch)?;
        let mut trip = self.trips.lend();
        let Trip { offsets, divisors, places, legs, .. } = &mut *trip;
        offsets.clear();
        offsets.extend_from_slice(batch.offsets);
        fill_divisors(&self.map, batch, divisors);
        let places = self.places.of(batch, places);
        legs.resize_with(self.classes.len(), Leg::default);
        for (class, leg) in self.classes.iter().zip(legs) {
            class.route(batch, places, leg);
        }
        trip.batch = batch.batch;
        Ok(Routed { trip })
    }

    fn check_ids(&self, batch: JaggedRef<'_>) -> Result<()> {
        for (f, feature) in self.map.features().iter().enumerate() {
            let spec = &self.specs[feature.table];
            let range = batch.feature_range(f);
            let ids = &batch.values[range.clone()];
            // A negative id is a huge unsigned one.
            let Some(at) = ids.iter().position(|&id| id as u64 >= spec.rows) else { continue };
            let place = (range.start + at) as u64;
            let bag = batch.offsets.partition_point(|&offset| offset <= place) - 1;
            return Err(Error::Kernel(emb_kernels::Error::IdOutOfRange {
                table: spec.name.clone(),
                feature: feature.name.clone(),
                sample: bag % batch.batch,
                position: (place - batch.offsets[bag]) as usize,
                id: ids[at],
                rows: spec.rows,
            }));
        }
        Ok(())
    }
}

/// The weight of every bag that is a mean.
fn fill_divisors(map: &FeatureMap, batch: JaggedRef<'_>, divisors: &mut Vec<f32>) {
    divisors.resize(batch.features() * batch.batch, 0.0);
    for (f, feature) in map.features().iter().enumerate() {
        if feature.pooling != Pooling::Mean {
            continue;
        }
        for b in 0..batch.batch {
            let bag = batch.bag_range(f, b);
            divisors[f * batch.batch + b] = match batch.weights {
                Some(weights) => weights[bag].iter().sum(),
                None => bag.len() as f32,
            };
        }
    }
}
