//! Whole tables, heavy ones first, each where there is least of one simple cost: [`Greedy`].

use super::given::{Assigned, Given};
use crate::{Exchange, Per, Plan, Planner, Result, Table, Task};

/// Longest processing time first over whole tables, by a cost that needs no model.
///
/// Tables go in descending cost onto the least loaded position that has room; equals onto the one
/// with fewer bytes, then the lower one. The greedy baselines of `AutoShard` (KDD 2022, commit
/// e861ecb), `DreamShard` (`NeurIPS` 2022, commit 73128ed) and NeuroShard (`MLSys` 2023, commit
/// ec7ca74).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Greedy {
    /// The cost.
    pub by: GreedyBy,
}

/// What a [`Greedy`] planner calls heavy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GreedyBy {
    /// `rows * dim`
    Size,
    /// `dim`
    Dim,
    /// `dim * lookups`, look-ups of a sample.
    Lookup,
    /// `dim * lookups * log10(rows)`
    SizeLookup,
}

impl GreedyBy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Size, Self::Dim, Self::Lookup, Self::SizeLookup];

    fn cost(self, table: &Table) -> f64 {
        let (rows, dim) = (table.rows() as f64, table.dim() as f64);
        match self {
            Self::Size => rows * dim,
            Self::Dim => dim,
            Self::Lookup => dim * table.lookups(),
            Self::SizeLookup => dim * table.lookups() * rows.log10(),
        }
    }
}

impl Planner for Greedy {
    fn name(&self) -> &'static str {
        match self.by {
            GreedyBy::Size => "greedy-size",
            GreedyBy::Dim => "greedy-dim",
            GreedyBy::Lookup => "greedy-lookup",
            GreedyBy::SizeLookup => "greedy-size-lookup",
        }
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        let given = Given::new(task)?;
        let cost = |number: usize| self.by.cost(&given.tables()[number]);
        let mut loads = given.loads();
        let mut positions = vec![0; given.tables().len()];
        for number in given.order(cost) {
            positions[number] = given.place_whole(number, cost(number), &mut loads)?;
        }
        let whole = |(table, &position): (&Table, &u32)| Assigned::whole(table.dim(), position);
        let assigned: Vec<Assigned> = given.tables().iter().zip(&positions).map(whole).collect();
        given.plan(&assigned, Exchange::Unique { per: Per::Rank })
    }
}
