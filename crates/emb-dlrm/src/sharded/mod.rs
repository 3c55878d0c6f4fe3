//! Embedding tables over ranks: the same result as one process.
//!
//! A [`Plan`] says which rank stores which rows and columns. A step is a chain of
//! types, each made from the one before, so that a wrong order doesn't compile:
//!
//! ```text
//! route    Routed      ids sorted by owner                          no communication
//! exchange Exchanged   ids go to their owners                       2 collectives an exchange
//! pool     Pooled      sums, or rows, come back                     1 collective an exchange
//! backward             gradients go to the owners, one update a row 1 collective an exchange
//! ```
//!
//! twice as many of what goes by node, with one more for per-sample weights, one more in the update
//! where a row-wise rule needs the statistic of rows whose columns are cut, and a few where replicas
//! agree: none of these numbers grows with the number of tables.
//!
//! **Gradients.** [`Pooled::backward`] takes the gradient of the mean loss over the *global* batch,
//! whatever the plan. Tables whose replicas average weights multiply it by their number of replicas
//! `M`, so that the mean of the replicas' steps is the step of one process.
//!
//! **Memory.** After a few steps nothing is allocated: the collection keeps what a step needs, and
//! what a batch takes along from stage to stage comes back when its last stage is dropped.
//!
//! **Bags over several owners.** With row cuts the owners sum and the destination divides a mean by
//! the weight of the whole bag; the gradients that it sends are already divided.

mod agree;
mod average;
mod backward;
mod bags;
mod beside;
mod check;
mod class;
mod error;
mod exchange;
mod gather;
mod layer;
mod layout;
mod links;
mod mean;
mod memory;
mod places;
mod pool;
mod replicas;
mod rounds;
mod route;
mod rows;
mod spares;
mod staged;
mod statistics;
mod stored;
mod sync;
mod touched;
mod trip;
mod verify;
mod wire;

pub use error::{Error, Result};
pub use exchange::{Exchanged, Prepared};
pub use gather::WholeTable;
pub use layer::ShardedBags;
pub use pool::Pooled;
pub use route::Routed;
pub(crate) use wire::{Format, Narrow};
pub use wire::{IdWire, Wires};

use beside::Beside;
pub(crate) use check::check;
#[cfg(feature = "cli")]
pub(crate) use check::executable;
use class::{Class, Whole};
use emb_comm::{Collective, Meter, Meters, Trace};
use emb_kernels::{Backend, Feature, FeatureMap, Pooling, TableSpec};
use emb_shard::{Plan, Rank, Tier};
use memory::ListMemory;
use places::Places;
use spares::Spares;
use staged::Staged;
use trip::Trip;

/// The embedding tables of a model over the ranks of a [`Collective`]: this rank's end.
///
/// Every rank makes one with the same arguments and calls the same methods in the same order.
///
/// ```
/// use emb_comm::{Collective, Options, run};
/// use emb_dlrm::sharded::{Error, ShardedEmbeddings};
/// use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, Pooling, TableSpec};
/// use emb_optim::{Optimizer, RuleKind};
/// use emb_shard::{Layout, Mesh, Plan, RowCut, Table, TableOptions, Tables};
///
/// // Ten rows over two ranks.
/// let tables = Tables::new(vec![Table::new("user", 10, 4, TableOptions::default())?])?;
/// let plan = Plan::row_wise(&tables, Mesh::new(2, 2, Layout::Strided)?, RowCut::Even)?;
/// let specs = [TableSpec::new("user", 10, 4, Optimizer::new(RuleKind::Sgd))];
/// let feature = Feature { name: "user".into(), table: 0, pooling: Pooling::Sum };
///
/// run(2, &Options::default(), |world| {
///     let mut cpu = Cpu::new(CpuOptions::default())?;
///     let features = vec![feature.clone()];
///     let mut sharded =
///         ShardedEmbeddings::new(world, &mut cpu, &plan, &specs, features, vec![0.1], 0, 7)?;
///     // One sample a rank.
///     let ids = vec![3, 3 + world.rank() as i64];
///     let batch = Jagged::from_lengths(&["user"], 1, &[2], ids, None)?;
///     let routed = sharded.route(batch.as_ref())?;
///     let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
///     assert_eq!(pooled.output().len(), 4);
///     let gradient = [0.5; 4]; // of a mean over two samples
///     pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, 1)?;
///     Ok::<_, Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardedEmbeddings<B: Backend, C: Collective> {
    plan: Plan,
    specs: Vec<TableSpec>,
    map: FeatureMap,
    rates: Vec<f64>,
    /// The rates of the step that is going on.
    step_rates: Vec<f64>,
    /// Of which features the destination divides by the weight of the bag.
    divided: Vec<bool>,
    places: Places,
    classes: Vec<Class<B, C>>,
    /// Memory of batches that aren't under way.
    trips: Spares<Trip>,
    /// The same on the device, one for each exchange.
    staged: Spares<Vec<Staged<B>>>,
    /// By feature, gradients of sequences.
    sequences: ListMemory<&'static [f32]>,
    /// All ranks, to tell them of bad input.
    everyone: C,
    /// Steps since replicas were last made equal.
    unsynced: u64,
    /// The stream of batches that are prepared, where the device has several.
    side: Option<B>,
    /// Makes them equal, where that is wanted on a thread of its own.
    beside: Option<Beside<B, C>>,
    /// Where waiting for it is recorded.
    trace: Trace,
}

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Creates this rank's parts of the tables. `specs` are the whole tables in the order of the
    /// plan's; `rates`, `first_column` and `seed` are those of
    /// [`EmbeddingBags::new`](crate::EmbeddingBags::new).
    ///
    /// # Errors
    /// By table name, what of the plan can't be executed: fully sharded replicas, `max_norm` with
    /// column cuts, replica rules that don't fit, features without pooling where owners pool. Tables
    /// that aren't the plan's, a world of another size. Ranks that were given other arguments. A
    /// peer that fails.
    #[expect(clippy::too_many_arguments, reason = "those of one process, and where they live")]
    pub fn new(
        world: &mut C,
        backend: &mut B,
        plan: &Plan,
        specs: &[TableSpec],
        features: Vec<Feature>,
        rates: Vec<f64>,
        first_column: usize,
        seed: u64,
    ) -> Result<Self> {
        check(plan, specs, &features, rates.len(), world.world())?;
        let map = FeatureMap::new(features, specs, first_column)?;
        let me = world.rank();
        let mut everyone = world.split(Some(0), me)?.ok_or_else(no_set)?;
        agree::agree(&mut everyone, plan, specs, &map, (&rates, seed))?;
        let rank = Rank::new(me as u32);
        let divided = divided(plan, &map);
        let whole = Whole { plan, specs, map: &map, divided: &divided, rank, seed };
        let mut classes = Vec::new();
        for members in class::members(plan, &map) {
            classes.push(Class::new(world, backend, &whole, members)?);
        }
        Ok(Self {
            plan: plan.clone(),
            specs: specs.to_vec(),
            places: Places::new(plan, &map),
            map,
            rates,
            step_rates: Vec::new(),
            divided,
            classes,
            trips: Spares::default(),
            staged: Spares::default(),
            sequences: ListMemory::default(),
            everyone,
            unsynced: 0,
            side: if B::STREAMS { Some(backend.another()?) } else { None },
            beside: None,
            trace: Trace::default(),
        })
    }

    /// How ids travel from now on, [`IdWire::Plain`] at first. Every rank calls it with the same,
    /// before the same step; results do not change.
    pub fn set_id_wire(&mut self, ids: IdWire) {
        self.classes.iter_mut().for_each(|class| class.links.ids = ids);
    }

    /// How rows, sums, gradients and weights travel from now on, unchanged at first. Every rank calls
    /// it with the same, before the same step: one collective.
    ///
    /// # Errors
    /// A format that can't be had for what it is for; ranks that were given others.
    pub fn set_wires(&mut self, wires: Wires) -> Result<()> {
        wires.check()?;
        agree::same(&mut self.everyone, &wires, "wire formats")?;
        self.bring_back()?;
        for class in &mut self.classes {
            class.links.carrier.set(wires);
            class.stored.averaging.set(wires.averaged());
            class.stored.summed.set(wires.summed());
        }
        Ok(())
    }

    /// The features and their columns in the output, as in one process.
    pub fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// The whole tables, in order.
    pub fn specs(&self) -> &[TableSpec] {
        &self.specs
    }

    /// The plan that is executed.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Records in `trace` from now on how long this rank waits for syncs on a thread beside.
    pub fn set_trace(&mut self, trace: Trace) {
        self.trace = trace;
    }

    /// What the collectives of each set of ranks cost this rank so far: those of exchanges and those
    /// of replicas.
    pub fn meters(&self) -> impl Iterator<Item = Meters> {
        self.classes.iter().flat_map(|class| class.links.meters().chain(class.replica_meters()))
    }

    /// What the exchanges inside groups cost this rank so far.
    pub fn exchanged(&self) -> Meter {
        let meters = self.classes.iter().flat_map(|class| class.links.meters());
        meters.map(|meters| meters.total()).sum()
    }

    /// What replicas cost this rank so far; of syncs on a thread beside, the seconds are those that this
    /// one waited, and what those under way cost comes once they are over.
    pub fn synced(&self) -> Meter {
        let replicas = self.classes.iter().filter_map(Class::replica_meters);
        let mut synced: Meter = replicas.map(|meters| meters.total()).sum();
        if let Some(beside) = &self.beside {
            // Gradients are summed on this thread.
            let own: Meter = self.classes.iter().map(|class| class.summed).sum();
            synced.wait_seconds = beside.waited().wait_seconds + own.wait_seconds;
            synced.copy_seconds = own.copy_seconds;
        }
        synced
    }

    /// Calls of collectives so far.
    pub fn collectives(&self) -> u64 {
        self.meters().map(|meters| meters.total().calls).sum()
    }

    /// Tells the other ranks why this one gives up, and hands the error on.
    fn give_up(&self, error: Error) -> Error {
        if !matches!(error, Error::Comm(_)) {
            self.everyone.abort(&error.to_string());
        }
        error
    }
}

/// A transport that makes no set for a rank that asked for one.
fn no_set() -> Error {
    Error::Mismatch("the transport made no set of ranks".to_owned())
}

/// Of which features the destination divides sums by the weight of the bag: of means whose rows come
/// from several tiers or parts, or are pooled where they arrive.
fn divided(plan: &Plan, map: &FeatureMap) -> Vec<bool> {
    let divided = |feature: &Feature| {
        let tiers = &plan.placed().as_slice()[feature.table].tiers;
        let apart = |tier: &Tier| {
            let cut = tier.blocks.iter().any(|block| block.owners.len() > 1);
            cut || class::rows_travel(tier.exchange, map, feature.table)
        };
        feature.pooling == Pooling::Mean && (tiers.len() > 1 || tiers.iter().any(apart))
    };
    map.features().iter().map(divided).collect()
}
