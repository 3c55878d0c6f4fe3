//! Links of one kind: [`Level`].

use super::spec::LevelSpec;
use crate::{Error, Rank, Result};

/// A checked level: its units, and the links between ranks of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    spec: LevelSpec,
    /// First rank of every unit, then the number of ranks.
    starts: Vec<u32>,
}

impl Level {
    pub(super) fn new(spec: LevelSpec, starts: Vec<u32>) -> Self {
        Self { spec, starts }
    }

    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    pub(super) fn points(&self) -> &[(u32, f64)] {
        &self.spec.all_to_all
    }

    /// What a unit is.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Bytes a second of one rank in one direction.
    pub fn bandwidth(&self) -> f64 {
        self.spec.bandwidth
    }

    /// Seconds from sending a short message to its arrival.
    pub fn latency(&self) -> f64 {
        self.spec.latency
    }

    /// Bytes a second of one rank in one direction in an all-to-all with `peers` other ranks over
    /// this level.
    pub fn all_to_all_bandwidth(&self, peers: u32) -> f64 {
        self.spec.bandwidth * part_left(&self.spec.all_to_all, peers)
    }

    /// Bytes a second of one rank that sends a message of `bytes` over this level: where transfers
    /// were measured, what they reach at this size, else [`bandwidth`](Self::bandwidth).
    pub fn bandwidth_at(&self, bytes: f64) -> f64 {
        match transfer_seconds(&self.spec.transfers, bytes) {
            Some(seconds) => bytes / seconds,
            None => self.spec.bandwidth,
        }
    }

    /// The same of an all-to-all with `peers` other ranks: what these leave of it, as in
    /// [`all_to_all_bandwidth`](Self::all_to_all_bandwidth).
    pub fn bandwidth_of(&self, peers: u32, bytes: f64) -> f64 {
        self.all_to_all_bandwidth(peers) * (self.bandwidth_at(bytes) / self.spec.bandwidth)
    }

    /// The highest [`bandwidth_at`](Self::bandwidth_at) any number of bytes, for lower bounds.
    pub fn best_bandwidth_at(&self) -> f64 {
        // Between points seconds are a straight line, and bytes over it rise or fall all the way.
        let points = self.spec.transfers.iter().map(|&(bytes, _)| bytes as f64);
        let best = points.map(|bytes| self.bandwidth_at(bytes)).fold(0.0, f64::max);
        if best > 0.0 { best } else { self.spec.bandwidth }
    }

    /// The highest [`bandwidth_of`](Self::bandwidth_of) any number of bytes.
    pub fn best_bandwidth(&self, peers: u32) -> f64 {
        self.all_to_all_bandwidth(peers) * (self.best_bandwidth_at() / self.spec.bandwidth)
    }

    /// Whether transfers were measured, so that the bandwidth depends on the bytes.
    pub(crate) fn is_bent(&self) -> bool {
        !self.spec.transfers.is_empty()
    }

    /// Seconds of an exchange in which a rank sends `bytes` to `peers` other ranks over this level,
    /// with its latency.
    pub fn exchange_seconds(&self, peers: u32, bytes: f64) -> f64 {
        if bytes <= 0.0 {
            return self.spec.latency;
        }
        self.spec.latency + bytes / self.bandwidth_of(peers, bytes)
    }

    /// Units.
    pub fn units(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Ranks of every unit, or `None` where units differ.
    pub fn unit_ranks(&self) -> Option<u32> {
        let (fewest, most) = self.fewest_and_most();
        (fewest == most).then_some(most)
    }

    /// Ranks of the smallest and of the largest unit.
    pub fn fewest_and_most(&self) -> (u32, u32) {
        let ranks = || self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0))
    }

    /// The unit of a rank.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn unit_of(&self, rank: Rank) -> Result<u32> {
        let after = self.starts.partition_point(|&start| start <= rank.get());
        if after == self.starts.len() {
            let count = self.starts.last().copied().unwrap_or(0);
            let (index, count) = (u64::from(rank.get()), u64::from(count));
            return Err(Error::NoSuch { kind: "rank", index, count });
        }
        // The first start is 0, so at least one start is not above the rank.
        Ok(after as u32 - 1)
    }

    /// The ranks of a unit, ascending.
    ///
    /// # Errors
    /// A unit that is not there.
    pub fn ranks_of(&self, unit: u32) -> Result<impl ExactSizeIterator<Item = Rank> + use<>> {
        if unit >= self.units() {
            let (index, count) = (u64::from(unit), u64::from(self.units()));
            return Err(Error::NoSuch { kind: "unit", index, count });
        }
        let unit = unit as usize;
        Ok((self.starts[unit]..self.starts[unit + 1]).map(Rank::new))
    }
}

/// Seconds beyond the latency that `points` give `bytes`; `None` without points or bytes.
pub(super) fn transfer_seconds(points: &[(u64, f64)], bytes: f64) -> Option<f64> {
    let (&first, &last) = (points.first()?, points.last()?);
    if bytes <= 0.0 {
        return None;
    }
    let in_proportion = |(at, seconds): (u64, f64)| seconds * bytes / at as f64;
    let after = points.partition_point(|point| point.0 as f64 <= bytes);
    if after == 0 {
        return Some(in_proportion(first));
    }
    let Some(&(to, behind)) = points.get(after) else { return Some(in_proportion(last)) };
    let (from, before) = points[after - 1];
    let way = (bytes - from as f64) / (to - from) as f64;
    Some(before + (behind - before) * way)
}

/// The part of the bandwidth that `points` leave an all-to-all with `peers` others.
fn part_left(points: &[(u32, f64)], peers: u32) -> f64 {
    let after = points.partition_point(|point| point.0 <= peers);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (None, None) => 1.0,
        (None, Some(&(_, part))) | (Some((_, part)), None) => part,
        (Some((from, before)), Some(&(to, behind))) => {
            let (from, to) = (f64::from(from).ln(), f64::from(to).ln());
            before + (behind - before) * (f64::from(peers).ln() - from) / (to - from)
        }
    }
}
