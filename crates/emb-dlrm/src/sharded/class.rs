//! The tables of one exchange on one rank: [`Class`].

use super::bags::BagsWay;
use super::beside::Away;
use super::error::Result;
use super::layout::{Layout, Members};
use super::links::{Links, part_of};
use super::replicas::unclamped;
use super::rows::{RowsWay, Samples};
use super::staged::Staged;
use super::stored::StoredShards;
use super::trip::{Leg, Trip};
use emb_comm::{Collective, Meter, Meters};
use emb_kernels::{Backend, FeatureMap, JaggedRef, Pooling, TableSpec};
use emb_shard::{Exchange, Per, Plan, Rank};

/// The tiers that share an exchange: their shards here, and the ranks that share them.
#[derive(Debug)]
pub(super) struct Class<B: Backend, C> {
    pub(super) members: Members,
    pub(super) layout: Layout,
    pub(super) links: Links<C>,
    pub(super) stored: Away<StoredShards<B, C>>,
    /// What the replicas had cost when the shards went away.
    pub(super) synced: Meters,
    /// What sums of the replicas' gradients have cost so far.
    pub(super) summed: Meter,
    way: Way<B>,
}

/// What travels.
#[derive(Debug)]
enum Way<B: Backend> {
    Bags(BagsWay<B>),
    Rows(RowsWay<B>),
}

/// What is the same for all exchanges of a collection.
pub(super) struct Whole<'a> {
    pub(super) plan: &'a Plan,
    pub(super) specs: &'a [TableSpec],
    pub(super) map: &'a FeatureMap,
    /// Of which features the destination divides by the weight of the bag.
    pub(super) divided: &'a [bool],
    pub(super) rank: Rank,
    pub(super) seed: u64,
}

/// The exchanges of a plan, those without an exchange apart by what its features need.
pub(super) fn members(plan: &Plan, map: &FeatureMap) -> Vec<Members> {
    let mut all = Vec::new();
    for class in plan.exchange_classes() {
        let (rows, bags): (Vec<_>, Vec<_>) = (class.tiers.iter())
            .partition(|(table, _)| rows_travel(class.exchange, map, table.get() as usize));
        for tiers in [bags, rows].into_iter().filter(|tiers| !tiers.is_empty()) {
            all.push(Members { mesh: class.mesh, exchange: class.exchange, tiers });
        }
    }
    all
}

/// Whether rows come to the samples, so that they are pooled there if at all.
pub(super) fn rows_travel(exchange: Exchange, map: &FeatureMap, table: usize) -> bool {
    match exchange {
        Exchange::Reduce { .. } => false,
        Exchange::Unique { .. } | Exchange::Rows => true,
        Exchange::Local => {
            let mut features = map.features().iter().filter(|feature| feature.table == table);
            features.any(|feature| feature.pooling == Pooling::None)
        }
    }
}

impl<B: Backend, C: Collective> Class<B, C> {
    pub(super) fn new(
        world: &mut C,
        backend: &mut B,
        whole: &Whole<'_>,
        members: Members,
    ) -> Result<Self> {
        let Whole { plan, specs, map, divided, rank, seed } = *whole;
        let layout = Layout::new(plan, &members, specs, rank)?;
        let part = part_of(plan, &members)?;
        let stored = StoredShards::new(world, backend, whole, &members, &layout, seed)?;
        let links = Links::new(world, plan, &members, rank)?;
        let local = B::specs(&stored.tables);
        let by_rows = rows_travel(members.exchange, map, layout.tiers[0].table);
        let way = if by_rows {
            let unique =
                matches!(members.exchange, Exchange::Unique { per: Per::Rank | Per::Node });
            let how = (unique || members.exchange == Exchange::Local, part);
            Way::Rows(RowsWay::new(&layout, local, specs, map, divided, how)?)
        } else {
            Way::Bags(BagsWay::new(&layout, local, map, divided, part)?)
        };
        let (stored, synced, summed) = (Away::new(stored), Meters::default(), Meter::default());
        Ok(Self { members, layout, links, stored, synced, summed, way })
    }

    /// What the replicas cost so far, where there are any.
    pub(super) fn replica_meters(&self) -> Option<Meters> {
        let Some(stored) = self.stored.get() else { return Some(self.synced) };
        stored.replicas.as_ref().map(Collective::meters)
    }

    /// Says which rank is asked for what; ids were checked.
    pub(super) fn route(&self, batch: JaggedRef<'_>, places: &[i64], leg: &mut Leg) {
        match &self.way {
            Way::Bags(way) => way.route(&self.layout, batch, places, &mut leg.parcels),
            Way::Rows(way) => way.route(&self.layout, batch, places, &mut leg.wanted),
        }
    }

    /// Asks.
    pub(super) fn exchange(&mut self, batch: usize, leg: &mut Leg) -> Result<()> {
        let links = &mut self.links;
        match &mut self.way {
            Way::Bags(way) => way.exchange(links, &mut leg.parcels, batch, &mut leg.arrived),
            Way::Rows(way) => way.exchange(links, leg),
        }
    }

    /// Takes what is asked to the device, which may begin with it.
    pub(super) fn prepare(
        &mut self,
        backend: &mut B,
        leg: &Leg,
        staged: &mut Staged<B>,
    ) -> Result<()> {
        staged.fill(backend, &leg.arrived)?;
        let (map, names) = match &self.way {
            Way::Bags(way) => (&way.map, way.names()),
            Way::Rows(way) => (&way.map, way.names()),
        };
        let batch = staged.view(names, &leg.arrived);
        Ok(backend.foresee(&mut self.stored.tables, map, batch)?)
    }

    /// Answers, and adds the answers of others to the output of this rank's samples.
    pub(super) fn forward(
        &mut self,
        backend: &mut B,
        number: usize,
        trip: &mut Trip,
        staged: &Staged<B>,
        width: usize,
    ) -> Result<()> {
        let Trip { batch, divisors, legs, output, sequences, .. } = trip;
        let leg = &legs[number];
        let Self { layout, links, stored, way, .. } = self;
        let tables = &mut stored.tables;
        let shape = (*batch, width);
        match way {
            Way::Bags(way) => {
                way.forward(links, backend, tables, (&leg.arrived, staged), shape, output)
            }
            Way::Rows(way) => {
                let samples = Samples { batch: *batch, width, divisors };
                let out = (&mut output[..], &mut sequences[..]);
                way.forward((layout, links), backend, tables, (leg, staged), samples, out)
            }
        }
    }

    /// Brings gradients to the owners, who update every touched row once. `rule` gives that of a
    /// stored shard's table.
    pub(super) fn backward(
        &mut self,
        backend: &mut B,
        (trip, leg): (&Trip, &Leg),
        staged: &Staged<B>,
        (gradient, width): (&[f32], usize),
        sequences: &[&[f32]],
        (rates, step): (&[f64], u64),
    ) -> Result<()> {
        let Trip { batch, divisors, .. } = trip;
        let Self { layout, links, stored, summed, way, .. } = self;
        stored.set_rules(rates, step);
        let done = match way {
            Way::Bags(way) => {
                let shape = (*batch, width);
                way.backward(links, backend, &leg.arrived, gradient, divisors, shape)?;
                let (map, batch) = (&way.map, staged.view(way.names(), &leg.arrived));
                let gradients = way.gradients(&leg.arrived);
                stored.touch(map, &leg.arrived);
                stored.update((layout, links), backend, (map, batch), &gradients, step)
            }
            Way::Rows(way) => {
                let samples = Samples { batch: *batch, width, divisors };
                let gradients = (gradient, sequences);
                way.backward((layout, links), backend, leg, samples, gradients)?;
                stored.touch(&way.map, &leg.arrived);
                // Lookups were bounded where their gradients were summed.
                stored.rules.iter_mut().for_each(|rule| *rule = unclamped(*rule));
                way.with_gradients(&leg.arrived, |map, names, gradients| {
                    let batch = staged.view(names, &leg.arrived);
                    stored.update((layout, links), backend, (map, batch), gradients, step)
                })
            }
        };
        *summed = stored.summed.cost;
        done
    }
}
