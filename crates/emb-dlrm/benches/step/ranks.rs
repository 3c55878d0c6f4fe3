//! Steps of 2D parallelism: 4 ranks in groups of 2, replicas made equal in every step.

use super::data::Data;
use super::{DIM, ROWS, TABLES, features, tables, trainer};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{ShardedBags, ShardedEmbeddings};
use emb_kernels::{Cpu, CpuOptions};
use emb_optim::{OptimizerConfig, ReplicaRule, ReplicaScaling, RuleKind};
use emb_shard::{
    Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut, StateBytes,
    Table, TableOptions, Tables,
};
use std::num::NonZeroU32;
use std::time::Instant;

const WORLD: usize = 4;
const GROUP: u32 = 2;

/// A plan and a sync.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What peers call the placement.
    pub(crate) sharding: &'static str,
    placement: Placement,
    sync: ReplicaSync,
}

const EVERY: NonZeroU32 = NonZeroU32::MIN;
const TABLE_WISE: Placement = Placement::TableWise { owner: None };
const ROW_WISE: Placement = Placement::RowWise { cut: RowCut::Even };

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "2D table-wise, sync of touched rows",
        sharding: "tw",
        placement: TABLE_WISE,
        sync: ReplicaSync::TouchedRows { every: EVERY },
    },
    Case {
        name: "2D row-wise, sync of touched rows",
        sharding: "rw",
        placement: ROW_WISE,
        sync: ReplicaSync::TouchedRows { every: EVERY },
    },
    Case {
        name: "2D table-wise, sync of all rows",
        sharding: "tw",
        placement: TABLE_WISE,
        sync: ReplicaSync::Weights { every: EVERY },
    },
    Case {
        name: "2D table-wise, sync gradients",
        sharding: "tw",
        placement: TABLE_WISE,
        sync: ReplicaSync::Gradients,
    },
];

/// Milliseconds of steps with their syncs, ascending: each as long as its slowest rank.
pub(crate) fn measure(data: &Data, case: &Case, seconds: f64) -> Vec<f64> {
    let exact = case.sync == ReplicaSync::Gradients;
    let rule = if exact { ReplicaRule::Exact } else { ReplicaRule::Moment };
    let mut config = OptimizerConfig::new(RuleKind::RowWiseAdaGrad);
    config.replica = ReplicaScaling::new(rule, WORLD as u32 / GROUP);
    let optimizer = config.build().expect("a rule");
    let plan = plan(case);
    let shares: Vec<Data> = (0..WORLD).map(|rank| data.share(WORLD, rank)).collect();
    let times = run(WORLD, &Options::default(), |world| {
        let data = &shares[world.rank()];
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let (specs, lrs) = (tables(optimizer), vec![0.01; TABLES]);
        let sharded =
            ShardedEmbeddings::new(world, &mut cpu, &plan, &specs, features(), lrs, DIM, 1)?;
        let rank = world.rank();
        let all = world.split(Some(0), rank)?.expect("every rank has a color");
        let mut trainer = trainer(cpu, ShardedBags::new(sharded), all);
        for step in 0..3 {
            trainer.train_share(data.samples(step), super::BATCH)?;
        }
        let (begun, mut times) = (Instant::now(), Vec::new());
        loop {
            world.barrier()?;
            let start = Instant::now();
            trainer.train_share(data.samples(times.len()), super::BATCH)?;
            world.barrier()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            let mut done =
                [u32::from(times.len() >= 10 && begun.elapsed().as_secs_f64() > seconds)];
            world.broadcast(&mut done, 0)?;
            if done == [1] {
                return Ok::<_, emb_dlrm::Error>(times);
            }
        }
    });
    let mut times = times.expect("steps").swap_remove(0);
    times.sort_by(f64::total_cmp);
    times
}

fn plan(case: &Case) -> Plan {
    let table = |t: usize| {
        let state = StateBytes { per_row: 4, per_element: 0 };
        let options = TableOptions { state, ..TableOptions::default() };
        Table::new(format!("t{t}"), ROWS, DIM, options).expect("a table")
    };
    let tables = Tables::new((0..TABLES).map(table).collect()).expect("tables");
    let mesh = Mesh::new(WORLD as u32, GROUP, Layout::Strided).expect("a mesh");
    let options = PlaceOptions { sync: Some(case.sync), ..PlaceOptions::from(case.placement) };
    PlanBuilder::new(mesh).all(options).build(&tables).expect("a plan")
}
