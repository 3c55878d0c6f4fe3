//! The planner `auto`: what `emb train` does where nobody plans.

use emb_shard::{
    AutoOptions, Bytes, Error, Kind, PlaceOptions, Placement, Plan, PlanBuilder, Planner,
    ReplicaSync, Result, RowCut, Task,
};
use std::num::NonZeroU32;

/// [`PlanBuilder::auto`]: small tables on every rank, large ones by rows, the others whole, heavy
/// ones apart. It knows of sizes and look-ups, nothing of links.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto;

impl Planner for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        let mesh = task.mesh()?;
        task.check_pinned(mesh)?;
        if !task.allows(Kind::TableWise) {
            let what = "planner \"auto\" places tables whole: kinds must have table_wise".into();
            return Err(Error::Constraint { what });
        }
        // As a run without a plan keeps replicas equal.
        let touched = ReplicaSync::TouchedRows { every: NonZeroU32::MIN };
        let sync = (mesh.replicas() > 1).then_some(touched);
        let whole = |owner| PlaceOptions { sync, ..Placement::TableWise { owner }.into() };
        let mut builder = PlanBuilder::new(mesh)
            .node_ranks(task.node_ranks())
            .budget(task.table_budget())
            .all(whole(None));
        for (table, &position) in &task.constraints.pinned {
            builder = builder.table(table, whole(Some(position)));
        }
        let ordinary = AutoOptions::default();
        let options = AutoOptions {
            data_parallel_up_to: if task.allows(Kind::DataParallel) {
                ordinary.data_parallel_up_to
            } else {
                Bytes::new(0)
            },
            row_wise: task.allows(Kind::RowWise).then_some(RowCut::Even),
        };
        builder.auto(task.workload.tables(), options)
    }
}
