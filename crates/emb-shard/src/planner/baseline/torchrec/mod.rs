//! The planner of `TorchRec`: [`TorchRec`].
//!
//! ```text
//!   tables --options--> ways to shard each, with seconds and bytes of a shard
//!          --propose--> one way for every table, again and again
//!          --partition--> positions of all shards, most seconds of a position
//!          --> the plan of least
//! ```

mod constants;
mod estimate;
mod options;
mod partition;
mod propose;

pub use constants::TorchRecConstants;

use super::given::{Assigned, Given};
use crate::{Bytes, Error, Exchange, Path, Placement, Plan, Planner, Result, RowCut, Task};
use estimate::Estimator;
use options::{Choice, Way, options};
use partition::{Partition, Short};
use propose::propose;

/// The default planner of `TorchRec` for tables in the memory of accelerators: its sharding types,
/// formulas, proposers and partitioner, each cited where it is.
///
/// It plans one sharding group. Left out are caches and slower memory, towers, and its heuristic
/// reserve of 15 % of the memory: [`Constraints::reserved`](crate::Constraints::reserved) says what
/// tables may not use. Bytes of weights and optimizer state are exact, all shards of a table count
/// like its largest, and as there ids and outputs take room beside them, also in what a refusal
/// says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TorchRec {
    /// Its constants.
    pub constants: TorchRecConstants,
}

/// The plan of fewest seconds so far, or why there is none.
struct Best {
    seconds: f64,
    choices: Vec<Choice>,
    placed: Vec<Vec<u32>>,
    /// The shortage of fewest bytes, and the way that was tried.
    short: Option<(Short, Way)>,
}

impl Planner for TorchRec {
    fn name(&self) -> &'static str {
        "torchrec"
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        let given = Given::new(task)?;
        let group = given.mesh.group_ranks();
        let node_ranks = given.nodes()?.map_or(1, |split| split.part_ranks());
        let world = given.mesh.world();
        let estimator = Estimator {
            constants: self.constants,
            ranks: f64::from(group),
            node_ranks: f64::from(node_ranks),
            samples: task.workload.batch().global(world)? as f64 / f64::from(world),
            wire: f64::from(task.workload.outputs().bytes()),
        };
        let options = options(&given, node_ranks, &estimator)?;
        let pinned = (0..options.len()).map(|number| given.pinned(number)).collect();
        let partition = Partition::new(group, node_ranks, task.table_budget().get(), pinned);
        let best = search(&options, partition, self.constants.max_proposals);
        if best.choices.is_empty() {
            return Err(no_plan(&given, &best));
        }
        let assigned = best.choices.iter().zip(&best.placed);
        let assigned: Vec<Assigned> = assigned.map(|(&choice, at)| assign(choice, at)).collect();
        given.plan(&assigned, Exchange::Rows)
    }
}

fn search(options: &[Vec<Choice>], mut partition: Partition, max_proposals: u64) -> Best {
    let mut best =
        Best { seconds: f64::INFINITY, choices: Vec::new(), placed: Vec::new(), short: None };
    let mut choices = Vec::with_capacity(options.len());
    propose(options, max_proposals, |proposal| {
        choices.clear();
        choices.extend(options.iter().zip(proposal).map(|(table, &chosen)| table[chosen]));
        match partition.place(&choices) {
            Ok(seconds) if seconds < best.seconds => {
                best.seconds = seconds;
                best.choices.clone_from(&choices);
                best.placed.clear();
                best.placed.extend_from_slice(partition.placed());
            }
            Ok(_) => {}
            Err(short) => {
                let missing = |short: Short| short.needs - short.has;
                if best.short.is_none_or(|(least, _)| missing(short) < missing(least)) {
                    best.short = Some((short, choices[short.number].way));
                }
            }
        }
    });
    best
}

fn no_plan(given: &Given<'_>, best: &Best) -> Error {
    let (short, way) = best.short.expect("invariant: no proposal fits, and there is one");
    let cut = RowCut::Ceil;
    let placement = match way {
        Way::DataParallel => Placement::DataParallel,
        Way::TableWise => Placement::TableWise { owner: None },
        Way::ColumnWise | Way::TableColumnWise => Placement::ColumnWise { parts: None },
        Way::RowWise => Placement::RowWise { cut },
        Way::TableRowWise => Placement::TableRowWise { cut, node: None },
        Way::Grid => Placement::Grid { cut, parts: None },
    };
    given.no_room(short.number, placement, Bytes::new(short.needs), Bytes::new(short.has))
}

fn assign(choice: Choice, placed: &[u32]) -> Assigned {
    let over = match choice.way {
        Way::DataParallel => return Assigned::Everywhere,
        Way::TableRowWise | Way::Grid => Path::Hierarchical,
        _ => Path::Flat,
    };
    let blocks = placed.iter().map(|&first| (choice.columns, first)).collect();
    Assigned::Blocks { cut: RowCut::Ceil, width: choice.width, blocks, over }
}

#[cfg(test)]
mod tests;
