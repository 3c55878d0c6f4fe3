//! The sharded embedding collection alone: 26 tables of 100,000 rows x 64 with row-wise `AdaGrad`,
//! one id a bag, a global batch of 2048 over four ranks in groups of two (strided), one thread a
//! rank; the ranks are threads of this process. Then every exchange beside the others: see
//! `exchanges`.
//!
//! `cargo bench -p emb-dlrm --bench sharded -- [--steps N] [--syncs N] [--exchange-steps N] \
//! [uniform|zipf|exchanges|many]`.
//! Every phase lasts from a barrier of all ranks to the next; bytes are what all ranks together
//! took from one another.

#[path = "../support/ids.rs"]
mod ids;

mod clock;
mod exchanges;
mod shape;

use emb_comm::{Collective, Local, Options, run};
use emb_dlrm::sharded::{Error, ShardedEmbeddings};
use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};
use emb_shard::{
    Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut, Table,
    TableOptions, Tables,
};
use ids::draw_ids;
use std::io::Write;
use std::num::NonZeroU32;
use std::time::Instant;

const TABLES: usize = 26;
const ROWS: u64 = 100_000;
const DIM: usize = 64;
const BATCH: usize = 2048;
const WORLD: usize = 4;
const GROUP: u32 = 2;
/// Batches that the steps cycle through.
const BATCHES: usize = 16;
const WARM_UP: usize = 4;

/// Phases of a step, and what each is called.
const PHASES: [&str; 4] = ["forward", "backward", "sync touched", "sync weights"];

fn main() {
    let options = Arguments::read();
    let mut lines = Vec::new();
    for distribution in ["uniform", "zipf"] {
        if !options.wanted(distribution) {
            continue;
        }
        let batches = batches(distribution);
        let table_wise = Placement::TableWise { owner: None };
        let row_wise = Placement::RowWise { cut: RowCut::Even };
        for (name, placement) in [("table-wise", table_wise), ("row-wise", row_wise)] {
            let mut phases = steps(&plan(placement, touched_rows()), &batches, options.steps);
            phases.push(whole(&plan(placement, weights()), &batches, options.syncs));
            for (phase, measured) in PHASES.iter().zip(phases) {
                let Phase { mut times, bytes } = measured;
                times.sort_by(f64::total_cmp);
                let (median, fastest) = (times[times.len() / 2], times[0]);
                let megabytes = bytes as f64 / times.len() as f64 / 1e6;
                lines.push(format!(
                    "{distribution:<8} {name:<10} {phase:<12} {median:>10.2} {fastest:>10.2} \
                     {megabytes:>10.2}"
                ));
            }
        }
    }
    let mut out = std::io::stdout().lock();
    if !lines.is_empty() {
        drop(writeln!(out, "{WORLD} ranks in groups of {GROUP}, on {}", machine()));
        let heads = ["ids", "plan", "phase", "median ms", "fastest ms", "MB moved"];
        let [ids, plan, phase, median, fastest, moved] = heads;
        drop(writeln!(
            out,
            "{ids:<8} {plan:<10} {phase:<12} {median:>10} {fastest:>10} {moved:>10}"
        ));
        for line in lines {
            drop(writeln!(out, "{line}"));
        }
    }
    for shape in &shape::SHAPES {
        if options.wanted(shape.name) {
            let table = exchanges::table(shape, options.exchanges);
            drop(writeln!(out, "\n{table}"));
        }
    }
}

struct Arguments {
    steps: usize,
    syncs: usize,
    /// Steps of every exchange.
    exchanges: usize,
    names: Vec<String>,
}

impl Arguments {
    fn read() -> Self {
        let mut options = Self { steps: 40, syncs: 3, exchanges: 8, names: Vec::new() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut number = |or| args.next().and_then(|word| word.parse().ok()).unwrap_or(or);
            match arg.as_str() {
                "--bench" => {}
                "--steps" => options.steps = number(40).max(1),
                "--syncs" => options.syncs = number(3).max(1),
                "--exchange-steps" => options.exchanges = number(8).max(1),
                _ => options.names.push(arg),
            }
        }
        options
    }

    fn wanted(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// Processor and number of cores.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = info.lines().find_map(|line| line.strip_prefix("model name"));
    let name = named.map_or("an unknown processor", |name| name.trim_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{name}, {cores} cores")
}

/// A period that no step of this bench ends: the bench syncs by itself.
const NEVER: NonZeroU32 = NonZeroU32::MAX;

fn touched_rows() -> ReplicaSync {
    ReplicaSync::TouchedRows { every: NEVER }
}

fn weights() -> ReplicaSync {
    ReplicaSync::Weights { every: NEVER }
}

fn plan(placement: Placement, sync: ReplicaSync) -> Plan {
    let table =
        |t| Table::new(format!("t{t}"), ROWS, DIM, TableOptions::default()).expect("a table");
    let tables = Tables::new((0..TABLES).map(table).collect()).expect("tables");
    let mesh = Mesh::new(WORLD as u32, GROUP, Layout::Strided).expect("a mesh");
    let options = PlaceOptions { sync: Some(sync), ..PlaceOptions::from(placement) };
    PlanBuilder::new(mesh).all(options).build(&tables).expect("a plan")
}

/// By batch and rank.
fn batches(distribution: &str) -> Vec<Vec<Jagged>> {
    let mut ids = draw_ids(BATCHES * BATCH * TABLES, ROWS, distribution).into_iter();
    let mut id = || ids.next().expect("drawn for every bag");
    let names: Vec<String> = (0..TABLES).map(|t| format!("t{t}")).collect();
    let samples = BATCH / WORLD;
    let mut one = || {
        let ids = (0..TABLES * samples).map(|_| id()).collect();
        Jagged::from_lengths(&names, samples, &vec![1; TABLES * samples], ids, None)
            .expect("a batch")
    };
    (0..BATCHES).map(|_| (0..WORLD).map(|_| one()).collect()).collect()
}

/// The milliseconds of every time that a phase was run, and the bytes of all of them.
#[derive(Default)]
struct Phase {
    times: Vec<f64>,
    bytes: u64,
}

type Embeddings = ShardedEmbeddings<Cpu, Local>;

fn create(world: &mut Local, cpu: &mut Cpu, plan: &Plan) -> Result<Embeddings, Error> {
    let rule = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let specs: Vec<TableSpec> =
        (0..TABLES).map(|t| TableSpec::new(format!("t{t}"), ROWS, DIM, rule)).collect();
    let feature = |table| Feature { name: format!("t{table}"), table, pooling: Pooling::Sum };
    let features = (0..TABLES).map(feature).collect();
    ShardedEmbeddings::new(world, cpu, plan, &specs, features, vec![0.01; TABLES], 0, 1)
}

fn bytes(sharded: &Embeddings) -> u64 {
    sharded.meters().map(|meters| meters.total().bytes()).sum()
}

/// Runs `steps` steps with a sync of touched rows after each: forward, backward, sync.
fn steps(plan: &Plan, batches: &[Vec<Jagged>], steps: usize) -> Vec<Phase> {
    let ranks = run(WORLD, &Options::default(), |world| {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let mut sharded = create(world, &mut cpu, plan)?;
        let gradient: Vec<f32> = (0..BATCH / WORLD * sharded.map().width())
            .map(|k| ((k % 1013) as f32 / 1013.0 - 0.5) / BATCH as f32)
            .collect();
        let mut phases: Vec<Phase> = (0..3).map(|_| Phase::default()).collect();
        for step in 0..WARM_UP + steps {
            let batch = &batches[step % BATCHES][world.rank()];
            let mut marks = [(Instant::now(), 0); 4];
            world.barrier()?;
            marks[0] = (Instant::now(), bytes(&sharded));
            let routed = sharded.route(batch.as_ref())?;
            let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
            world.barrier()?;
            marks[1] = (Instant::now(), bytes(&sharded));
            pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, step as u64 + 1)?;
            world.barrier()?;
            marks[2] = (Instant::now(), bytes(&sharded));
            sharded.sync(&mut cpu)?;
            world.barrier()?;
            marks[3] = (Instant::now(), bytes(&sharded));
            if step >= WARM_UP {
                for (phase, pair) in phases.iter_mut().zip(marks.windows(2)) {
                    phase.times.push((pair[1].0 - pair[0].0).as_secs_f64() * 1e3);
                    phase.bytes += pair[1].1 - pair[0].1;
                }
            }
        }
        Ok::<_, Error>(phases)
    });
    let mut ranks = ranks.expect("steps").into_iter();
    let mut first = ranks.next().expect("rank 0");
    for phases in ranks {
        first.iter_mut().zip(phases).for_each(|(first, phase)| first.bytes += phase.bytes);
    }
    first
}

/// Runs `syncs` syncs of all weights, each after a step.
fn whole(plan: &Plan, batches: &[Vec<Jagged>], syncs: usize) -> Phase {
    let ranks = run(WORLD, &Options::default(), |world| {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let mut sharded = create(world, &mut cpu, plan)?;
        let gradient = vec![0.1 / BATCH as f32; BATCH / WORLD * sharded.map().width()];
        let mut phase = Phase::default();
        for step in 0..=syncs {
            let routed = sharded.route(batches[step % BATCHES][world.rank()].as_ref())?;
            let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
            pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, step as u64 + 1)?;
            world.barrier()?;
            let (begun, before) = (Instant::now(), bytes(&sharded));
            sharded.sync(&mut cpu)?;
            world.barrier()?;
            if step > 0 {
                phase.times.push(begun.elapsed().as_secs_f64() * 1e3);
                phase.bytes += bytes(&sharded) - before;
            }
        }
        Ok::<_, Error>(phase)
    });
    let mut ranks = ranks.expect("steps").into_iter();
    let first = ranks.next().expect("rank 0");
    let bytes = first.bytes + ranks.map(|phase| phase.bytes).sum::<u64>();
    Phase { bytes, ..first }
}
