//! Exchanges in which owners pool: bags go to the owners of their rows, sums come back.

mod exchange;
mod nodes;
mod portions;
mod route;
mod samples;

use super::error::Result;
use super::layout::Layout;
use super::links::Links;
use super::memory::Grown;
use super::staged::Staged;
use super::trip::Arrived;
use super::wire::Side;
use emb_comm::Collective;
use emb_kernels::{Backend, FeatureMap, Gradients, Mat};
use exchange::ExchangeMemory;
use nodes::Nodes;
use portions::{Owned, Route};

/// The bags of one exchange, at this rank.
#[derive(Debug)]
pub(super) struct BagsWay<B: Backend> {
    /// The features of the exchange.
    routes: Vec<Route>,
    /// By position of the group: what it pools.
    owned: Vec<Owned>,
    position: usize,
    /// What sums of nodes are made of; `None` where sums come from their owners.
    nodes: Option<Nodes>,
    /// What this rank pools, over its stored shards.
    pub(super) map: FeatureMap,
    names: Vec<String>,
    exchange: ExchangeMemory,
    /// Pooled sums, or gradients cut by whom they are for, on their way.
    sums: Vec<f32>,
    /// The same where they arrive.
    received: Vec<f32>,
    /// How many of them are of the samples of each rank of the group.
    sample_counts: Vec<usize>,
    /// How many of them are of the columns of each owner.
    owner_counts: Vec<usize>,
    /// Pooled sums or gradients of this owner.
    device: Grown<B, f32>,
}

impl<B: Backend> BagsWay<B> {
    /// `divided` says of which features the destination divides by the weight of the bag; `part`
    /// are the ranks of a group on a node, where sums are added up there.
    pub(super) fn new(
        layout: &Layout,
        local: &[emb_kernels::TableSpec],
        map: &FeatureMap,
        divided: &[bool],
        part: Option<usize>,
    ) -> Result<Self> {
        let routes = portions::routes(layout, map);
        let owned = portions::owned(layout, map, &routes, divided);
        let nodes = part.map(|part| Nodes::new(&owned, layout.position, part));
        let features = portions::features(&owned[layout.position], layout, map, divided);
        let own = FeatureMap::new(features, local, 0)?;
        Ok(Self {
            routes,
            position: layout.position,
            nodes,
            names: own.features().iter().map(|feature| feature.name.clone()).collect(),
            map: own,
            owned,
            exchange: ExchangeMemory::default(),
            sums: Vec::new(),
            received: Vec::new(),
            sample_counts: Vec::new(),
            owner_counts: Vec::new(),
            device: Grown::default(),
        })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Columns of all portions of this rank.
    fn width(&self) -> usize {
        self.owned[self.position].width
    }

    /// Who sends this rank sums: nodes or owners.
    fn sources(&self) -> &[Owned] {
        self.nodes.as_ref().map_or(&self.owned, |nodes| &nodes.sources)
    }

    /// Pools what arrived and adds the sums of this rank's samples to `output`.
    pub(super) fn forward<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        backend: &mut B,
        tables: &mut B::Tables,
        (arrived, staged): (&Arrived, &Staged<B>),
        (batch, width): (usize, usize),
        output: &mut [f32],
    ) -> Result<()> {
        let (rows, cols) = (arrived.total(), self.width());
        self.sums.resize(rows * cols, 0.0);
        if !self.sums.is_empty() {
            let out = Mat::new(self.device.room(backend, rows * cols)?, rows, cols);
            backend.pool(tables, &self.map, staged.view(&self.names, arrived), out)?;
            backend.download(self.device.view(0..rows * cols), &mut self.sums)?;
        }
        self.travel(links, batch, &arrived.samples, Direction::ToSamples)?;
        samples::assemble(self.sources(), &self.received, (batch, width), output);
        Ok(())
    }

    /// Brings the gradient of this rank's samples to the owners; what arrived is theirs to update
    /// with.
    pub(super) fn backward<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        backend: &mut B,
        arrived: &Arrived,
        gradient: &[f32],
        divisors: &[f32],
        (batch, width): (usize, usize),
    ) -> Result<()> {
        let mut sums = std::mem::take(&mut self.sums);
        samples::cut(self.sources(), gradient, divisors, (batch, width), &mut sums);
        self.sums = sums;
        self.travel(links, batch, &arrived.samples, Direction::ToOwners)?;
        self.device.fill(backend, &self.received)
    }

    /// The gradients that [`backward`](Self::backward) brought.
    pub(super) fn gradients(&self, arrived: &Arrived) -> Gradients<'_, '_, B> {
        let (rows, cols) = (arrived.total(), self.width());
        let pooled = Mat::new(self.device.view(0..self.received.len()), rows, cols);
        Gradients { pooled, sequences: &[] }
    }

    /// Sends the `sums` to whom they are for, and receives in return.
    fn travel<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        batch: usize,
        samples: &[usize],
        direction: Direction,
    ) -> Result<()> {
        let Self { owned, position, nodes, sums, received, sample_counts, owner_counts, .. } = self;
        if let Some(nodes) = nodes {
            return match direction {
                Direction::ToSamples => nodes.send_sums(links, sums, batch, samples, received),
                Direction::ToOwners => nodes.send_gradients(links, sums, batch, samples, received),
            };
        }
        let Links { group: Some(group), carrier, .. } = links else {
            std::mem::swap(sums, received);
            return Ok(());
        };
        count(sample_counts, samples, owner_counts, batch, owned, *position);
        let own = &owned[*position];
        let of_samples = samples.iter().map(|&samples| own.parcel(samples));
        let of_owners = owned.iter().map(|owned| owned.parcel(batch));
        match direction {
            Direction::ToSamples => {
                received.resize(owner_counts.iter().sum(), 0.0);
                let send = Side::new(sums, sample_counts, of_samples);
                let recv = Side::new(received, owner_counts, of_owners);
                carrier.carry(group, carrier.forward, send, recv)
            }
            Direction::ToOwners => {
                received.resize(sample_counts.iter().sum(), 0.0);
                let send = Side::new(sums, owner_counts, of_owners);
                let recv = Side::new(received, sample_counts, of_samples);
                carrier.carry(group, carrier.backward, send, recv)
            }
        }
    }
}

/// Which way columns go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From `[samples of the group, columns of this owner]` to `[batch, its columns]` of each source.
    ToSamples,
    /// The other way.
    ToOwners,
}

/// Elements of the samples of each rank at the owner at `position`, and of `batch` samples at each
/// owner.
fn count(
    of_samples: &mut Vec<usize>,
    samples: &[usize],
    of_owners: &mut Vec<usize>,
    batch: usize,
    owned: &[Owned],
    position: usize,
) {
    let width = owned[position].width;
    of_samples.clear();
    of_samples.extend(samples.iter().map(|samples| samples * width));
    of_owners.clear();
    of_owners.extend(owned.iter().map(|owned| batch * owned.width));
}
