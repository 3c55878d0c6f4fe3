//! A plan that is being worked on: [`State`].

use super::choice::Choice;
use crate::{
    Id, Ledger, Mesh, Objective, Plan, PlanSpec, Result, Table, TableId, TablePlan, Task, Tier,
};
use std::cmp::Ordering;

/// Where one table is.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) choice: Choice,
    /// Units of its blocks, one block after the other.
    pub(super) units: Vec<u32>,
    plan: TablePlan,
}

/// How good a plan is; less is better, bytes beyond the budget first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    pub(super) excess: f64,
    pub(super) value: f64,
    squares: f64,
}

/// A plan that is being worked on.
#[derive(Clone, Debug)]
pub(super) struct State<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) mesh: Mesh,
    pub(super) ledger: Ledger<'a>,
    pub(super) placed: Vec<Placed>,
    budget: f64,
}

/// Bytes of a rank that are not for tables.
pub(super) fn beside(task: &Task<'_>) -> f64 {
    (task.budget().get() - task.table_budget().get()) as f64
}

/// Differences below this part are noise of sums.
const NOISE: f64 = 1e-9;

impl Score {
    /// The better one first, in a total order.
    pub(super) fn compare(self, other: Self) -> Ordering {
        let excess = self.excess.total_cmp(&other.excess);
        excess.then(self.value.total_cmp(&other.value)).then(self.squares.total_cmp(&other.squares))
    }

    /// Whether it is better than `other` by more than noise.
    pub(super) fn beats(self, other: Self) -> bool {
        if self.excess != other.excess && (self.excess - other.excess).abs() > 1.0 {
            return self.excess < other.excess;
        }
        let noise = NOISE * other.value.abs();
        if (self.value - other.value).abs() > noise {
            return self.value < other.value;
        }
        self.squares < other.squares * (1.0 - 1e-6)
    }
}

impl<'a> State<'a> {
    /// Tables placed as chosen, in table order.
    pub(super) fn new(
        task: &'a Task<'a>,
        mesh: Mesh,
        ledger: Ledger<'a>,
        chosen: Vec<(Choice, Vec<u32>)>,
    ) -> Result<Self> {
        let budget = task.table_budget().get() as f64;
        let mut state = Self { task, mesh, ledger, placed: Vec::new(), budget };
        for (number, (choice, units)) in chosen.into_iter().enumerate() {
            let id = TableId::from_index(number)?;
            let plan = choice.plan(state.table(id), &units)?;
            state.ledger.add(id, &plan)?;
            state.placed.push(Placed { choice, units, plan });
        }
        Ok(state)
    }

    pub(super) fn table(&self, id: TableId) -> &'a Table {
        &self.task.workload.tables().tables()[id]
    }

    /// Moves a table; returns where it was.
    pub(super) fn replace(
        &mut self,
        id: TableId,
        choice: Choice,
        units: Vec<u32>,
    ) -> Result<Placed> {
        let plan = choice.plan(self.table(id), &units)?;
        self.put(id, Placed { choice, units, plan })
    }

    /// Puts a table where it was before.
    pub(super) fn put(&mut self, id: TableId, placed: Placed) -> Result<Placed> {
        self.ledger.remove(id, &self.placed[id.index()].plan)?;
        self.ledger.add(id, &placed.plan)?;
        Ok(std::mem::replace(&mut self.placed[id.index()], placed))
    }

    /// How good it is now.
    pub(super) fn score(&mut self) -> Score {
        let excess = (self.ledger.table_room(beside(self.task)) - self.budget).max(0.0);
        let (parts, squares) = self.ledger.parts_and_squares();
        let value = match self.task.objective {
            Objective::StepSeconds => parts.total(),
            // Among plans of equal bytes the faster.
            Objective::InterNodeBytes => self.ledger.inter_node_bytes() + parts.total() * 1e-3,
            Objective::Memory => self.ledger.peak_bytes().get() as f64 + parts.total() * 1e-3,
        };
        Score { excess, value, squares }
    }

    /// The plan as it is.
    pub(super) fn plan(&self) -> Result<Plan> {
        let tables = self.placed.iter().map(|placed| placed.plan.clone()).collect();
        let (world, node_ranks) = (self.task.topology.world(), self.task.node_ranks());
        Plan::new(self.task.workload.tables(), PlanSpec { world, node_ranks, tables })
    }
}

impl Placed {
    pub(super) fn tiers(&self) -> &[Tier] {
        &self.plan.tiers
    }

    /// Whether the rank at a position of the groups of `mesh` has a part of it.
    pub(super) fn is_at(&self, mesh: Mesh, position: u32) -> bool {
        let unit = position / self.choice.unit;
        self.choice.mesh != mesh || self.choice.is_everywhere() || self.units.contains(&unit)
    }
}
