//! NeuroShard's beam search over column splits: [`Beam`].

mod inner;
mod simulate;

use super::given::{Assigned, Given};
use crate::{
    Bytes, Exchange, Kind, Per, Placement, Plan, Planner, Result, RowCut, StepModel, Task,
};
use inner::{Part, Short};
use simulate::Simulator;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The search of NeuroShard (`MLSys` 2023, commit ec7ca74), with the cost of a simulated step in
/// place of its neural cost models.
///
/// The outer search halves columns: of each of the best few sets of column blocks it tries to halve
/// the largest blocks and the costliest ones. The inner one places the blocks of a set: costliest
/// first, each where there is least cost, room, and no more columns than a limit; it tries limits
/// from the mean to one and a half times the mean, and keeps the cheapest outcome.
///
/// The original gives up on a set without room within its limits. Here blocks are placed once more
/// without limit, and a set that has no room even so is compared by the bytes it lacks, so that the
/// search finds splits that fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beam {
    /// Prices what it tries.
    pub model: StepModel,
    /// Sets that are kept after each split: `k = 3`.
    pub width: usize,
    /// Largest and costliest blocks that are tried, so many of each: `n = 10`.
    pub candidates: usize,
    /// Most splits.
    pub splits: usize,
}

impl Default for Beam {
    /// As published.
    fn default() -> Self {
        Self { model: StepModel::default(), width: 3, candidates: 10, splits: 10 }
    }
}

/// Ids of sequence features are de-duplicated by rank.
const SEQUENCE: Exchange = Exchange::Unique { per: Per::Rank };

/// A set of column blocks and where they go.
#[derive(Clone)]
struct State {
    /// Columns of the blocks of every table.
    columns: Vec<Vec<usize>>,
    value: Value,
}

#[derive(Clone)]
enum Value {
    Placed { cost: f64, positions: Vec<Vec<u32>> },
    Short(Short),
}

impl Value {
    /// Cheapest first, then by the bytes that are missing.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Placed { cost: a, .. }, Self::Placed { cost: b, .. }) => a.total_cmp(b),
            (Self::Placed { .. }, Self::Short(_)) => Ordering::Less,
            (Self::Short(_), Self::Placed { .. }) => Ordering::Greater,
            (Self::Short(a), Self::Short(b)) => a.missing().cmp(&b.missing()),
        }
    }
}

impl Planner for Beam {
    fn name(&self) -> &'static str {
        "beam"
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        let given = Given::new(task)?;
        let simulator = Simulator::new(&given, &self.model)?;
        let mut search = Search { beam: self, given: &given, simulator };
        let best = search.run()?;
        match &best.value {
            Value::Short(short) => {
                let whole = best.columns[short.number].len() == 1;
                let placement = if whole {
                    Placement::TableWise { owner: given.pinned(short.number) }
                } else {
                    Placement::ColumnWise { parts: None }
                };
                let (needs, has) = (Bytes::new(short.needs), Bytes::new(short.has));
                Err(given.no_room(short.number, placement, needs, has))
            }
            Value::Placed { positions, .. } => {
                let assigned: Vec<Assigned> =
                    best.columns.iter().zip(positions).map(|(c, p)| assign(c, p)).collect();
                given.plan(&assigned, SEQUENCE)
            }
        }
    }
}

fn assign(columns: &[usize], positions: &[u32]) -> Assigned {
    let blocks = columns.iter().copied().zip(positions.iter().copied()).collect();
    Assigned::Blocks { cut: RowCut::Ceil, width: 1, blocks, over: crate::Path::Flat }
}

struct Search<'a> {
    beam: &'a Beam,
    given: &'a Given<'a>,
    simulator: Simulator<'a>,
}

impl Search<'_> {
    fn run(&mut self) -> Result<State> {
        let first = self.first();
        let mut seen = BTreeSet::from([first.clone()]);
        let mut kept = vec![self.state(first)?];
        let mut best = kept[0].clone();
        for _ in 0..self.beam.splits {
            let mut next = Vec::new();
            for state in &kept {
                for (number, block) in self.candidates(&state.columns)? {
                    let mut columns = state.columns.clone();
                    halve(&mut columns[number], block);
                    if seen.insert(columns.clone()) {
                        next.push(self.state(columns)?);
                    }
                }
            }
            // Stable: equals stay in the order in which they were tried.
            next.sort_by(|a, b| a.value.order(&b.value));
            next.truncate(self.beam.width);
            match next.first() {
                None => break,
                Some(cheapest) if cheapest.value.order(&best.value) == Ordering::Less => {
                    best = cheapest.clone();
                }
                Some(_) => {}
            }
            kept = next;
        }
        Ok(best)
    }

    /// Whole tables; halves where tables may not be whole.
    fn first(&self) -> Vec<Vec<usize>> {
        let may_be_whole = self.given.task().allows(Kind::TableWise);
        let of = |number: usize| {
            let mut columns = vec![self.given.tables()[number].dim()];
            if !may_be_whole && self.may_halve(number, columns[0]) {
                halve(&mut columns, 0);
            }
            columns
        };
        (0..self.given.tables().len()).map(of).collect()
    }

    /// Halves keep a multiple of four columns, which kernels load at once.
    fn may_halve(&self, number: usize, columns: usize) -> bool {
        let task = self.given.task();
        let least = task.constraints.min_columns.unwrap_or(0).max(4);
        let even = columns.is_multiple_of(8) && columns / 2 >= least;
        let may = self.given.pinned(number).is_none() && task.allows(Kind::ColumnWise);
        even && may && self.given.mesh.group_ranks() > 1
    }

    /// The largest and the costliest blocks that may be halved: table and block. Of equal blocks
    /// of a table the first stands for all.
    fn candidates(&mut self, columns: &[Vec<usize>]) -> Result<Vec<(usize, usize)>> {
        let mut open = Vec::new();
        for (number, blocks) in columns.iter().enumerate() {
            for (block, &width) in blocks.iter().enumerate() {
                if !blocks[..block].contains(&width) && self.may_halve(number, width) {
                    open.push((self.simulator.part(number, width)?, block));
                }
            }
        }
        let named = |(part, block): &(Part, usize)| (part.number, *block);
        open.sort_by_key(|(part, _)| std::cmp::Reverse(part.bytes));
        let mut chosen: Vec<_> = open.iter().take(self.beam.candidates).map(named).collect();
        open.sort_by(|(a, _), (b, _)| b.cost.total_cmp(&a.cost));
        chosen.extend(open.iter().take(self.beam.candidates).map(named));
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }

    fn state(&mut self, columns: Vec<Vec<usize>>) -> Result<State> {
        let value = self.simulator.place(&columns)?;
        Ok(State { columns, value })
    }
}

fn halve(columns: &mut Vec<usize>, block: usize) {
    columns[block] /= 2;
    columns.insert(block, columns[block]);
}
