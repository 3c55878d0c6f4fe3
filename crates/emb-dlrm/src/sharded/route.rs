//! Which owner gets which id: [`Routed`].

use super::ShardedEmbeddings;
use super::error::{Error, Result};
use super::layout::Layout;
use emb_comm::Collective;
use emb_kernels::{Backend, FeatureMap, JaggedRef, Pooling};
use emb_shard::RowMap;

/// A batch whose ids were checked and sorted by owner. Nothing was sent yet.
#[derive(Debug)]
pub struct Routed {
    pub(super) batch: usize,
    /// `[features, batch]`: what a mean divides by; 0 where nothing is to be divided.
    pub(super) divisors: Vec<f32>,
    /// One for each exchange.
    pub(super) parcels: Vec<Parcels>,
}

/// What one rank sends to the owners of a group: parts one after the other.
#[derive(Debug, Default)]
pub(super) struct Parcels {
    /// For each owner the lengths of its bags, feature-major, then its ids (local rows).
    pub(super) words: Vec<i64>,
    /// Words for each owner.
    pub(super) counts: Vec<usize>,
    /// Ids for each owner.
    pub(super) ids: Vec<usize>,
    /// Per-sample weights of the ids, where the batch has any.
    pub(super) weights: Option<Vec<f32>>,
}

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Sorts the ids of this rank's samples by owner, without communication.
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
        let parcels = self.classes.iter().map(|class| parcels(&class.layout, batch));
        Ok(Routed {
            batch: batch.batch,
            parcels: parcels.collect::<Result<_>>()?,
            divisors: divisors(&self.map, batch),
        })
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

/// The bags of one feature, cut by the parts of its rows.
struct Cut {
    /// `[parts, batch]`.
    lengths: Vec<i64>,
    /// Local rows, by part and bag, in bag order; part `p` has `ends[p - 1]..ends[p]`.
    ids: Vec<i64>,
    weights: Vec<f32>,
    ends: Vec<usize>,
}

fn parcels(layout: &Layout, batch: JaggedRef<'_>) -> Result<Parcels> {
    let mut cuts: Vec<Option<Cut>> = Vec::new();
    cuts.resize_with(batch.features(), || None);
    for (f, map) in &layout.features {
        cuts[*f] = Some(cut(batch, *f, map)?);
    }
    let mut parcels = Parcels { weights: batch.weights.map(|_| Vec::new()), ..Parcels::default() };
    for owned in &layout.owned {
        let begin = parcels.words.len();
        let parts = owned.portions.iter().map(|portion| {
            let cut = cuts[portion.feature].as_ref();
            (cut.expect("invariant: features of the class were cut"), portion.part)
        });
        for (cut, part) in parts.clone() {
            parcels.words.extend(&cut.lengths[part * batch.batch..(part + 1) * batch.batch]);
        }
        let lengths = parcels.words.len();
        for (cut, part) in parts {
            let range = if part == 0 { 0 } else { cut.ends[part - 1] }..cut.ends[part];
            parcels.words.extend(&cut.ids[range.clone()]);
            if let Some(weights) = &mut parcels.weights {
                weights.extend(&cut.weights[range]);
            }
        }
        parcels.ids.push(parcels.words.len() - lengths);
        parcels.counts.push(parcels.words.len() - begin);
    }
    Ok(parcels)
}

fn cut(batch: JaggedRef<'_>, f: usize, map: &RowMap) -> Result<Cut> {
    let (samples, parts) = (batch.batch, map.owners());
    let range = batch.feature_range(f);
    let mut lengths = vec![0; parts * samples];
    let mut places = Vec::with_capacity(range.len());
    for b in 0..samples {
        for &id in batch.bag(f, b) {
            let place = map.locate(id as u64)?;
            lengths[place.owner * samples + b] += 1;
            places.push(place);
        }
    }
    let (mut next, mut ends) = (vec![0; parts], Vec::with_capacity(parts));
    let mut end = 0;
    for (part, next) in next.iter_mut().enumerate() {
        *next = end;
        end += lengths[part * samples..(part + 1) * samples].iter().sum::<i64>() as usize;
        ends.push(end);
    }
    let mut ids = vec![0; places.len()];
    let mut weights = vec![0.0; if batch.weights.is_some() { places.len() } else { 0 }];
    for (k, place) in places.iter().enumerate() {
        let at = &mut next[place.owner];
        ids[*at] = place.local as i64;
        if let Some(given) = batch.weights {
            weights[*at] = given[range.start + k];
        }
        *at += 1;
    }
    Ok(Cut { lengths, ids, weights, ends })
}

/// The weight of every bag that is a mean.
fn divisors(map: &FeatureMap, batch: JaggedRef<'_>) -> Vec<f32> {
    let mut divisors = vec![0.0; batch.features() * batch.batch];
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
    divisors
}
