//! Lookups that were sorted ahead of their update: [`Foreseen`].

use super::descriptors::FeatureDescriptor;
use super::keys::{Keys, Step, Tables};
use super::{Cuda, CudaTables, ids};
use crate::{FeatureMap, JaggedView, Mat, Result};
use emb_cuda::View;

/// Batches that may wait for their update: one that is under way and two ahead.
const BATCHES: usize = 3;

/// Sorted lookups of batches that are still to be updated with, by where the batch lies.
#[derive(Debug, Default)]
pub(super) struct Foreseen {
    waiting: Vec<(Place, Keys)>,
    spare: Vec<Keys>,
}

/// Where a batch lies, and how large it is. Its memory stays as it is until the update, so that two
/// batches of one place are one batch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    offsets: u64,
    values: u64,
    weights: u64,
    len: usize,
    samples: usize,
    features: usize,
}

impl Place {
    fn of(map: &FeatureMap, batch: &JaggedView<'_, Cuda>) -> Self {
        Self {
            offsets: batch.offsets.pointer(),
            values: batch.values.pointer(),
            weights: batch.weights.map_or(0, View::pointer),
            len: batch.len,
            samples: batch.batch,
            features: map.features().len(),
        }
    }
}

impl Foreseen {
    /// Memory for a batch; what was foreseen of memory that it overwrites is forgotten, as is the
    /// oldest where there are too many: batches of an evaluation are never updated with.
    fn room(&mut self, place: Place) -> Keys {
        let stale = |(other, _): &(Place, Keys)| other.values == place.values;
        let found = self.waiting.iter().position(stale);
        let oldest = (self.waiting.len() == BATCHES).then_some(0);
        match found.or(oldest) {
            Some(at) => self.waiting.remove(at).1,
            None => self.spare.pop().unwrap_or_default(),
        }
    }

    /// The lookups of a batch, if they were sorted, and by these features.
    pub(super) fn take(
        &mut self,
        map: &FeatureMap,
        features: &[FeatureDescriptor],
        batch: &JaggedView<'_, Cuda>,
    ) -> Option<Keys> {
        let place = Place::of(map, batch);
        let same = |(other, keys): &(Place, Keys)| *other == place && keys.features == features;
        let at = self.waiting.iter().position(same)?;
        Some(self.waiting.remove(at).1)
    }

    /// Keeps memory for the next batch.
    pub(super) fn put(&mut self, keys: Option<Keys>) {
        self.spare.extend(keys);
    }
}

/// See [`Backend::foresee`](crate::Backend::foresee). Ids are checked when they are used: a bad one
/// has a key like any other.
pub(super) fn foresee(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
) -> Result<()> {
    ids::check_shapes("foresee", tables, map, batch)?;
    if batch.len == 0 || batch.batch == 0 {
        return Ok(());
    }
    let Cuda { stream, ids, .. } = cuda;
    let place = Place::of(map, &batch);
    let mut keys = tables.foreseen.room(place);
    ids.tell(stream, tables, map)?;
    keys.features.clear();
    keys.features.extend_from_slice(ids.told());
    let all = Tables {
        stream,
        specs: tables.specs(),
        descriptors: tables.descriptors(),
        records: tables.descriptors().slice(0..0).cast(),
    };
    let none = Mat::new(tables.descriptors().slice(0..0).cast(), 0, 0);
    let gradients = crate::Gradients { pooled: none, sequences: &[] };
    keys.sort(Step::new(all, map, ids.features(stream)?, batch, &gradients))?;
    tables.foreseen.waiting.push((place, keys));
    Ok(())
}
