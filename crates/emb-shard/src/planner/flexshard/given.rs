//! A task as the solver wants it: [`Given`].

use super::table::rows_while;
use super::{FlexShardPlanner, TierBytes, TierKind, TierSolver, TieredTable, Travel};
use crate::{
    Bytes, DoesNotFit, Duplicates, Error, Kind, Layout, Level, Mesh, Objective, Placement, Pooling,
    Rank, Result, RowCut, Table, TableId, Task, TierCut,
};

/// Tables that are not pinned.
pub(super) type Tiered<'a> = [(TableId, TieredTable<'a>)];

/// The tiers of tables, in table order.
pub(super) type Cuts = Vec<(TableId, TierCut)>;

/// A checked task.
pub(super) struct Given<'a> {
    pub(super) task: &'a Task<'a>,
    planner: FlexShardPlanner,
    pub(super) node_ranks: u32,
    /// Groups of the last tier, and of pinned tables.
    pub(super) rest: Mesh,
    pub(super) pinned_mesh: Mesh,
    pub(super) in_node: Option<Mesh>,
    pub(super) replicated: Option<Mesh>,
    solver: TierSolver,
    /// Samples of the rank that has most.
    samples: u64,
}

impl<'a> Given<'a> {
    pub(super) fn new(planner: &FlexShardPlanner, task: &'a Task<'a>) -> Result<Self> {
        let groups = groups(task)?;
        let world = task.topology.world();
        let node_ranks = task.node_ranks();
        let everywhere = Mesh::new(world, 1, Layout::Strided)?;
        let row_wise = groups.group_ranks() > 1 && task.allows(Kind::RowWise);
        let rest = if row_wise { groups } else { everywhere };
        if !row_wise && !task.allows(Kind::DataParallel) {
            let what = format!(
                "flexshard on {world} ranks in groups of {}: neither row_wise nor data_parallel \
                 is possible and allowed",
                groups.group_ranks()
            );
            return Err(Error::Constraint { what });
        }
        let in_node = (node_tier_is_allowed(task, node_ranks) && row_wise)
            .then(|| Mesh::new(world, node_ranks, Layout::Contiguous))
            .transpose()?;
        let replicated = (row_wise && task.allows(Kind::DataParallel)).then_some(everywhere);
        let meshes = (replicated, in_node, rest);
        let solver = solver(task, node_ranks, meshes, [TierBytes::default(); 3])?;
        let samples = task.workload.batch().of_rank(Rank::new(0), world)?;
        let planner = *planner;
        let pinned_mesh = groups;
        Ok(Self {
            task,
            planner,
            node_ranks,
            rest,
            pinned_mesh,
            in_node,
            replicated,
            solver,
            samples,
        })
    }

    /// The tables that are not pinned.
    pub(super) fn tables(&self) -> Vec<(TableId, TieredTable<'a>)> {
        let tables = self.task.workload.tables().tables().iter();
        let open = tables.filter(|(_, table)| self.pinned(table).is_none());
        open.map(|(id, table)| (id, self.table(id, table))).collect()
    }

    /// Position that a table stays whole on.
    pub(super) fn pinned(&self, table: &Table) -> Option<u32> {
        self.task.constraints.pinned.get(table.name()).copied()
    }

    /// Whether rows of a table travel, instead of sums.
    pub(super) fn rows_travel(&self, table: &Table) -> bool {
        self.planner.duplicates != Duplicates::Kept || table.pooling() == Pooling::None
    }

    pub(super) fn duplicates(&self) -> Duplicates {
        self.planner.duplicates
    }

    /// Bytes of a rank for tables that are not pinned, and their exchange.
    ///
    /// # Errors
    /// A pinned table that does not fit beside the others.
    pub(super) fn room(&self) -> Result<f64> {
        let dense = self.task.workload.dense_model();
        let activations = u128::from(dense.memory_bytes_per_sample) * u128::from(self.samples);
        let budget = self.task.budget().get() as f64;
        let room = budget - dense.memory_bytes as f64 - activations as f64;
        let mut pinned = vec![0.0; self.pinned_mesh.group_ranks() as usize];
        for (_, table) in self.task.workload.tables().tables().iter() {
            let Some(position) = self.pinned(table) else { continue };
            let taken = &mut pinned[position as usize];
            let needs = table.part_bytes(table.rows(), table.dim()).total().get() as f64;
            if *taken + needs > room {
                let placement = Placement::TableWise { owner: Some(position) };
                return Err(self.short_of(table, placement, needs, room - *taken));
            }
            *taken += needs;
        }
        Ok(room - pinned.into_iter().fold(0.0, f64::max))
    }

    /// The tiers of tables within `budget`; `None` where there are none.
    pub(super) fn cuts(&self, tables: &Tiered<'_>, budget: f64) -> Result<Option<Cuts>> {
        self.cuts_of(&self.solver, tables, budget)
    }

    /// The same with links as fast as they are for the bytes that `cuts` send; `None` where no link
    /// was measured by the bytes, as well.
    pub(super) fn cut_anew(
        &self,
        tables: &Tiered<'_>,
        cuts: &Cuts,
        budget: f64,
    ) -> Result<Option<Cuts>> {
        let Task { topology, objective, .. } = self.task;
        let bent = topology.levels().iter().any(Level::is_bent);
        if !bent || *objective != Objective::StepSeconds {
            return Ok(None);
        }
        let only: Vec<TieredTable<'_>> = tables.iter().map(|(_, table)| *table).collect();
        let cuts: Vec<TierCut> = cuts.iter().map(|(_, cut)| *cut).collect();
        let sent = self.solver.sent(&only, &cuts)?;
        let meshes = (self.replicated, self.in_node, self.rest);
        let solver = solver(self.task, self.node_ranks, meshes, sent)?;
        self.cuts_of(&solver, tables, budget)
    }

    fn cuts_of(
        &self,
        solver: &TierSolver,
        tables: &Tiered<'_>,
        budget: f64,
    ) -> Result<Option<Cuts>> {
        let only: Vec<TieredTable<'_>> = tables.iter().map(|(_, table)| *table).collect();
        let solution = match self.task.objective {
            Objective::Memory => Some(solver.leanest(&only)?),
            _ => solver.solve(&only, budget)?,
        };
        let Some(solution) = solution.filter(|solution| solution.bytes <= budget) else {
            return Ok(None);
        };
        Ok(Some(tables.iter().zip(solution.cuts).map(|((id, _), cut)| (*id, cut)).collect()))
    }

    /// The tiers that take fewest bytes, hot owners or not, and the bytes of each table.
    pub(super) fn leanest(&self, tables: &Tiered<'_>) -> Result<(Cuts, Vec<f64>)> {
        let free = tables.iter().map(|(_, table)| TieredTable { least_replicated: 0, ..*table });
        let free: Vec<TieredTable<'_>> = free.collect();
        let cuts = self.solver.leanest(&free)?.cuts;
        let needs =
            free.iter().zip(&cuts).map(|(table, &cut)| self.solver.bytes(&[*table], &[cut]));
        let needs = needs.collect::<Result<_>>()?;
        Ok((tables.iter().zip(cuts).map(|((id, _), cut)| (*id, cut)).collect(), needs))
    }

    /// Names the first table, heavy ones first, that has no room beside those before it when all
    /// together take `over` bytes more than `room`; `needs` are their bytes up to a common factor.
    pub(super) fn does_not_fit(&self, cuts: &Cuts, needs: &[f64], room: f64, over: f64) -> Error {
        let tables = self.task.workload.tables().tables();
        let mut heavy: Vec<(TableId, f64)> =
            cuts.iter().zip(needs).map(|((id, _), &bytes)| (*id, bytes)).collect();
        heavy.sort_by(|(a, bytes_a), (b, bytes_b)| bytes_b.total_cmp(bytes_a).then(a.cmp(b)));
        let all: f64 = needs.iter().sum();
        let mut left = room.max(0.0);
        let factor = if all > 0.0 { (left + over) / all } else { 1.0 };
        for &(id, bytes) in &heavy {
            let bytes = bytes * factor;
            if bytes > left {
                return self.short_of(&tables[id], self.placement_of_rest(), bytes, left);
            }
            left -= bytes;
        }
        // All tables are pinned: the largest is short of what their exchange has too little.
        let whole = |table: &Table| table.part_bytes(table.rows(), table.dim()).total();
        let largest = tables.iter().map(|(_, table)| table).max_by_key(|table| whole(table));
        let table = largest.expect("invariant: a workload has tables");
        let placement = Placement::TableWise { owner: self.pinned(table) };
        let bytes = whole(table).get() as f64;
        self.short_of(table, placement, bytes + over, bytes)
    }

    fn placement_of_rest(&self) -> Placement {
        match self.rest.group_ranks() {
            1 => Placement::DataParallel,
            _ => Placement::RowWise { cut: RowCut::Modulo },
        }
    }

    fn short_of(&self, table: &Table, placement: Placement, needs: f64, has: f64) -> Error {
        let (mesh, budget) = (self.rest, self.task.budget());
        let needs = Bytes::new(needs.ceil() as u64);
        let has = Bytes::new(has.max(0.0) as u64);
        Error::DoesNotFit(Box::new(DoesNotFit::new(
            table,
            placement.name(),
            mesh,
            needs,
            has,
            budget,
        )))
    }

    fn table(&self, id: TableId, table: &Table) -> TieredTable<'a> {
        let workload = self.task.workload;
        let frequencies = &workload.frequencies()[id];
        let samples = self.samples as f64;
        let lookups = table.lookups() * samples;
        let travel = match self.planner.duplicates {
            Duplicates::Kept if self.rows_travel(table) => Travel::Lookups,
            Duplicates::Kept => Travel::Sums {
                bags: table.features().len() as f64 * samples,
                length_bytes: f64::from(workload.length_bytes()),
            },
            Duplicates::PerRank | Duplicates::PerNode => Travel::Distinct,
        };
        TieredTable {
            frequencies,
            lookups,
            travel,
            row_bytes: f64::midpoint(
                workload.outputs().row_bytes(table.dim()) as f64,
                workload.gradients().row_bytes(table.dim()) as f64,
            ),
            id_bytes: f64::from(workload.ids().bytes()),
            // As the cost model has it where replicas sum by rings.
            summed_bytes: workload.gradients().row_bytes(table.dim()) as f64,
            stored_bytes: table.part_bytes(1, table.dim()).total().get() as f64,
            least_replicated: self.hot_owners(frequencies, lookups),
        }
    }

    /// Rows whose owner would be asked for too much beyond the mean.
    fn hot_owners(&self, frequencies: &crate::RowFrequencies, lookups: f64) -> u64 {
        let imbalance = self.planner.imbalance;
        if imbalance == 0.0 || lookups == 0.0 {
            return 0;
        }
        let most = imbalance / f64::from(self.task.topology.world());
        rows_while(frequencies, |p| p > most)
            .expect("invariant: only rows of the table are asked for")
    }
}

/// The solver of tiers that are on every rank, in every node, and the rest, whose ranks send so many
/// bytes.
fn solver(
    task: &Task<'_>,
    node_ranks: u32,
    (replicated, in_node, rest): (Option<Mesh>, Option<Mesh>, Mesh),
    [of_all, of_nodes, of_rest]: [TierBytes; 3],
) -> Result<TierSolver> {
    let kind =
        |mesh, bytes| TierKind::of_bytes(mesh, node_ranks, task.topology, task.objective, bytes);
    Ok(TierSolver::new(
        kind(rest, of_rest)?,
        in_node.map(|mesh| kind(mesh, of_nodes)).transpose()?,
        replicated.map(|mesh| kind(mesh, of_all)).transpose()?,
    ))
}

/// The groups of all tables that are not replicated: all ranks, or what the task asks for.
fn groups(task: &Task<'_>) -> Result<Mesh> {
    let groups = task.mesh()?;
    task.check_pinned(groups)?;
    let (replicas, most) = (groups.replicas(), task.constraints.max_replicas);
    match most.filter(|&most| replicas > most) {
        None => Ok(groups),
        Some(most) => {
            let what = format!("{replicas} replicas are asked for, at most {most} are allowed");
            Err(Error::Constraint { what })
        }
    }
}

/// Whether there is a tier between every rank and all ranks: one replica a node, unless the task
/// asks for another number.
fn node_tier_is_allowed(task: &Task<'_>, node_ranks: u32) -> bool {
    let world = task.topology.world();
    let between = 1 < node_ranks && node_ranks < world;
    let most = task.constraints.max_replicas.unwrap_or(u32::MAX);
    between && task.constraints.replicas.is_none() && world / node_ranks <= most
}
