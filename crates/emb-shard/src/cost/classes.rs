//! Which collectives the tiers over a mesh need: [`Classes`] counted, [`Collectives`] run.

use super::volume::{SCOPES, Scope};
use crate::{Exchange, Path, Per, ReplicaSync, Tier};

/// Tiers by exchange and by sync: one collective of each stage serves all of a class.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    exchanges: Vec<(Exchange, u32)>,
    syncs: Vec<(ReplicaSync, u32)>,
    /// Of tiers whose owners tell each other statistics.
    statistics: Vec<(Exchange, u32)>,
}

/// Collectives of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Collectives {
    scopes: [Runs; 3],
    /// In which owners of columns tell each other statistics of rows.
    pub(super) statistics: f64,
    /// Of replicas, in sums: each sends as many messages one after the other as two that gather or
    /// scatter. A sync every few steps counts as its part.
    pub(super) sums: f64,
    /// Times that replicas are made equal, in the same parts: bytes of a step are those of so many
    /// messages.
    pub(super) syncs: f64,
}

/// Collectives of one scope.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    /// That bring ids to owners; counts travel ahead of them.
    pub(super) ids: f64,
    /// Counts for each peer: samples, ids and whether they have weights where bags travel, words
    /// where lists of rows do.
    pub(super) counts: f64,
    /// That bring sums or rows back; as many bring gradients.
    pub(super) outputs: f64,
}

impl Classes {
    /// Counts a tier in (`sign` above 0) or out.
    pub(super) fn change(&mut self, tier: &Tier, statistics: bool, sign: f64) {
        change(&mut self.exchanges, tier.exchange, sign);
        change(&mut self.syncs, tier.sync, sign);
        if statistics {
            change(&mut self.statistics, tier.exchange, sign);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// As [`Plan::schedule`](crate::Plan::schedule) has them.
    pub(super) fn collectives(&self) -> Collectives {
        let mut all =
            Collectives { statistics: self.statistics.len() as f64, ..Collectives::default() };
        for (exchange, _) in &self.exchanges {
            let [flat, node, rail] = &mut all.scopes;
            match exchange {
                Exchange::Local => {}
                Exchange::Reduce { over: Path::Flat } => flat.add(2.0, 3.0, 1.0),
                Exchange::Unique { per: Per::Rank } | Exchange::Rows => flat.add(2.0, 1.0, 1.0),
                Exchange::Reduce { over: Path::Hierarchical } => {
                    flat.add(2.0, 3.0, 0.0);
                    node.add(0.0, 0.0, 1.0);
                    rail.add(0.0, 0.0, 1.0);
                }
                Exchange::Unique { per: Per::Node } => {
                    node.add(2.0, 1.0, 1.0);
                    rail.add(2.0, 1.0, 1.0);
                }
            }
        }
        for (sync, _) in &self.syncs {
            let (syncs, each) = match sync {
                ReplicaSync::None => (0.0, 0.0),
                ReplicaSync::Weights { every } => (1.0 / f64::from(every.get()), 1.0),
                // Counts and rows are gathered before.
                ReplicaSync::TouchedRows { every } => (1.0 / f64::from(every.get()), 2.0),
                ReplicaSync::Gradients => (1.0, 2.0),
                ReplicaSync::FullyShardedReplicas => (1.0, 1.0),
            };
            all.syncs += syncs;
            all.sums += syncs * each;
        }
        all
    }
}

impl Collectives {
    /// The scopes in which something travels.
    pub(super) fn used(&self) -> impl Iterator<Item = (Scope, Runs)> + use<> {
        SCOPES.into_iter().zip(self.scopes).filter(|(_, runs)| runs.outputs + runs.ids > 0.0)
    }
}

impl Runs {
    fn add(&mut self, ids: f64, counts: f64, outputs: f64) {
        self.ids += ids;
        self.counts += counts;
        self.outputs += outputs;
    }
}

fn change<K: PartialEq>(counts: &mut Vec<(K, u32)>, kind: K, sign: f64) {
    let found = counts.iter().position(|(known, _)| *known == kind);
    match found {
        Some(at) if sign > 0.0 => counts[at].1 += 1,
        Some(at) if counts[at].1 > 1 => counts[at].1 -= 1,
        Some(at) => {
            counts.remove(at);
        }
        None if sign > 0.0 => counts.push((kind, 1)),
        None => {}
    }
}
