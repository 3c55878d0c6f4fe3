//! The sum of dense gradients over all ranks: its seconds and bytes.

use super::LevelBytes;
use super::ledger::Ledger;
use super::price::{Priced, in_messages};
use super::shape::Copies;
use crate::{Level, Rank};

/// Seconds of a rank, what is hidden behind the backward pass included.
pub(super) fn seconds(ledger: &Ledger<'_>, rank: u32) -> f64 {
    let mut all = 0.0;
    each(ledger, rank, |level, copies, bytes| {
        let messages = ledger.model.options.replica_way.messages(copies);
        all += in_messages(ledger, level, bytes, messages, Priced::Busiest);
        all += 2.0 * f64::from(copies.units).log2().ceil() * level.latency();
    });
    all
}

/// Bytes of a rank over every level; it sends as many as it receives.
pub(super) fn bytes(ledger: &Ledger<'_>, rank: u32) -> Vec<LevelBytes> {
    let mut all = Vec::new();
    each(ledger, rank, |_, _, bytes| all.push(LevelBytes { sent: bytes, received: bytes }));
    all.resize(ledger.topology.levels().len(), LevelBytes::default());
    all
}

/// Tells `of` every level with the ranks that sum over it, and the bytes of `rank`; nothing where
/// no gradients are summed.
fn each(ledger: &Ledger<'_>, rank: u32, mut of: impl FnMut(&Level, Copies, f64)) {
    let gradients = ledger.workload.dense_model().gradient_bytes as f64;
    if gradients == 0.0 {
        return;
    }
    let way = ledger.model.options.replica_way;
    let (mut shares, mut inside, mut inner) = (1, 1, None);
    for level in ledger.topology.levels() {
        let (ranks, units) = around(level, inner, rank);
        let copies = Copies { ranks, inside, units, shares };
        let part = way.part(copies, ledger.topology.world());
        of(level, copies, part * gradients);
        (shares, inside, inner) = (shares * units, ranks, Some(level));
    }
}

/// Ranks in the unit of `level` that a rank is in, and units of the level inside, or ranks, there.
fn around(level: &Level, inner: Option<&Level>, rank: u32) -> (u32, u32) {
    let count = level.unit_of(Rank::new(rank)).and_then(|unit| {
        let mut ranks = level.ranks_of(unit)?;
        let count = ranks.len() as u32;
        let Some((inner, first)) = inner.zip(ranks.next()) else { return Ok((count, count)) };
        let last = Rank::new(first.get() + count - 1);
        Ok((count, inner.unit_of(last)? - inner.unit_of(first)? + 1))
    });
    count.unwrap_or((1, 1))
}
