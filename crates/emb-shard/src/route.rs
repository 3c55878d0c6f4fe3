//! Which owner gets which id of a jagged batch: [`Routed`], the reference for devices.

use crate::{Error, Result, RowMap};

/// The ids of one feature on one rank, sorted by owner: what a rank sends.
///
/// This is the spec of routing on a device: owner-major, within an owner in the order of the
/// batch. [`route`](Self::route) reuses the memory of earlier batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routed {
    /// `[owners]`: ids for each owner.
    pub counts: Vec<u64>,
    /// `[owners, batch]`: length of every bag's part at every owner.
    pub lengths: Vec<u64>,
    /// `[ids]`: local rows, by owner, then sample, in bag order.
    pub ids: Vec<u64>,
    /// `[ids]`: `positions[k]` is the place in the input of output `k`.
    pub positions: Vec<u64>,
}

impl Routed {
    /// Sorts the ids of `feature` by the owners of `map`; `lengths` (`[batch]`) are those of the
    /// bags.
    ///
    /// # Errors
    /// Lengths that do not sum to the number of ids; an id outside the map's rows, by feature,
    /// sample, position, value and valid range. Nothing has been written then.
    pub fn route(
        &mut self,
        feature: &str,
        lengths: &[u64],
        ids: &[i64],
        map: &RowMap,
    ) -> Result<()> {
        check(feature, lengths, ids, map.rows())?;
        let (owners, batch) = (map.owners(), lengths.len());
        let sizes = [(&mut self.counts, owners), (&mut self.lengths, owners * batch)];
        for (numbers, len) in sizes {
            numbers.clear();
            numbers.resize(len, 0);
        }
        let mut next = ids.iter();
        for (sample, &length) in lengths.iter().enumerate() {
            for &id in next.by_ref().take(length as usize) {
                let owner = map.locate(id as u64)?.owner;
                self.counts[owner] += 1;
                self.lengths[owner * batch + sample] += 1;
            }
        }
        let mut free = exclusive_sums(&self.counts);
        self.ids.resize(ids.len(), 0);
        self.positions.resize(ids.len(), 0);
        for (position, &id) in ids.iter().enumerate() {
            let place = map.locate(id as u64)?;
            let slot = free[place.owner] as usize;
            free[place.owner] += 1;
            self.ids[slot] = place.local;
            self.positions[slot] = position as u64;
        }
        Ok(())
    }
}

fn check(feature: &str, lengths: &[u64], ids: &[i64], rows: u64) -> Result<()> {
    let sum = lengths.iter().fold(0u64, |sum, &length| sum.saturating_add(length));
    if sum != ids.len() as u64 {
        let (lengths, ids) = (sum, ids.len() as u64);
        return Err(Error::Lengths { feature: feature.to_owned(), lengths, ids });
    }
    let outside = |&id: &i64| u64::try_from(id).map_or(true, |id| id >= rows);
    let Some(bad) = ids.iter().position(outside) else { return Ok(()) };
    let mut position = bad as u64;
    let mut sample = 0;
    while position >= lengths[sample] {
        position -= lengths[sample];
        sample += 1;
    }
    Err(Error::IdOutOfRange { feature: feature.to_owned(), sample, position, id: ids[bad], rows })
}

fn exclusive_sums(counts: &[u64]) -> Vec<u64> {
    let mut sum = 0;
    let start = |&count: &u64| {
        let start = sum;
        sum += count;
        start
    };
    counts.iter().map(start).collect()
}
