//! `EMBark`'s planner: rows x columns x tables over nodes or ranks.
//!
//! ```text
//!   tables --Clusters--> data-parallel | sums travel | rows travel
//!                            |             |               |
//!                        every rank     Problem        all ranks
//!                                          |  published search, then Packing and Improving
//!                                       Pieces --> column blocks with owners
//! ```

mod bound;
mod clusters;
mod emit;
mod improve;
mod moves;
mod pack;
mod problem;
mod published;
mod state;

use super::{Kind, Planner, Task};
use crate::{EmbarkModel, Error, Mesh, Plan, PlanSpec, Result};
use clusters::{Cluster, Clusters};
use problem::{Buckets, Problem};

/// How far the search for a plan goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EmbarkSearch {
    /// As published: at most 20 times, the hottest table is halved by rows or by columns and all
    /// shards are dealt out anew.
    Published,
    /// On from there: any number of row parts, column blocks of any width from the least on, and
    /// moves and exchanges between buckets until none helps.
    #[default]
    Converged,
}

/// Which tables are stored on every rank, and of which sums or rows travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EmbarkClusters {
    /// For every table what sends fewest bytes between nodes: all-reduced gradients, sums or
    /// distinct rows.
    #[default]
    Bytes,
    /// Sums of all tables that pool.
    Reduction,
}

/// The choices of an [`EmbarkPlanner`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EmbarkOptions {
    /// The costs that it balances, and over what; `None` for
    /// [`published`](EmbarkModel::published) costs of the nodes at hand.
    pub model: Option<EmbarkModel>,
    /// How far it searches.
    pub search: EmbarkSearch,
    /// Who chooses how tables travel.
    pub clusters: EmbarkClusters,
}

/// Makes the plan whose most expensive node or rank costs least under [`EmbarkModel`].
///
/// Tables are first sorted into three clusters ([`EmbarkClusters`]). Data-parallel ones are stored
/// on every rank. Those whose rows travel ([`Exchange::Unique`](crate::Exchange)) are cut by rows
/// over all ranks of each group. The others, whose sums travel, are cut by rows and columns and
/// packed into buckets: a part of a table on a node is cut by rows over all ranks of the node, so a
/// column block on `k` nodes of `L` ranks has `k * L` row parts. Rows are dealt out in turn
/// ([`RowMap::modulo`](crate::RowMap::modulo)), as `HugeCTR` does.
///
/// No rank gets more weights and state than the [budget](Task::budget). Column blocks have at least
/// [`Constraints::min_columns`](crate::Constraints) columns, 32 if it is silent, and widths of
/// whole 16-byte loads of `f16` where the width of the table allows. The objective of the task is
/// not asked: the planner has its own.
///
/// The published search lives in `HugeCTR` v25.03,
/// `benchmarks/embedding_collection/hugectr/sharding/planner.py`. Its exchanged flags, by which it
/// halves columns where only halved rows fit and the reverse, are put right here, and equal shards
/// keep the order of their tables.
///
/// ```
/// use emb_shard::{Batch, EmbarkModel, EmbarkPlanner, Planner, Task, TableSpec, Topology};
/// use emb_shard::{Workload, WorkloadSpec};
///
/// let mut spec = WorkloadSpec::new("three tables", Batch::PerRank(512));
/// spec.tables = ["ads", "users", "pages"].map(|name| TableSpec::new(name, 9_000_000, 128)).into();
/// spec.tables[0].pooling_factor = 20.0;
/// let workload = Workload::new(spec)?;
/// let topology = Topology::preset("dgx-h100:4")?;
/// let plan = EmbarkPlanner::default().plan(&Task::new(&workload, &topology))?;
/// assert!(EmbarkModel::default().cost(&plan, &workload)?.max_to_mean() < 1.02);
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EmbarkPlanner {
    /// Its choices.
    pub options: EmbarkOptions,
}

impl Planner for EmbarkPlanner {
    fn name(&self) -> &'static str {
        "embark"
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        let mesh = checked_mesh(task)?;
        if mesh.group_ranks() == 1 {
            return everywhere(task, mesh);
        }
        let buckets = Buckets::new(task, mesh, self.options.model)?;
        let clusters = Clusters::new(task, &buckets, self.options.clusters)?;
        // Copies on every rank are what plans can do without.
        let mut without = 0;
        loop {
            match self.attempt(task, buckets, &clusters.without(without)) {
                Err(Error::DoesNotFit(_)) if without < clusters.spare() => {
                    without = (without * 2).max(1).min(clusters.spare());
                }
                other => return other,
            }
        }
    }
}

impl EmbarkPlanner {
    /// A cost below which no plan can be whose tables that pool all send sums: the mean of the
    /// buckets, with every table in as many row parts as its narrowest column block needs to fit
    /// and to cost no more than that. Also at least the cost of the narrowest block, all rows cut.
    ///
    /// # Errors
    /// Constraints that contradict the task; tables that do not fit.
    pub fn lower_bound(&self, task: &Task<'_>) -> Result<f64> {
        let mesh = checked_mesh(task)?;
        if mesh.group_ranks() == 1 {
            return Ok(0.0);
        }
        let buckets = Buckets::new(task, mesh, self.options.model)?;
        let clusters = Clusters::new(task, &buckets, EmbarkClusters::Reduction)?;
        Ok(bound::lower(&Problem::new(task, buckets, &clusters.without(0))?))
    }

    fn attempt(&self, task: &Task<'_>, buckets: Buckets, clusters: &[Cluster]) -> Result<Plan> {
        let problem = Problem::new(task, buckets, clusters)?;
        let published = published::search(&problem);
        let pieces = match (self.options.search, published) {
            (EmbarkSearch::Published, Some(pieces)) => pieces,
            (EmbarkSearch::Published, None) => problem.tight()?.into_pieces(),
            (EmbarkSearch::Converged, published) => improve::converge(&problem, published)?,
        };
        emit::plan(task, &problem, clusters, pieces)
    }
}

/// The groups that the task asks for; refuses what is pinned where it cannot be.
fn checked_mesh(task: &Task<'_>) -> Result<Mesh> {
    let mesh = task.mesh()?;
    task.check_pinned(mesh)?;
    match task.constraints.pinned.keys().next() {
        Some(table) if mesh.group_ranks() > 1 && !task.allows(Kind::TableWise) => {
            Err(Error::Constraint {
                what: format!("table {table:?} is pinned, and table_wise is not allowed"),
            })
        }
        _ => Ok(mesh),
    }
}

/// In groups of one every table is on every rank.
fn everywhere(task: &Task<'_>, mesh: Mesh) -> Result<Plan> {
    if !task.allows(Kind::DataParallel) {
        let what = "groups of one rank hold every table, and data_parallel is not allowed".into();
        return Err(Error::Constraint { what });
    }
    let tables = task.workload.tables();
    let mut left = task.budget();
    for table in tables.tables().as_slice() {
        let needs = table.part_bytes(table.rows(), table.dim()).total();
        left = problem::take(task, table, crate::Placement::DataParallel, mesh, needs, left)?;
    }
    let plans = tables.tables().as_slice().iter().map(|table| emit::everywhere(table, mesh));
    let (world, node_ranks) = (mesh.world(), task.node_ranks());
    Plan::new(tables, PlanSpec { world, node_ranks, tables: plans.collect::<Result<_>>()? })
}
