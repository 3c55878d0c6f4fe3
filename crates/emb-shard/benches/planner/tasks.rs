//! Tasks drawn from the pool as planner papers draw theirs: [`neuroshard`], [`dreamshard`].

use crate::draw::Draw;
use crate::pool::{BATCH, PoolTable};
use emb_shard::{
    Access, Batch, Bytes, Pooling, TableSpec, Task, Topology, TopologySpec, UnitRanks, ValueType,
    Workload, WorkloadSpec,
};

/// Tasks of the NeuroShard kind.
pub(crate) const NEUROSHARD_TASKS: u64 = 100;

/// Tasks of the `DreamShard` kind.
pub(crate) const DREAMSHARD_TASKS: u64 = 50;

/// Ranks of both.
const RANKS: u32 = 4;

/// Tables and the machines to put them on.
pub(crate) struct ArenaTask {
    pub(crate) workload: Workload,
    pub(crate) topology: Topology,
    /// Bytes of a rank for tables: the papers count nothing else.
    pub(crate) table_bytes: Bytes,
}

impl ArenaTask {
    /// What planners are asked.
    pub(crate) fn asked(&self) -> Task<'_> {
        let mut task = Task::new(&self.workload, &self.topology);
        task.constraints.table_bytes = Some(self.table_bytes);
        task
    }
}

/// NeuroShard's sampler (`MLSys` 2023, commit ec7ca74): 10 to 59 tables with replacement, columns
/// from 4 to 128, `f32`, at most 15 GiB together, on 4 ranks of 4 GiB.
pub(crate) fn neuroshard(pool: &[PoolTable], number: u64) -> ArenaTask {
    const COLUMNS: [usize; 6] = [128, 64, 32, 16, 8, 4];
    const MOST_BYTES: u64 = 15 << 30;
    let draws = Draw::new(15).stream(number);
    // Too large a set is drawn again.
    for attempt in 0.. {
        let draw = draws.stream(attempt);
        let count = 10 + draw.below(0, 50);
        let chosen = (0..count).map(|table| {
            let from = &pool[draw.below(1 + 2 * table, pool.len() as u64) as usize];
            (from, COLUMNS[draw.below(2 + 2 * table, COLUMNS.len() as u64) as usize])
        });
        let chosen: Vec<(&PoolTable, usize)> = chosen.collect();
        let bytes: u64 = chosen.iter().map(|(table, dim)| table.rows * *dim as u64 * 4).sum();
        if bytes <= MOST_BYTES {
            return task(&format!("neuroshard {number}"), &chosen, ValueType::F32, 4 << 30);
        }
    }
    unreachable!("a draw is small enough sooner or later")
}

/// `DreamShard`'s sampler (`NeurIPS` 2022, commit 73128ed): 20, 40, 60, 80 or 100 tables without
/// replacement, 16 columns, `f16`, on 4 ranks of 5 GiB.
pub(crate) fn dreamshard(pool: &[PoolTable], number: u64) -> ArenaTask {
    let draw = Draw::new(20).stream(number);
    let count = 20 * (1 + number % 5);
    let mut left: Vec<&PoolTable> = pool.iter().collect();
    let chosen = (0..count).map(|table| {
        let at = draw.below(table, left.len() as u64) as usize;
        (left.swap_remove(at), 16)
    });
    let chosen: Vec<(&PoolTable, usize)> = chosen.collect();
    task(&format!("dreamshard {number}"), &chosen, ValueType::F16, 5 << 30)
}

/// Sums of bags on one node, no optimizer state and no dense model, as in both papers.
fn task(
    name: &str,
    chosen: &[(&PoolTable, usize)],
    values: ValueType,
    table_bytes: u64,
) -> ArenaTask {
    let mut spec = WorkloadSpec::new(name, Batch::Global(BATCH));
    (spec.rows, spec.outputs) = (values, values);
    spec.tables = chosen
        .iter()
        .enumerate()
        .map(|(number, (table, dim))| TableSpec {
            pooling_factor: table.pooling_factor,
            pooling: Pooling::Sum,
            access: Some(Access::Histogram(table.used.clone())),
            ..TableSpec::new(format!("t{number}"), table.rows, *dim)
        })
        .collect();
    let mut machines = TopologySpec::from(Topology::preset("dgx-a100:1").expect("a known preset"));
    machines.ranks = RANKS;
    machines.levels[0].ranks = UnitRanks::Equal(RANKS);
    ArenaTask {
        workload: Workload::new(spec).expect("tables of the pool are valid"),
        topology: Topology::new(machines).expect("a smaller node is valid"),
        table_bytes: Bytes::new(table_bytes),
    }
}
