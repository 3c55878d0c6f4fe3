//! Exchanges in which rows travel: the rows of a batch come to it, each once if ids are
//! de-duplicated, and are pooled where the samples are; their gradients are summed there and go back.
//!
//! ```text
//!   rank          lists of rows  --->  owner
//!   rank   <---  rows                  owner       gradients the other way
//! ```
//!
//! By node, lists for the owners with index `i` in their nodes pass this node's rank `i`, where they
//! are united: every distinct row enters a node once, and its gradient leaves it once.

mod distinct;
mod exchange;
mod owner;
mod relay;
mod samples;
mod wanted;

pub(super) use wanted::Wanted;

use super::error::Result;
use super::layout::Layout;
use super::links::Links;
use super::memory::{Grown, ListMemory};
use super::staged::Staged;
use super::trip::Leg;
use super::wire::{Kind, Kinds, Lists};
use emb_comm::Collective;
use emb_kernels::{Backend, FeatureMap, Mat, Pooling, TableSpec};
use exchange::ExchangeMemory;
use relay::Relay;
use std::ops::Range;

/// The rows of one exchange, at this rank.
pub(super) struct RowsWay<B: Backend> {
    /// Whether a row that is looked up twice travels once.
    unique: bool,
    /// By tier of the layout, the features of its table.
    features: Vec<Vec<Target>>,
    /// All shards, in the order in which they are asked for.
    wire: Vec<usize>,
    /// Which of them each peer is asked for: an owner, or the rank that asks it for the node.
    peers: Vec<Range<usize>>,
    /// What asks owners for the node; `None` where each rank asks for itself.
    relay: Option<Relay>,
    /// One feature for each shard of this rank and each rank that asks, by asking rank.
    pub(super) map: FeatureMap,
    names: Vec<String>,
    /// Columns of each shard of this rank, and its tier.
    widths: Vec<usize>,
    tiers: Vec<usize>,
    /// Ranks that ask this one.
    askers: usize,
    exchange: ExchangeMemory,
    /// Rows as they arrive, and then their gradients as they leave.
    received: Vec<f32>,
    /// Rows as they leave their owner, and then their gradients as they arrive.
    served: Vec<f32>,
    /// Elements for, and from, each peer.
    wanted_counts: Vec<usize>,
    served_counts: Vec<usize>,
    /// The same as rows.
    wanted_kinds: Kinds,
    served_kinds: Kinds,
    device: Grown<B, f32>,
    sequences: ListMemory<(usize, Mat<B::View<'static, f32>>)>,
}

/// A feature whose rows come in.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Position of the feature.
    feature: usize,
    pooling: Pooling,
    /// First column in the whole output.
    output: usize,
    /// Whether the destination divides by the weight of the bag.
    divide: bool,
    /// Bound of every element of a gradient.
    max_gradient: Option<f32>,
}

/// A batch as the ways see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples<'a> {
    /// Samples of this rank.
    pub(super) batch: usize,
    /// Columns of the output.
    pub(super) width: usize,
    /// `[features, batch]`.
    pub(super) divisors: &'a [f32],
}

impl<B: Backend> RowsWay<B> {
    /// `divided` says of which features the destination divides; `part` are the ranks of a group on
    /// a node, where lists are united there.
    pub(super) fn new(
        layout: &Layout,
        local: &[TableSpec],
        specs: &[TableSpec],
        map: &FeatureMap,
        divided: &[bool],
        (unique, part): (bool, Option<usize>),
    ) -> Result<Self> {
        let group = layout.owned.len();
        let (wire, peers) = wire(layout, part);
        let relay = part.map(|part| Relay::new(layout, &wire, &peers, part));
        let askers = part.map_or(group, |part| group / part);
        let map_of_owner = owner::map(local, askers)?;
        let names = map_of_owner.features().iter().map(|feature| feature.name.clone()).collect();
        Ok(Self {
            unique,
            features: layout
                .tiers
                .iter()
                .map(|tier| targets(map, divided, tier.table, &specs[tier.table]))
                .collect(),
            wire,
            peers,
            relay,
            map: map_of_owner,
            names,
            widths: local.iter().map(|spec| spec.dim).collect(),
            tiers: layout.stored().map(|shard| shard.tier).collect(),
            askers,
            exchange: ExchangeMemory::default(),
            received: Vec::new(),
            served: Vec::new(),
            wanted_counts: Vec::new(),
            served_counts: Vec::new(),
            wanted_kinds: Kinds::default(),
            served_kinds: Kinds::default(),
            device: Grown::default(),
            sequences: ListMemory::default(),
        })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Brings rows to this rank's samples, and adds them up in `output` and `sequences`.
    pub(super) fn forward<C: Collective>(
        &mut self,
        (layout, links): (&Layout, &mut Links<C>),
        backend: &mut B,
        tables: &mut B::Tables,
        (leg, staged): (&Leg, &Staged<B>),
        samples: Samples<'_>,
        (output, sequences): (&mut [f32], &mut [Vec<f32>]),
    ) -> Result<()> {
        self.serve(backend, tables, &leg.arrived, staged)?;
        self.count(layout, leg);
        let len = self.wanted_counts.iter().sum();
        self.received.resize(len, 0.0);
        let Self { relay, served, served_counts, served_kinds, .. } = self;
        let Self { received, wanted_counts, wanted_kinds, .. } = self;
        let send = Lists::of(served, served_counts, served_kinds);
        let recv = Lists::of(received, wanted_counts, wanted_kinds);
        match (relay, links) {
            (Some(relay), links) => relay.rows(links, send, &leg.wanted.relayed, recv)?,
            (None, Links { group: Some(group), carrier, .. }) => {
                carrier.carry_lists(group, carrier.forward, send, recv)?;
            }
            (None, _) => std::mem::swap(&mut self.served, &mut self.received),
        }
        self.pool(layout, &leg.wanted, samples, output, sequences);
        Ok(())
    }

    /// Sums the gradients of this rank's samples by row and brings them to the owners.
    pub(super) fn backward<C: Collective>(
        &mut self,
        (layout, links): (&Layout, &mut Links<C>),
        backend: &mut B,
        leg: &Leg,
        samples: Samples<'_>,
        (gradient, sequences): (&[f32], &[&[f32]]),
    ) -> Result<()> {
        self.count(layout, leg);
        let (wanted, served) = (self.wanted_counts.iter().sum(), self.served_counts.iter().sum());
        self.received.clear();
        self.received.resize(wanted, 0.0);
        self.sum_by_row(layout, &leg.wanted, samples, gradient, sequences);
        self.served.resize(served, 0.0);
        let Self { relay, served, served_counts, served_kinds, .. } = self;
        let Self { received, wanted_counts, wanted_kinds, .. } = self;
        let send = Lists::of(received, wanted_counts, wanted_kinds);
        let recv = Lists::of(served, served_counts, served_kinds);
        match (relay, links) {
            (Some(relay), links) => relay.gradients(links, send, &leg.wanted.relayed, recv)?,
            (None, Links { group: Some(group), carrier, .. }) => {
                carrier.carry_lists(group, carrier.backward, send, recv)?;
            }
            (None, _) => std::mem::swap(&mut self.served, &mut self.received),
        }
        self.device.fill(backend, &self.served)
    }

    /// Elements of what is asked of each peer, and of what each asks of this rank.
    fn count(&mut self, layout: &Layout, leg: &Leg) {
        let Self { wire, peers, widths, tiers, askers, wanted_counts, served_counts, .. } = self;
        let Self { wanted_kinds, served_kinds, .. } = self;
        let Leg { wanted, arrived, .. } = leg;
        wanted_kinds.clear();
        for range in &*peers {
            for &shard in &wire[range.clone()] {
                let (rows, of) = (wanted.lists[shard].len(), &layout.shards[shard]);
                wanted_kinds.push(Kind { rows, dim: of.width, tier: of.tier });
            }
            wanted_kinds.next_peer();
        }
        served_kinds.clear();
        for asker in 0..*askers {
            for (shard, (&dim, &tier)) in widths.iter().zip(&*tiers).enumerate() {
                let rows = arrived.ids_of(asker * widths.len() + shard).len();
                served_kinds.push(Kind { rows, dim, tier });
            }
            served_kinds.next_peer();
        }
        wanted_counts.clear();
        wanted_counts.extend(peers.iter().map(|range| {
            let lists = wire[range.clone()].iter().map(|&shard| (&wanted.lists[shard], shard));
            lists.map(|(list, shard)| list.len() * layout.shards[shard].width).sum::<usize>()
        }));
        served_counts.clear();
        served_counts.extend((0..*askers).map(|asker| {
            let lists = (asker * widths.len()..).zip(&*widths);
            lists.map(|(list, width)| arrived.ids_of(list).len() * width).sum::<usize>()
        }));
    }
}

impl<B: Backend> std::fmt::Debug for RowsWay<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowsWay").field("unique", &self.unique).finish_non_exhaustive()
    }
}

/// The features of a table whose rows come in.
fn targets(map: &FeatureMap, divided: &[bool], table: usize, spec: &TableSpec) -> Vec<Target> {
    let all = map.features().iter().enumerate().filter(|(_, feature)| feature.table == table);
    let target = |(feature, of): (usize, &emb_kernels::Feature)| Target {
        feature,
        pooling: of.pooling,
        output: map.column(feature),
        divide: divided[feature],
        max_gradient: spec.optimizer.config().max_gradient.map(|bound| bound as f32),
    };
    all.map(target).collect()
}

/// All shards by whom they are asked of: by owner; by node, by the index of the owner in its node,
/// and then by node.
fn wire(layout: &Layout, part: Option<usize>) -> (Vec<usize>, Vec<Range<usize>>) {
    let group = layout.owned.len();
    let (mut wire, mut peers) = (Vec::new(), Vec::new());
    for peer in 0..part.unwrap_or(group) {
        let begin = wire.len();
        for owner in (peer..group).step_by(part.unwrap_or(group)) {
            wire.extend_from_slice(&layout.owned[owner]);
        }
        peers.push(begin..wire.len());
    }
    (wire, peers)
}
