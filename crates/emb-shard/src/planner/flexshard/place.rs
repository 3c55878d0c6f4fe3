//! Cuts become a plan.

use super::given::Given;
use crate::{
    Block, ColRange, Duplicates, Exchange, Mesh, Owners, Path, Per, Plan, PlanSpec, ReplicaSync,
    Result, RowMap, RowRange, Table, TableId, TablePlan, Tier, TierCut,
};

impl Given<'_> {
    /// The plan of these cuts, one for every table that is not pinned, in table order.
    pub(super) fn place(&self, cuts: &[(TableId, TierCut)]) -> Result<Plan> {
        let tables = self.task.workload.tables();
        let mut cuts = cuts.iter().peekable();
        let mut plans = Vec::with_capacity(tables.tables().len());
        for (id, table) in tables.tables().iter() {
            let tiers = match cuts.next_if(|(cut, _)| *cut == id) {
                Some((_, cut)) => self.tiers(table, *cut)?,
                None => vec![self.whole(table)?],
            };
            plans.push(TablePlan { table: table.name().to_owned(), order: None, tiers });
        }
        let (world, node_ranks) = (self.task.topology.world(), self.node_ranks);
        Plan::new(tables, PlanSpec { world, node_ranks, tables: plans })
    }

    /// The tiers that have rows.
    fn tiers(&self, table: &Table, cut: TierCut) -> Result<Vec<Tier>> {
        let meshes =
            [self.replicated.unwrap_or(self.rest), self.in_node.unwrap_or(self.rest), self.rest];
        let tiers = cut.tiers(table.rows())?.into_iter().zip(meshes);
        let tiers = tiers.filter(|(rows, _)| rows.rows() > 0);
        tiers
            .map(|(rows, mesh)| {
                let map = RowMap::modulo(rows.rows(), mesh.group_ranks() as usize)?;
                self.tier(table, rows, mesh, map, Owners::span(0, mesh.group_ranks()))
            })
            .collect()
    }

    /// A pinned table.
    fn whole(&self, table: &Table) -> Result<Tier> {
        let rows = RowRange::new(0, table.rows())?;
        let position = self.pinned(table).unwrap_or(0);
        let map = RowMap::even(table.rows(), 1)?;
        self.tier(table, rows, self.pinned_mesh, map, Owners::span(position, 1))
    }

    fn tier(
        &self,
        table: &Table,
        rows: RowRange,
        mesh: Mesh,
        map: RowMap,
        owners: Owners,
    ) -> Result<Tier> {
        let exchange = match self.duplicates() {
            _ if mesh.group_ranks() == 1 => Exchange::Local,
            Duplicates::Kept if self.rows_travel(table) => Exchange::Rows,
            Duplicates::Kept => Exchange::Reduce { over: Path::Flat },
            Duplicates::PerRank | Duplicates::PerNode => Exchange::Unique { per: Per::Rank },
        };
        let sync = match mesh.replicas() {
            1 => ReplicaSync::None,
            _ => ReplicaSync::Gradients,
        };
        let columns = ColRange::new(0, table.dim())?;
        Ok(Tier { rows, mesh, exchange, sync, blocks: vec![Block { columns, map, owners }] })
    }
}
