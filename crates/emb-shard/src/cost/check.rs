//! Whether a plan, a workload and a topology belong together.

use crate::{Error, Plan, Result, Topology, Workload};

/// Refuses a plan of other tables than the workload's or of other ranks than the topology's.
pub(super) fn same(plan: &Plan, workload: &Workload, topology: &Topology) -> Result<()> {
    let (planned, asked) = (plan.tables().tables(), workload.tables().tables());
    let names = |table: &crate::Table| (table.name().to_owned(), table.rows(), table.dim());
    let pairs = planned.as_slice().iter().zip(asked.as_slice());
    let differs = pairs.map(|(a, b)| (names(a), names(b))).find(|(a, b)| a != b);
    let what = match differs {
        Some(((name, rows, dim), (other, other_rows, other_dim))) => format!(
            "table {other:?} of {other_rows} x {other_dim}, the plan has {name:?} of {rows} x {dim}"
        ),
        None if planned.len() != asked.len() => {
            format!("{} tables, the plan has {}", asked.len(), planned.len())
        }
        None if plan.world() != topology.world() => {
            let (plan, topology) = (plan.world(), topology.world());
            return Err(Error::Constraint {
                what: format!("a plan of {plan} ranks for machines of {topology}"),
            });
        }
        None => return Ok(()),
    };
    Err(Error::BadWorkload { workload: workload.name().to_owned(), what })
}
