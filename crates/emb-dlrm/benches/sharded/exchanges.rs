//! Every exchange with the same tables, ids and ranks: a step by stage, and the bytes that it moves.
//!
//! Milliseconds of stages are those in which a rank had a processor, the mean of all ranks and the
//! median of steps: other work on the machine hardly changes them. The step in milliseconds is from
//! barrier to barrier. Bytes are what a rank takes from others in its node and from other nodes.
//! A lookup reads a row in the forward pass and a gradient in the backward pass; gigabytes a second
//! are those rows in the time of the stage, beside what one thread copies in the same run.

use super::clock::{copy_bandwidth, thread_seconds};
use super::shape::Shape;
use emb_comm::{Collective, Local, Options, run};
use emb_dlrm::sharded::{Error, IdWire, ShardedEmbeddings};
use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};
use emb_shard::{
    Exchange, Layout, Mesh, Path, Per, PlaceOptions, Placement, Plan, PlanBuilder, RowCut, Table,
    TableOptions, Tables,
};
use std::fmt::Write;
use std::time::Instant;

/// Stages of a step: where ids go, ids on their way, rows and sums, gradients and updates.
const STAGES: usize = 4;

/// Steps before anything is measured.
const WARM_UP: usize = 4;

const EXCHANGES: [(&str, Exchange); 5] = [
    ("reduce", Exchange::Reduce { over: Path::Flat }),
    ("reduce by node", Exchange::Reduce { over: Path::Hierarchical }),
    ("unique", Exchange::Unique { per: Per::Rank }),
    ("unique by node", Exchange::Unique { per: Per::Node }),
    ("rows", Exchange::Rows),
];

/// What one rank saw of a step.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Seconds on a processor.
    stages: [f64; STAGES],
    /// Seconds from barrier to barrier.
    wall: f64,
    /// Taken from others in the node, and from other nodes.
    bytes: [f64; 2],
}

/// Measures every exchange and writes a table of them.
pub(crate) fn table(shape: &Shape, steps: usize) -> String {
    let Shape { name, tables, rows, dim, batch, lookups: [fewest, most], .. } = shape;
    let (world, nodes) = (shape.world, shape.world / shape.node_ranks);
    let (batches, copy) = (shape.batches(), copy_bandwidth());
    let ids = batches.iter().flatten().map(|batch| batch.as_ref().values.len()).sum::<usize>();
    let read = (ids * dim * size_of::<f32>()) as f64 / (batches.len() * world) as f64;
    let mut text = format!(
        "{name}: {tables} tables of {rows} rows x {dim}, rows over {world} ranks on {nodes} nodes, \
         batch {batch}, {fewest} to {most} ids a bag (Zipf 1.05); a thread copies {:.1} GB/s\n",
        copy / 1e9
    );
    let heads = ["ids", "route", "exchange", "pool", "backward", "all", "step ms"];
    let [ids, route, exchange, pool, backward, all, step] = heads;
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string");
    line(format_args!(
        "{:<15} {ids:<6} {route:>8} {exchange:>8} {pool:>8} {backward:>8} {all:>8} {step:>9} \
         {:>8} {:>8} {:>15} {:>15}",
        "exchange", "MB node", "MB nodes", "forward GB/s", "backward GB/s"
    ));
    for (name, exchange) in EXCHANGES {
        for (ids, wire) in [("plain", IdWire::Plain), ("packed", IdWire::Packed)] {
            let Step { stages, wall, bytes } = measure(shape, exchange, wire, &batches, steps);
            let [route, exchange, pool, backward] = stages.map(|seconds| seconds * 1e3);
            let all = route + exchange + pool + backward;
            let [inside, between] = bytes.map(|bytes| bytes / 1e6);
            let rate = |seconds: f64| {
                let rate = read / seconds;
                format!("{:.2} ({:.0} %)", rate / 1e9, 100.0 * rate / copy)
            };
            line(format_args!(
                "{name:<15} {ids:<6} {route:>8.2} {exchange:>8.2} {pool:>8.2} {backward:>8.2} \
                 {all:>8.2} {:>9.2} {inside:>8.2} {between:>8.2} {:>15} {:>15}",
                wall * 1e3,
                rate(stages[2]),
                rate(stages[3]),
            ));
        }
    }
    text
}

fn plan(shape: &Shape, exchange: Exchange) -> Plan {
    let pooling = match exchange {
        Exchange::Rows => emb_shard::Pooling::None,
        _ => emb_shard::Pooling::Sum,
    };
    let options = TableOptions { pooling, ..TableOptions::default() };
    let table = |name| Table::new(name, shape.rows, shape.dim, options.clone()).expect("a table");
    let tables = Tables::new(shape.names().into_iter().map(table).collect()).expect("tables");
    let world = shape.world as u32;
    let mesh = Mesh::new(world, world, Layout::Contiguous).expect("a mesh");
    let rows = Placement::RowWise { cut: RowCut::Even };
    let options = PlaceOptions { exchange: Some(exchange), ..PlaceOptions::from(rows) };
    let builder = PlanBuilder::new(mesh).node_ranks(shape.node_ranks as u32);
    builder.all(options).build(&tables).expect("a plan")
}

/// The medians of `steps` steps.
fn measure(
    shape: &Shape,
    exchange: Exchange,
    wire: IdWire,
    batches: &[Vec<Jagged>],
    steps: usize,
) -> Step {
    let plan = plan(shape, exchange);
    let pooling = if exchange == Exchange::Rows { Pooling::None } else { Pooling::Sum };
    let options = Options::default().with_ranks_per_node(shape.node_ranks);
    let ranks = run(shape.world, &options, |world| {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let rule = Optimizer::new(RuleKind::RowWiseAdaGrad);
        let spec = |name| TableSpec::new(name, shape.rows, shape.dim, rule);
        let specs: Vec<TableSpec> = shape.names().into_iter().map(spec).collect();
        let feature = |(table, name)| Feature { name, table, pooling };
        let features = shape.names().into_iter().enumerate().map(feature).collect();
        let rates = vec![0.01; shape.tables];
        let mut sharded =
            ShardedEmbeddings::new(world, &mut cpu, &plan, &specs, features, rates, 0, 1)?;
        sharded.set_id_wire(wire);
        let batches: Vec<&Jagged> = batches.iter().map(|ranks| &ranks[world.rank()]).collect();
        let gradient = gradients(shape, &batches);
        let mut all = Vec::new();
        for number in 0..WARM_UP + steps {
            let batch = batches[number % batches.len()];
            all.push(step(world, &mut cpu, &mut sharded, batch, &gradient, number as u64 + 1)?);
        }
        Ok::<_, Error>(all.split_off(WARM_UP))
    });
    median(&ranks.expect("steps"))
}

/// Enough gradients for the output of a rank or the rows of any of its features.
fn gradients(shape: &Shape, batches: &[&Jagged]) -> Vec<f32> {
    let most = batches.iter().map(|batch| batch.as_ref().values.len()).max().unwrap_or(0);
    let output = shape.batch / shape.world * shape.tables;
    (0..most.max(output) * shape.dim)
        .map(|k| ((k % 1013) as f32 / 1013.0 - 0.5) / shape.batch as f32)
        .collect()
}

fn step(
    world: &mut Local,
    cpu: &mut Cpu,
    sharded: &mut ShardedEmbeddings<Cpu, Local>,
    batch: &Jagged,
    gradient: &[f32],
    number: u64,
) -> Result<Step, Error> {
    let output = batch.as_ref().batch * sharded.map().width();
    let features = 0..sharded.map().features().len();
    let unpooled = |f: &usize| sharded.map().features()[*f].pooling == Pooling::None;
    let len = |f| batch.as_ref().feature_range(f).len() * sharded.map().dim(f);
    let sequences: Vec<&[f32]> = features.filter(unpooled).map(|f| &gradient[..len(f)]).collect();
    let before = sharded.exchanged();
    let mut step = Step::default();
    world.barrier()?;
    let (begun, mut clock) = (Instant::now(), thread_seconds());
    // Ends a stage: the wait for others isn't part of it.
    let mut stages = step.stages.iter_mut();
    let mut done = |world: &mut Local| -> Result<(), Error> {
        *stages.next().expect("a stage") = thread_seconds() - clock;
        world.barrier()?;
        clock = thread_seconds();
        Ok(())
    };
    let routed = sharded.route(batch.as_ref())?;
    done(world)?;
    let exchanged = routed.exchange(sharded)?;
    done(world)?;
    let pooled = exchanged.pool(sharded, cpu)?;
    done(world)?;
    pooled.backward_all(sharded, cpu, &gradient[..output], &sequences, 1.0, number)?;
    done(world)?;
    step.wall = begun.elapsed().as_secs_f64();
    let moved = sharded.exchanged() - before;
    step.bytes = [moved.intra_node_bytes as f64, moved.inter_node_bytes as f64];
    Ok(step)
}

/// The median step of each number, the mean of the ranks.
fn median(ranks: &[Vec<Step>]) -> Step {
    let of = |number: &dyn Fn(&Step) -> f64| {
        let mean = |step: usize| {
            ranks.iter().map(|steps| number(&steps[step])).sum::<f64>() / ranks.len() as f64
        };
        let mut means: Vec<f64> = (0..ranks[0].len()).map(mean).collect();
        means.sort_by(f64::total_cmp);
        means[means.len() / 2]
    };
    Step {
        stages: std::array::from_fn(|stage| of(&|step| step.stages[stage])),
        wall: of(&|step| step.wall),
        bytes: std::array::from_fn(|kind| of(&|step| step.bytes[kind])),
    }
}
