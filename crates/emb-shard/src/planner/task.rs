//! What a planner is asked: [`Task`].

use crate::{Bytes, Error, Exchange, Layout, Mesh, Result, Topology, Workload};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a planner is asked.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// Tables and their look-ups.
    pub workload: &'a Workload,
    /// The machines; every rank of them takes part.
    pub topology: &'a Topology,
    /// What plans may not do.
    pub constraints: Constraints,
    /// What is to be small.
    pub objective: Objective,
}

/// What is to be small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Seconds of a training step.
    #[default]
    StepSeconds,
    /// Bytes that the mean rank sends outside its node in a step.
    InterNodeBytes,
    /// Bytes of the fullest rank.
    Memory,
}

/// A kind of placement, as [`Tier::kind`](crate::Tier::kind) names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Whole on one rank of each group.
    TableWise,
    /// Rows over all ranks of each group.
    RowWise,
    /// Columns over ranks.
    ColumnWise,
    /// Whole on every rank.
    DataParallel,
    /// Rows over some ranks of each group.
    TableRowWise,
    /// Rows and columns.
    Grid,
}

/// What plans may not do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Constraints {
    /// The only kinds of placement; `None` for all.
    pub kinds: Option<BTreeSet<Kind>>,
    /// The only exchanges; `None` for all. What trains a plan may not know every one.
    pub exchanges: Option<Vec<Exchange>>,
    /// Whether all rows of a table are placed alike: no tiers of their own for hot rows.
    pub one_tier: bool,
    /// Tables that stay whole on one position of each group: table name, position.
    pub pinned: BTreeMap<String, u32>,
    /// Fewest columns of a column block; `None` for the planner's own.
    pub min_columns: Option<usize>,
    /// Bytes of every rank that tables may not use.
    pub reserved: Bytes,
    /// Most bytes of weights and optimizer state of a rank; `None` for all that buffers leave.
    pub table_bytes: Option<Bytes>,
    /// Most replicas of a table that is not data-parallel; `None` for what pays.
    pub max_replicas: Option<u32>,
    /// Exactly so many replicas of every table that is not data-parallel, and the layout of the
    /// groups; `None` for what pays.
    pub replicas: Option<(u32, Layout)>,
}

impl Task<'_> {
    /// A task without constraints that asks for short steps.
    pub fn new<'a>(workload: &'a Workload, topology: &'a Topology) -> Task<'a> {
        let (constraints, objective) = (Constraints::default(), Objective::default());
        Task { workload, topology, constraints, objective }
    }

    /// Bytes of a rank that tables and their exchange may use.
    pub fn budget(&self) -> Bytes {
        Bytes::new(self.topology.memory().get().saturating_sub(self.constraints.reserved.get()))
    }

    /// Bytes of a rank that weights and optimizer state may use.
    pub fn table_budget(&self) -> Bytes {
        self.constraints.table_bytes.map_or(self.budget(), |bytes| bytes.min(self.budget()))
    }

    /// Ranks of a node of the plan: all nodes of a [`Plan`](crate::Plan) have as many, so where
    /// machines differ it is the largest number that divides them all.
    pub fn node_ranks(&self) -> u32 {
        let starts = self.topology.node_starts();
        starts.windows(2).fold(0, |gcd, pair| greatest_divisor(gcd, pair[1] - pair[0]))
    }

    /// The groups of ranks that [`Constraints::replicas`] asks for: one of all ranks where it is
    /// silent.
    ///
    /// # Errors
    /// Ranks that do not split into so many groups.
    pub fn mesh(&self) -> Result<Mesh> {
        let world = self.topology.world();
        let (replicas, layout) = self.constraints.replicas.unwrap_or((1, Layout::Strided));
        if replicas == 0 || !world.is_multiple_of(replicas) {
            return Err(Error::Constraint {
                what: format!(
                    "{replicas} replicas: {world} ranks do not split into so many groups"
                ),
            });
        }
        Mesh::new(world, world / replicas, layout)
    }

    /// Whether plans may have placements of `kind`.
    pub fn allows(&self, kind: Kind) -> bool {
        self.constraints.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Whether plans may have tables that exchange so.
    pub fn allows_exchange(&self, exchange: Exchange) -> bool {
        let only = self.constraints.exchanges.as_ref();
        exchange == Exchange::Local || only.is_none_or(|only| only.contains(&exchange))
    }

    /// Refuses pinned tables that do not exist and positions outside the groups of `mesh`.
    ///
    /// # Errors
    /// The first of them, by name.
    pub fn check_pinned(&self, mesh: Mesh) -> Result<()> {
        let tables = self.workload.tables().tables().as_slice();
        let unknown = |name: &&String| !tables.iter().any(|table| table.name() == name.as_str());
        let unknown: Vec<String> =
            self.constraints.pinned.keys().filter(unknown).cloned().collect();
        if !unknown.is_empty() {
            return Err(Error::TablesUnknown { tables: unknown });
        }
        let positions = mesh.group_ranks();
        match self.constraints.pinned.iter().find(|(_, position)| **position >= positions) {
            None => Ok(()),
            Some((table, position)) => Err(Error::Constraint {
                what: format!(
                    "table {table:?} is pinned to position {position}: groups have {positions} ranks"
                ),
            }),
        }
    }
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}
