//! What a plan costs: [`CostModel`], and [`StepModel`] that prices a whole training step.

use super::{CostOptions, Estimate, Ledger};
use crate::{Plan, Result, Topology, Workload};

/// Says what a plan costs before anybody runs it.
pub trait CostModel {
    /// What a step of `plan` costs with the look-ups of `workload` on the machines of `topology`.
    ///
    /// # Errors
    /// A plan of other tables or ranks.
    fn estimate(&self, plan: &Plan, workload: &Workload, topology: &Topology) -> Result<Estimate>;
}

/// Prices a training step by its parts: what travels over which level, what memory moves.
///
/// With `b` samples a rank, `n` look-ups, `u` distinct rows, `d` columns, `e` bytes of a value on
/// the wire and `k` of an id, a shard with the part `s` of the look-ups and all members of its
/// group `g` exchange ([`Exchange`](crate::Exchange); HugeCTR v25.03, `embedding/`):
///
/// ```text
///   exchange          ids to the owner     back, and gradients    who
///   reduce            n s k + lengths      b d e                  every pair of the group
///   reduce by node    n s k + lengths      N b d e in the node, then b d e a node with owners
///   unique            u s k                u s d e                every pair of the group
///   unique by node    u s k in the node    u s d e in the node
///                     u' s k on the rail   u' s d e on the rail   u': distinct rows of the node
///   rows              n s k                n s d e                every pair of the group
/// ```
///
/// Where columns are cut and the rule keeps state by row, owners of the same rows tell each other
/// 8 bytes for each that was touched, as part of the backward exchange.
///
/// A part of the step takes as long as its slowest rank: collectives stand between the parts, in
/// which everybody waits for everybody. In a part a rank's seconds are bytes by bandwidth, level
/// after level (`FlexShard` reconstruction: costs of levels add up), and one latency for each
/// collective. Replicas agree as [`ReplicaWay`](super::ReplicaWay) says: by rings, among `m` units of a
/// level `2 (m - 1) / m` of what the levels inside left to each rank; so are dense gradients summed.
/// Where transfers were measured, bandwidths are those of a message's bytes: of all that a rank
/// sends in an exchange, of one hop of a ring, of one sync where there is one every few steps.
///
/// Counts that travel ahead of ids are in the bytes where
/// [`count_bytes`](super::CostOptions::count_bytes) says so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepModel {
    /// What it assumes.
    pub options: CostOptions,
}

impl CostModel for StepModel {
    fn estimate(&self, plan: &Plan, workload: &Workload, topology: &Topology) -> Result<Estimate> {
        Ok(self.ledger(plan, workload, topology)?.estimate())
    }
}

impl StepModel {
    /// A ledger with all tables of `plan`.
    ///
    /// # Errors
    /// A plan of other tables or ranks.
    pub fn ledger<'a>(
        &self,
        plan: &Plan,
        workload: &'a Workload,
        topology: &'a Topology,
    ) -> Result<Ledger<'a>> {
        super::check::same(plan, workload, topology)?;
        let mut ledger = Ledger::new(self, workload, topology, plan.node_ranks())?;
        for (table, placed) in plan.placed().iter() {
            ledger.add(table, placed)?;
        }
        Ok(ledger)
    }
}
