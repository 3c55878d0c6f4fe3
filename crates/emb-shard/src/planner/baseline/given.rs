//! What a task gives every baseline, and the plan made of what it decided: [`Given`].

use crate::build::{Loads, usual_exchange, usual_sync};
use crate::{
    Block, Bytes, ColRange, DoesNotFit, Error, Exchange, Kind, Layout, Mesh, NodeSplit, Owners,
    Path, Placement, Plan, PlanSpec, Result, RowCut, RowRange, Table, TablePlan, Task, Tier,
};

/// A checked task: groups, nodes, and which tables are pinned.
pub(super) struct Given<'a> {
    task: &'a Task<'a>,
    pub(super) mesh: Mesh,
    pub(super) node_ranks: u32,
    pinned: Vec<Option<u32>>,
}

/// Where a table goes in every group.
pub(super) enum Assigned {
    /// Whole on every rank.
    Everywhere,
    /// Column blocks in order, each on a run of positions that share its rows.
    Blocks {
        /// How the rows of a block are cut over its run.
        cut: RowCut,
        /// Positions of a run.
        width: u32,
        /// Columns and first position of each block.
        blocks: Vec<(usize, u32)>,
        /// The way that partial sums of pooled features take.
        over: Path,
    },
}

impl Assigned {
    /// A table of `columns` columns whole on one position.
    pub(super) fn whole(columns: usize, position: u32) -> Self {
        let blocks = vec![(columns, position)];
        Self::Blocks { cut: RowCut::Ceil, width: 1, blocks, over: Path::Flat }
    }
}

impl<'a> Given<'a> {
    /// Checks what `task` asks for.
    ///
    /// # Errors
    /// Replicas that the ranks do not split into or that exceed the most allowed; pinned tables
    /// that do not exist, or positions outside the groups.
    pub(super) fn new(task: &'a Task<'a>) -> Result<Self> {
        let mesh = task.mesh()?;
        task.check_pinned(mesh)?;
        let (replicas, most) = (mesh.replicas(), task.constraints.max_replicas);
        if let Some(most) = most.filter(|&most| replicas > most) {
            let what = format!("{replicas} replicas are asked for, at most {most} are allowed");
            return Err(Error::Constraint { what });
        }
        let tables = task.workload.tables().tables().as_slice();
        let pin = |table: &Table| task.constraints.pinned.get(table.name()).copied();
        let pinned = tables.iter().map(pin).collect();
        Ok(Self { task, mesh, node_ranks: task.node_ranks(), pinned })
    }

    pub(super) fn task(&self) -> &'a Task<'a> {
        self.task
    }

    /// The tables, by number.
    pub(super) fn tables(&self) -> &'a [Table] {
        self.task.workload.tables().tables().as_slice()
    }

    /// Position that a table must stay whole on.
    pub(super) fn pinned(&self, number: usize) -> Option<u32> {
        self.pinned[number]
    }

    /// Groups cut by nodes; `None` where that is uneven.
    pub(super) fn nodes(&self) -> Result<Option<NodeSplit>> {
        NodeSplit::new(self.mesh, self.node_ranks)
    }

    /// Empty positions with the budget of the task.
    pub(super) fn loads(&self) -> Loads {
        Loads::new(self.mesh.world(), Some(self.task.table_budget()))
    }

    /// Bytes of a whole table.
    pub(super) fn bytes(&self, number: usize) -> Bytes {
        let table = &self.tables()[number];
        table.part_bytes(table.rows(), table.dim()).total()
    }

    /// Pinned tables, then the others by descending `cost`; equals by descending bytes, then in
    /// table order.
    pub(super) fn order(&self, cost: impl Fn(usize) -> f64) -> Vec<usize> {
        let key = |number: usize| (self.pinned[number].is_none(), cost(number), self.bytes(number));
        let mut order: Vec<_> =
            (0..self.tables().len()).map(|number| (key(number), number)).collect();
        order.sort_by(|((open_a, cost_a, bytes_a), a), ((open_b, cost_b, bytes_b), b)| {
            let heavy = cost_b.total_cmp(cost_a).then(bytes_b.cmp(bytes_a));
            open_a.cmp(open_b).then(heavy).then(a.cmp(b))
        });
        order.into_iter().map(|(_, number)| number).collect()
    }

    /// Puts a whole table where it is pinned, else where there is least cost and room for it.
    ///
    /// # Errors
    /// No room.
    pub(super) fn place_whole(&self, number: usize, cost: f64, loads: &mut Loads) -> Result<u32> {
        let bytes = self.bytes(number);
        let position = match self.pinned[number] {
            Some(position) => position,
            None => match loads.least(self.mesh, 1, 1, bytes) {
                Ok(positions) => positions[0],
                Err(has) => return Err(self.no_room(number, whole(None), bytes, has)),
            },
        };
        self.put_whole(number, position, cost, loads)?;
        Ok(position)
    }

    /// Puts a whole table on a position.
    ///
    /// # Errors
    /// No room there.
    pub(super) fn put_whole(
        &self,
        number: usize,
        position: u32,
        cost: f64,
        loads: &mut Loads,
    ) -> Result<()> {
        let (needs, has) = (self.bytes(number), loads.room(self.mesh, position));
        if needs > has {
            return Err(self.no_room(number, whole(Some(position)), needs, has));
        }
        loads.add(self.mesh, position, cost, needs);
        Ok(())
    }

    /// Why a table has no place.
    pub(super) fn no_room(
        &self,
        number: usize,
        placement: Placement,
        needs: Bytes,
        has: Bytes,
    ) -> Error {
        let (table, budget) = (&self.tables()[number], self.task.table_budget());
        let why = DoesNotFit::new(table, placement.name(), self.mesh, needs, has, budget);
        Error::DoesNotFit(Box::new(why))
    }

    /// The plan that puts every table where `assigned` says, by number; rows of sequence features
    /// travel as `sequence` says.
    ///
    /// # Errors
    /// A kind of placement that the task does not allow, by table; all that [`Plan::new`] refuses.
    pub(super) fn plan(&self, assigned: &[Assigned], sequence: Exchange) -> Result<Plan> {
        let mut tables = Vec::with_capacity(assigned.len());
        for (number, assigned) in assigned.iter().enumerate() {
            let table = self.table(number, assigned, sequence)?;
            self.check_kind(number, &table.tiers[0])?;
            tables.push(table);
        }
        let (world, node_ranks) = (self.mesh.world(), self.node_ranks);
        Plan::new(self.task.workload.tables(), PlanSpec { world, node_ranks, tables })
    }

    /// One table put where `assigned` says.
    pub(super) fn table(
        &self,
        number: usize,
        assigned: &Assigned,
        sequence: Exchange,
    ) -> Result<TablePlan> {
        let table = &self.tables()[number];
        let tiers = vec![self.tier(table, assigned, sequence)?];
        Ok(TablePlan { table: table.name().to_owned(), order: None, tiers })
    }

    fn tier(&self, table: &Table, assigned: &Assigned, sequence: Exchange) -> Result<Tier> {
        let all = [(table.dim(), 0)];
        let (mesh, placement, over, cut, width, runs) = match assigned {
            Assigned::Everywhere => {
                let mesh = Mesh::new(self.mesh.world(), 1, Layout::Strided)?;
                (mesh, Placement::DataParallel, Path::Flat, RowCut::Ceil, 1, all.as_slice())
            }
            Assigned::Blocks { cut, width, blocks, over } => {
                (self.mesh, whole(None), *over, *cut, *width, blocks.as_slice())
            }
        };
        let map = cut.map(table.rows(), width)?;
        let mut blocks = Vec::with_capacity(runs.len());
        let mut start = 0;
        for &(columns, first) in runs {
            let columns = ColRange::new(start, start + columns)?;
            start = columns.end();
            blocks.push(Block { columns, map: map.clone(), owners: Owners::span(first, width) });
        }
        let exchange = match usual_exchange(table, mesh) {
            Exchange::Reduce { .. } => Exchange::Reduce { over },
            Exchange::Unique { .. } => sequence,
            other => other,
        };
        let rows = RowRange::new(0, table.rows())?;
        Ok(Tier { rows, mesh, exchange, sync: usual_sync(placement, mesh), blocks })
    }

    /// On one rank all kinds are the same; a pinned table is whole whatever the kinds.
    fn check_kind(&self, number: usize, tier: &Tier) -> Result<()> {
        if self.mesh.world() == 1
            || self.pinned[number].is_some()
            || self.task.allows(kind_of(tier))
        {
            return Ok(());
        }
        let (table, kind) = (self.tables()[number].name(), tier.kind());
        let what = format!("this planner places table {table:?} {kind}, which is not allowed");
        Err(Error::Constraint { what })
    }
}

fn whole(owner: Option<u32>) -> Placement {
    Placement::TableWise { owner }
}

fn kind_of(tier: &Tier) -> Kind {
    match tier.kind() {
        "table_wise" => Kind::TableWise,
        "row_wise" => Kind::RowWise,
        "column_wise" => Kind::ColumnWise,
        "data_parallel" => Kind::DataParallel,
        "table_row_wise" => Kind::TableRowWise,
        _ => Kind::Grid,
    }
}
