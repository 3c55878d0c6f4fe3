//! Which owner gets which id: [`Routed`].

use super::ShardedEmbeddings;
use super::error::{Error, Result};
use super::layout::{Layout, Routes};
use super::spares::Lent;
use super::trip::{Bags, Parcels, Trip};
use emb_comm::Collective;
use emb_kernels::{Backend, FeatureMap, JaggedRef, Pooling};
use emb_shard::RowMapKind;

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
        trip.batch = batch.batch;
        divisors(&self.map, batch, &mut trip.divisors);
        trip.parcels.resize_with(self.classes.len(), Parcels::default);
        for (class, parcels) in self.classes.iter().zip(&mut trip.parcels) {
            parcels.sort(&class.layout, batch);
            if class.group.is_some() {
                parcels.pack();
            }
        }
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

impl Parcels {
    /// Gives every owner its bags; ids were checked.
    fn sort(&mut self, layout: &Layout, batch: JaggedRef<'_>) {
        self.bags.resize_with(layout.owned.len(), Bags::default);
        self.bags.iter_mut().for_each(Bags::clear);
        self.weighted = batch.weights.is_some();
        for routes in &layout.features {
            match (routes.map.kind(), routes.map.owners()) {
                (RowMapKind::Permuted { .. }, _) => cut(&mut self.bags, batch, routes, |id| {
                    let place = routes.map.locate(id).expect("invariant: ids were checked");
                    (place.owner, place.local)
                }),
                (_, 1) => copy(&mut self.bags, batch, routes),
                (RowMapKind::Range(starts), _) => cut(&mut self.bags, batch, routes, |id| {
                    // The last start at or before it: earlier equal starts are empty owners.
                    let owner = starts.partition_point(|&start| start <= id) - 1;
                    (owner, id - starts[owner])
                }),
                (RowMapKind::Modulo { owners }, _) => cut(&mut self.bags, batch, routes, |id| {
                    let owners = owners as u64;
                    ((id % owners) as usize, id / owners)
                }),
            }
        }
    }

    /// One list of words for all owners, as a collective takes it.
    fn pack(&mut self) {
        self.words.clear();
        self.counts.clear();
        self.weights.clear();
        for bags in &self.bags {
            self.words.extend_from_slice(&bags.lengths);
            self.words.extend_from_slice(&bags.ids);
            self.counts.push(bags.lengths.len() + bags.ids.len());
            self.weights.extend_from_slice(&bags.weights);
        }
    }
}

/// Whole bags to owners of all rows.
fn copy(all: &mut [Bags], batch: JaggedRef<'_>, routes: &Routes) {
    let first = routes.feature * batch.batch;
    let offsets = &batch.offsets[first..=first + batch.batch];
    let range = batch.feature_range(routes.feature);
    for &owner in routes.owners.iter().flatten() {
        let bags = &mut all[owner];
        bags.lengths.extend(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as i64));
        bags.ids.extend_from_slice(&batch.values[range.clone()]);
        if let Some(weights) = batch.weights {
            bags.weights.extend_from_slice(&weights[range.clone()]);
        }
    }
}

/// Every id to the owner of its row; `place` says which part has a row and as which local one.
fn cut(
    all: &mut [Bags],
    batch: JaggedRef<'_>,
    routes: &Routes,
    place: impl Fn(u64) -> (usize, u64),
) {
    let Some((owners, others)) = routes.owners.split_first() else { return };
    let samples = batch.batch;
    for &owner in owners.iter().filter(|&&owner| owner != Routes::NOBODY) {
        let lengths = &mut all[owner].lengths;
        lengths.resize(lengths.len() + samples, 0);
    }
    for b in 0..samples {
        for k in batch.bag_range(routes.feature, b) {
            let (part, local) = place(batch.values[k] as u64);
            let bags = &mut all[owners[part]];
            let length = bags.lengths.len() - samples + b;
            bags.lengths[length] += 1;
            bags.ids.push(local as i64);
            if let Some(weights) = batch.weights {
                bags.weights.push(weights[k]);
            }
        }
    }
    // Owners of other columns of the same rows get the same.
    for others in others {
        for (&first, &other) in owners.iter().zip(others) {
            if first != Routes::NOBODY {
                repeat(all, first, other, samples);
            }
        }
    }
}

/// Gives one owner the last `samples` bags of another.
fn repeat(all: &mut [Bags], from: usize, to: usize, samples: usize) {
    let [from, to] = all.get_disjoint_mut([from, to]).expect("invariant: two owners of columns");
    let lengths = &from.lengths[from.lengths.len() - samples..];
    let ids = lengths.iter().sum::<i64>() as usize;
    to.lengths.extend_from_slice(lengths);
    to.ids.extend_from_slice(&from.ids[from.ids.len() - ids..]);
    if !from.weights.is_empty() {
        to.weights.extend_from_slice(&from.weights[from.weights.len() - ids..]);
    }
}

/// The weight of every bag that is a mean.
fn divisors(map: &FeatureMap, batch: JaggedRef<'_>, divisors: &mut Vec<f32>) {
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
