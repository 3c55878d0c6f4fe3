//! What blocks and sets of blocks cost: [`Simulator`].

use super::inner::{Part, Positions, limits};
use super::{SEQUENCE, Value, assign};
use crate::planner::baseline::given::Given;
use crate::{Id, Ledger, Objective, Result, StepModel, TableId, TablePlan};
use std::collections::BTreeMap;

/// Prices column blocks alone and sets of them together, each once.
pub(super) struct Simulator<'a> {
    given: &'a Given<'a>,
    /// Of one block at a time.
    alone: Ledger<'a>,
    /// Of the tables in `placed`.
    together: Ledger<'a>,
    placed: Vec<Option<TablePlan>>,
    parts: BTreeMap<(usize, usize), Part>,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(given: &'a Given<'a>, model: &StepModel) -> Result<Self> {
        let task = given.task();
        let ledger = || Ledger::new(model, task.workload, task.topology, given.node_ranks);
        Ok(Self {
            given,
            alone: ledger()?,
            together: ledger()?,
            placed: vec![None; given.tables().len()],
            parts: BTreeMap::new(),
        })
    }

    /// A block of `columns` columns of a table.
    pub(super) fn part(&mut self, number: usize, columns: usize) -> Result<Part> {
        if let Some(&known) = self.parts.get(&(number, columns)) {
            return Ok(known);
        }
        let table = &self.given.tables()[number];
        let block = self.given.table(number, &assign(&[columns], &[0]), SEQUENCE)?;
        let id = TableId::from_index(number)?;
        self.alone.add(id, &block)?;
        let seconds = self.alone.parts();
        self.alone.remove(id, &block)?;
        let part = Part {
            number,
            columns,
            bytes: table.part_bytes(table.rows(), columns).total().get(),
            cost: seconds.lookup + seconds.update,
            pinned: self.given.pinned(number),
        };
        self.parts.insert((number, columns), part);
        Ok(part)
    }

    /// The cheapest place for the blocks of all tables.
    pub(super) fn place(&mut self, columns: &[Vec<usize>]) -> Result<Value> {
        let mut order = Vec::new();
        for (number, blocks) in columns.iter().enumerate() {
            for (block, &width) in blocks.iter().enumerate() {
                order.push((self.part(number, width)?, block));
            }
        }
        let sum: usize = order.iter().map(|(part, _)| part.columns).sum();
        // Pinned ones first, then the costliest, then the largest, then in table order.
        order.sort_by(|(a, _), (b, _)| {
            let heavy = b.cost.total_cmp(&a.cost).then(b.bytes.cmp(&a.bytes));
            a.pinned.is_none().cmp(&b.pinned.is_none()).then(heavy)
        });
        let parts: Vec<Part> = order.iter().map(|(part, _)| *part).collect();
        let group = self.given.mesh.group_ranks();
        let budget = self.given.task().table_budget().get();
        let (mut best, mut short, mut last) = (None, None, Vec::new());
        for limit in limits() {
            let most = limit * sum as f64 / f64::from(group);
            let chosen = match Positions::new(group, budget).place(&parts, most) {
                // Only for sets without room under any limit.
                Ok(Some(_)) if limit.is_infinite() && best.is_some() => break,
                Ok(Some(chosen)) if chosen != last => chosen,
                Ok(_) => continue,
                Err(missing) => {
                    short = Some(missing);
                    continue;
                }
            };
            let mut positions: Vec<Vec<u32>> =
                columns.iter().map(|blocks| vec![0; blocks.len()]).collect();
            for ((part, block), &position) in order.iter().zip(&chosen) {
                positions[part.number][*block] = position;
            }
            last = chosen;
            let cost = self.cost(columns, &positions)?;
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, positions));
            }
        }
        Ok(match (best, short) {
            (Some((cost, positions)), _) => Value::Placed { cost, positions },
            (None, short) => {
                Value::Short(short.expect("invariant: without limit only room is missing"))
            }
        })
    }

    /// What the objective of the task makes of a placement.
    fn cost(&mut self, columns: &[Vec<usize>], positions: &[Vec<u32>]) -> Result<f64> {
        for (number, (columns, positions)) in columns.iter().zip(positions).enumerate() {
            let table = self.given.table(number, &assign(columns, positions), SEQUENCE)?;
            let id = TableId::from_index(number)?;
            match &self.placed[number] {
                Some(old) if *old == table => continue,
                Some(old) => self.together.remove(id, old)?,
                None => {}
            }
            self.together.add(id, &table)?;
            self.placed[number] = Some(table);
        }
        Ok(match self.given.task().objective {
            Objective::StepSeconds => self.together.step_seconds(),
            Objective::InterNodeBytes => self.together.inter_node_bytes(),
            Objective::Memory => self.together.peak_bytes().get() as f64,
        })
    }
}
