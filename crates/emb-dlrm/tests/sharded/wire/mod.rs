//! Rows and gradients in every format, over any plan.

mod bounds;
mod refusals;
mod replicas;

use crate::support::{Model, Outcome, Upstream, all_steps, cpu};
use emb_comm::{Options, Wire, run};
use emb_dlrm::sharded::Wires;
use emb_kernels::Jagged;
use emb_shard::Plan;

/// The same format both ways.
fn both(wire: Wire) -> Wires {
    Wires { forward: wire, backward: wire, batch: 64, ..Wires::default() }
}

/// What every rank ends with after these steps.
fn over_ranks(
    model: &Model,
    plan: &Plan,
    steps: &[Vec<Jagged>],
    upstream: Upstream,
    wires: Wires,
) -> Vec<Outcome> {
    let ranks = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        sharded.set_wires(wires)?;
        if plan.fingerprint().is_multiple_of(3) {
            sharded.sync_beside(world, &cpu)?;
        }
        let outcome = all_steps(world, &mut sharded, &mut cpu, model, steps, upstream)?;
        sharded.check_replicas(&mut cpu)?;
        Ok::<_, emb_dlrm::sharded::Error>(outcome)
    });
    ranks.unwrap_or_else(|failure| panic!("{wires:?}: {failure}\n{plan}"))
}
