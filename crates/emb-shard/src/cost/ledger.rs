//! Tables placed so far and what they cost: [`Ledger`].

use super::classes::{Classes, Collectives};
use super::demand::Demands;
use super::load::Load;
use super::model::StepModel;
use super::price;
use super::shape::MeshShape;
use super::shard::{Adding, Loads, shares_statistics};
use super::statistics::Statistics;
use super::typical::MeshRates;
use super::volume::Volumes;
use super::{Estimate, Parts};
use crate::{Bytes, Id, Mesh, Result, TableId, TablePlan, Topology, Workload};

/// Tables placed so far and what a step of them costs.
///
/// Tables come and go one by one, so that a planner can try a placement without costing all others
/// anew: adding one takes time in proportion to its shards, a cost to the ranks.
///
/// ```
/// use emb_shard::{
///     Batch, Layout, Ledger, Mesh, Plan, RowCut, StepModel, TableSpec, Topology, Workload,
///     WorkloadSpec,
/// };
///
/// let mut spec = WorkloadSpec::new("two tables", Batch::PerRank(512));
/// spec.tables = vec![TableSpec::new("ads", 1_000_000, 64), TableSpec::new("day", 7, 64)];
/// let workload = Workload::new(spec)?;
/// let topology = Topology::preset("dgx-h100:1")?;
/// let mesh = Mesh::new(8, 8, Layout::Strided)?;
/// let plan = Plan::row_wise(workload.tables(), mesh, RowCut::Even)?;
///
/// let mut ledger = Ledger::new(&StepModel::default(), &workload, &topology, 8)?;
/// for (table, placed) in plan.placed().iter() {
///     ledger.add(table, placed)?;
/// }
/// let both = ledger.step_seconds();
/// let (day, placed) = plan.placed().iter().nth(1).expect("two tables");
/// ledger.remove(day, placed)?;
/// assert!(ledger.step_seconds() < both);
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ledger<'a> {
    pub(super) model: StepModel,
    pub(super) workload: &'a Workload,
    pub(super) topology: &'a Topology,
    node_ranks: u32,
    /// Samples of a rank, a mean.
    pub(super) samples: f64,
    pub(super) meshes: Vec<Placed>,
    pub(super) demands: Demands,
    /// What bytes take, by mesh.
    pub(super) rates: Vec<MeshRates>,
}

/// The tables over one mesh.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) shape: MeshShape,
    pub(super) loads: Loads,
    pub(super) volumes: Volumes,
    classes: Classes,
    /// Those of the classes.
    pub(super) collectives: Collectives,
    stale: bool,
}

impl<'a> Ledger<'a> {
    /// No tables yet, over all ranks of `topology` in nodes of `node_ranks`.
    ///
    /// # Errors
    /// A batch that so many ranks cannot have; nodes that do not share out the ranks; parts of peaks
    /// outside `0..=1`, by name and value.
    pub fn new(
        model: &StepModel,
        workload: &'a Workload,
        topology: &'a Topology,
        node_ranks: u32,
    ) -> Result<Self> {
        model.options.check()?;
        let world = topology.world();
        // Checks the nodes.
        MeshShape::new(Mesh::new(world, world, crate::Layout::Strided)?, node_ranks, topology)?;
        Ok(Self {
            model: *model,
            workload,
            topology,
            node_ranks,
            samples: workload.batch().global(world)? as f64 / f64::from(world),
            meshes: Vec::new(),
            demands: Demands::default(),
            rates: Vec::new(),
        })
    }

    /// The same without tables, what was worked out about the workload kept.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { meshes: Vec::new(), ..self.clone() }
    }

    /// Adds a table as `placed` says.
    ///
    /// # Errors
    /// A table that is not there, a tier outside its rows, groups of other ranks.
    pub fn add(&mut self, table: TableId, placed: &TablePlan) -> Result<()> {
        self.change(table, placed, 1.0)
    }

    /// Takes a table away again that was added as `placed` says.
    ///
    /// # Errors
    /// As [`Ledger::add`].
    pub fn remove(&mut self, table: TableId, placed: &TablePlan) -> Result<()> {
        self.change(table, placed, -1.0)
    }

    /// Seconds of a step with the tables added so far.
    pub fn step_seconds(&mut self) -> f64 {
        self.parts().total()
    }

    /// The seconds by part, of the slowest rank in each.
    pub fn parts(&mut self) -> Parts {
        self.freshen();
        price::parts(self)
    }

    /// Mean seconds that ranks are busy with the tables added so far: a lower bound of what any
    /// balance of the same placements can reach.
    pub fn mean_seconds(&mut self) -> f64 {
        self.freshen();
        price::mean(self)
    }

    /// Bytes of the fullest rank: tables, state and buffers, and the dense model.
    pub fn peak_bytes(&mut self) -> Bytes {
        self.freshen();
        price::peak(self)
    }

    /// Bytes that the mean rank sends outside its node.
    pub fn inter_node_bytes(&mut self) -> f64 {
        self.freshen();
        price::inter_node(self)
    }

    /// Everything about the tables added so far, rank by rank.
    pub fn estimate(&mut self) -> Estimate {
        self.freshen();
        price::estimate(self)
    }

    /// The seconds by part, and the sum of squares of what ranks are busy with.
    pub(crate) fn parts_and_squares(&mut self) -> (Parts, f64) {
        self.freshen();
        price::parts_and_squares(self)
    }

    /// Seconds by part and bytes of the room for tables at every position of the groups of `mesh`.
    pub(crate) fn by_position(&mut self, mesh: Mesh, beside: f64) -> Vec<(Parts, f64)> {
        self.freshen();
        price::by_position(self, mesh, beside)
    }

    /// Bytes of the room for tables that the fullest rank takes, `beside` for all else.
    pub(crate) fn table_room(&mut self, beside: f64) -> f64 {
        self.freshen();
        price::table_room(self, beside)
    }

    /// Ranks of a node of the plan.
    pub(crate) fn node_ranks(&self) -> u32 {
        self.node_ranks
    }

    fn change(&mut self, table: TableId, placed: &TablePlan, sign: f64) -> Result<()> {
        let ordered = placed.order.is_some() || placed.tiers.len() > 1;
        for tier in &placed.tiers {
            let at = self.mesh(tier.mesh)?;
            let Placed { shape, loads, classes, stale, .. } = &mut self.meshes[at];
            let (workload, samples) = (self.workload, self.samples);
            let options = &self.model.options;
            Adding { workload, shape, table, tier, ordered, samples, options, sign }
                .run(&mut self.demands, loads)?;
            *stale = true;
            let table = &workload.tables().tables()[table];
            classes.change(tier, shares_statistics(table, tier), sign);
            if classes.is_empty() {
                // Else what is left of sums would stay.
                loads.clear();
            }
        }
        Ok(())
    }

    /// Position of a mesh, made when it is first used.
    fn mesh(&mut self, mesh: Mesh) -> Result<usize> {
        if let Some(at) = self.meshes.iter().position(|placed| placed.shape.mesh == mesh) {
            return Ok(at);
        }
        let positions = vec![Load::default(); mesh.group_ranks() as usize];
        self.meshes.push(Placed {
            shape: MeshShape::new(mesh, self.node_ranks, self.topology)?,
            loads: Loads { positions, each: Load::default(), statistics: Statistics::default() },
            volumes: Volumes::default(),
            classes: Classes::default(),
            collectives: Collectives::default(),
            stale: true,
        });
        Ok(self.meshes.len() - 1)
    }

    fn freshen(&mut self) {
        for placed in &mut self.meshes {
            if placed.stale {
                placed.collectives = placed.classes.collectives();
                for (scope, _) in placed.collectives.used() {
                    placed.volumes.fill(scope, &placed.shape, &placed.loads);
                }
                placed.stale = false;
            }
        }
    }

    /// Ranks that are enough to ask: all of them, or one group where all groups are alike.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u32> + use<> {
        let world = self.topology.world();
        let cut: Vec<&Placed> =
            self.meshes.iter().filter(|placed| placed.shape.mesh.group_ranks() > 1).collect();
        let only = match cut.as_slice() {
            [one] if one.shape.alike => Some(one.shape.mesh),
            _ => None,
        };
        let count = only.map_or(world, |mesh| mesh.group_ranks());
        (0..count).map(move |position| match only {
            Some(mesh) => mesh.rank_at(0, position).index() as u32,
            None => position,
        })
    }
}
