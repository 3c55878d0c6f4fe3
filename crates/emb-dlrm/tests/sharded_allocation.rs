//! No allocation in a step over ranks after warm-up, by any of the ranks' threads.

use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{Error, ShardedEmbeddings};
use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, Pooling, TableSpec};
use emb_optim::{Optimizer, OptimizerConfig, RuleKind};
use emb_shard::{
    Exchange, Layout, Mesh, Path, Per, PlaceOptions, Placement, PlanBuilder, ReplicaSync, RowCut,
    Table, TableOptions, Tables,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::num::NonZeroU32;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const WORLD: usize = 4;
const TABLES: usize = 8;
const ROWS: u64 = 500;
const DIM: usize = 10;

/// How many samples each rank has in each of the batches: uneven, also none.
const SAMPLES: [[usize; WORLD]; 4] = [[9, 4, 7, 8], [0, 5, 5, 1], [6, 6, 0, 12], [3, 9, 2, 0]];

/// Steps that see every batch at every place of a sync period of 1 and of 3.
const WARM_UP: usize = 12;
const STEPS: usize = 60;

fn names() -> Vec<String> {
    (0..TABLES).map(|t| format!("t{t}")).collect()
}

/// By batch and rank; bags of 0 to 3 ids.
fn batches(weighted: bool) -> Vec<Vec<Jagged>> {
    let mut state = 1_u64;
    let mut below = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut one = |&samples: &usize| {
        let lengths: Vec<i64> = (0..TABLES * samples).map(|_| below(4) as i64).collect();
        let ids: Vec<i64> = (0..lengths.iter().sum::<i64>()).map(|_| below(ROWS) as i64).collect();
        let weights = weighted.then(|| ids.iter().map(|_| 0.5 + below(8) as f32 / 8.0).collect());
        Jagged::from_lengths(&names(), samples, &lengths, ids, weights).expect("a batch")
    };
    SAMPLES.iter().map(|ranks| ranks.iter().map(&mut one).collect()).collect()
}

/// Allocations and reallocations of all threads in [`STEPS`] steps with table `t` placed as
/// `placed[t % placed.len()]`; every other step is followed by an evaluation.
fn allocations(placed: &[PlaceOptions], kind: RuleKind, weighted: bool) -> usize {
    let table = |name| Table::new(name, ROWS, DIM, TableOptions::default()).expect("a table");
    let tables = Tables::new(names().into_iter().map(table).collect()).expect("tables");
    let mesh = Mesh::new(4, 2, Layout::Strided).expect("a mesh");
    let mut builder = PlanBuilder::new(mesh).node_ranks(2);
    for (name, options) in names().into_iter().zip(placed.iter().cycle()) {
        builder = builder.table(name, *options);
    }
    let plan = builder.build(&tables).expect("a plan");
    let initial_accumulator = kind.has_accumulator().then_some(0.1);
    let config = OptimizerConfig { initial_accumulator, ..OptimizerConfig::new(kind) };
    let rule: Optimizer = config.build().expect("valid");
    let specs: Vec<TableSpec> =
        names().into_iter().map(|name| TableSpec::new(name, ROWS, DIM, rule)).collect();
    let pooling = |t: usize| if t.is_multiple_of(2) { Pooling::Sum } else { Pooling::Mean };
    let features: Vec<Feature> = (names().into_iter().enumerate())
        .map(|(table, name)| Feature { name, table, pooling: pooling(table) })
        .collect();
    let batches = batches(weighted);
    let counts = run(WORLD, &Options::default(), |world| {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let (features, rates) = (features.clone(), vec![0.05; TABLES]);
        let mut sharded =
            ShardedEmbeddings::new(world, &mut cpu, &plan, &specs, features, rates, 3, 7)?;
        let me = world.rank();
        let mut gradient = Vec::with_capacity(12 * sharded.map().width());
        let mut steps = |from: usize, to: usize| {
            for step in from..to {
                let batch = &batches[step % batches.len()][me];
                let routed = sharded.route(batch.as_ref())?;
                let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                gradient.clear();
                gradient.extend(pooled.output().iter().map(|output| output / 32.0 + 0.01));
                pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, step as u64 + 1)?;
                if step % 2 == 1 {
                    let routed = sharded.route(batch.as_ref())?;
                    let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                    assert!(pooled.output().iter().all(|output| output.is_finite()));
                }
            }
            Ok::<_, Error>(())
        };
        steps(0, WARM_UP)?;
        world.barrier()?;
        let region = Region::new(ALLOCATOR);
        world.barrier()?;
        steps(WARM_UP, WARM_UP + STEPS)?;
        world.barrier()?;
        let change = region.change();
        world.barrier()?;
        Ok::<_, Error>(change.allocations + change.reallocations)
    });
    counts.unwrap_or_else(|failure| panic!("{failure}")).into_iter().max().unwrap_or(0)
}

/// One test alone: threads of another would be counted.
#[test]
fn sixty_steps_over_ranks_allocate_nothing() {
    let every = |steps| NonZeroU32::new(steps).expect("not 0");
    let touched = ReplicaSync::TouchedRows { every: every(1) };
    let seldom = ReplicaSync::TouchedRows { every: every(3) };
    let whole = ReplicaSync::Weights { every: every(3) };
    let gradients = ReplicaSync::Gradients;
    let place = |placement: Placement, sync| PlaceOptions { sync: Some(sync), ..placement.into() };
    let by = |exchange, sync| {
        let row_wise = Placement::RowWise { cut: RowCut::Modulo };
        PlaceOptions { exchange: Some(exchange), ..place(row_wise, sync) }
    };
    let hierarchical = Exchange::Reduce { over: Path::Hierarchical };
    let [per_rank, per_node] = [Per::Rank, Per::Node].map(|per| Exchange::Unique { per });
    let table_wise = || Placement::TableWise { owner: None };
    let row_wise = |cut| Placement::RowWise { cut };
    let column_wise = || Placement::ColumnWise { parts: None };
    let row_wise_rule = RuleKind::RowWiseAdaGrad;
    for (what, placed, kind, weighted) in [
        ("table-wise", vec![place(table_wise(), touched)], row_wise_rule, false),
        ("row-wise", vec![place(row_wise(RowCut::Even), touched)], row_wise_rule, false),
        ("row-wise, modulo", vec![place(row_wise(RowCut::Modulo), seldom)], row_wise_rule, true),
        ("column-wise", vec![place(column_wise(), touched)], row_wise_rule, false),
        ("whole tables", vec![place(table_wise(), whole)], RuleKind::Adam, false),
        ("data-parallel", vec![place(Placement::DataParallel, gradients)], row_wise_rule, false),
        ("columns, gradients", vec![place(column_wise(), gradients)], row_wise_rule, true),
        ("reduced by node", vec![by(hierarchical, touched)], row_wise_rule, true),
        ("unique", vec![by(per_rank, seldom)], row_wise_rule, true),
        ("unique by node", vec![by(per_node, gradients)], row_wise_rule, false),
        (
            "all in one plan",
            vec![
                by(hierarchical, gradients),
                by(per_rank, touched),
                by(per_node, seldom),
                place(table_wise(), touched),
                place(row_wise(RowCut::Even), gradients),
                place(column_wise(), seldom),
                place(Placement::DataParallel, gradients),
                place(row_wise(RowCut::Modulo), whole),
            ],
            row_wise_rule,
            true,
        ),
    ] {
        assert_eq!(allocations(&placed, kind, weighted), 0, "{what}");
    }
}
