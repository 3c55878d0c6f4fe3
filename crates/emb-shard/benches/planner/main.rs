//! Planners in an arena: how good their plans are, and how long they take.
//!
//! `cargo bench -p emb-shard --bench planner -- [--json] [--each] [--tasks N]
//! [--only arena|speed]`; `--each` prints every task.
//!
//! The arena draws tasks as NeuroShard and `DreamShard` do, from a SYNTHETIC pool of tables, and
//! scores every planner by the one simulator of this crate, whatever model it planned with. A plan
//! is valid if it exists and its tables fit, which is all that both papers count, and its simulated
//! peak fits the device. Speed is measured on the tables that
//! `TorchRec` 1.9.2 was timed on (eight ranks a node, 1,024 samples a rank) on EMBark's 510 tables and on all 856 tables of
//! the pool.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

mod arena;
mod draw;
mod long_tailed;
mod pool;
mod speed;
mod tasks;

use emb_shard::{EmbarkPlanner, FlexShardPlanner, Lattice, Planner, baselines};

fn main() {
    let options = Options::read();
    if options.wanted("arena") {
        let pool = pool::pool();
        let take = |count: u64| options.tasks.map_or(count, |tasks| tasks.min(count));
        let neuroshard = (0..take(tasks::NEUROSHARD_TASKS)).map(|n| tasks::neuroshard(&pool, n));
        arena::run("neuroshard", neuroshard, &options);
        let dreamshard = (0..take(tasks::DREAMSHARD_TASKS)).map(|n| tasks::dreamshard(&pool, n));
        arena::run("dreamshard", dreamshard, &options);
    }
    if options.wanted("speed") {
        speed::run(&options);
    }
}

/// All planners, ours last.
fn planners() -> Vec<Box<dyn Planner>> {
    let mut all = baselines();
    all.push(Box::new(EmbarkPlanner::default()));
    all.push(Box::new(FlexShardPlanner::default()));
    all.push(Box::new(Lattice::default()));
    all
}

struct Options {
    json: bool,
    /// Whether to print every task.
    each: bool,
    /// Most tasks of each kind.
    tasks: Option<u64>,
    only: Option<String>,
}

impl Options {
    /// From the command line; what `cargo bench` adds is ignored.
    fn read() -> Self {
        let mut options = Self { json: false, each: false, tasks: None, only: None };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => options.json = true,
                "--each" => options.each = true,
                "--tasks" => {
                    let count = arguments.next().and_then(|count| count.parse().ok());
                    options.tasks = Some(count.expect("--tasks takes a number"));
                }
                "--only" => options.only = arguments.next(),
                _ => {}
            }
        }
        options
    }

    fn wanted(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}
