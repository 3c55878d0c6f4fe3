//! No allocation in a step over ranks after warm-up, by any of the ranks' threads.

use emb_comm::{Collective, Options, Wire, run};
use emb_dlrm::sharded::{Error, IdWire, ShardedEmbeddings, Wires};
use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, Pooling, TableSpec};
use emb_optim::{Optimizer, OptimizerConfig, RuleKind};
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, Path, Per, PlaceOptions, Placement, Plan,
    PlanBuilder, PlanSpec, ReplicaSync, RowCut, RowMap, RowOrder, RowRange, Table, TableOptions,
    TablePlan, Tables, Tier,
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
    counted(&plan, kind, weighted, IdWire::Plain, Wires::default())
}

/// Tables whose features are not pooled.
const SEQUENCES: [usize; 2] = [3, 7];

/// Every table with rows in another order, its hot rows on all ranks, some in two more tiers; every
/// exchange, and sequences.
fn tiered() -> Plan {
    let table = |(t, name): (usize, String)| {
        let sequence = SEQUENCES.contains(&t);
        let pooling = if sequence { emb_shard::Pooling::None } else { emb_shard::Pooling::Sum };
        let options = TableOptions { pooling, ..TableOptions::default() };
        Table::new(name, ROWS, DIM, options).expect("a table")
    };
    let tables = Tables::new(names().into_iter().enumerate().map(table).collect());
    let tier = |(first, end): (u64, u64), group: u32, exchange| {
        let mesh = Mesh::new(4, group, Layout::Contiguous).expect("a mesh");
        let columns = |first, end| ColRange::new(first, end).expect("columns");
        let group = group as usize;
        let block = |columns, map| Block { columns, map, owners: Owners::span(0, group as u32) };
        let even = RowMap::even(end - first, group).expect("a map");
        let modulo = RowMap::modulo(end - first, group).expect("a map");
        Tier {
            rows: RowRange::new(first, end).expect("rows"),
            mesh,
            exchange: if group == 1 { Exchange::Local } else { exchange },
            sync: if group == 4 { ReplicaSync::None } else { ReplicaSync::Gradients },
            blocks: vec![block(columns(0, 4), even), block(columns(4, DIM), modulo)],
        }
    };
    let [flat, by_node] = [Path::Flat, Path::Hierarchical].map(|over| Exchange::Reduce { over });
    let [rank, node] = [Per::Rank, Per::Node].map(|per| Exchange::Unique { per });
    let exchanges = [flat, by_node, rank, Exchange::Rows, rank, node, flat, node];
    let placed = exchanges.into_iter().enumerate().map(|(t, exchange)| {
        let hot = (0..40).map(|k| (k * 37 + 11) % ROWS).collect();
        let places = (0..ROWS).map(|row| (row * 7 + 3) % ROWS).collect();
        let order = if t % 2 == 0 { RowOrder::hot_first(ROWS, hot) } else { RowOrder::new(places) };
        let mut tiers = vec![tier((0, 40), 1, exchange)];
        let middle = if t % 3 == 0 { 200 } else { 40 };
        if middle > 40 {
            tiers.push(tier((40, middle), 2, if t == 3 { Exchange::Rows } else { rank }));
        }
        tiers.push(tier((middle, ROWS), 4, exchange));
        TablePlan { table: format!("t{t}"), order: Some(order.expect("an order")), tiers }
    });
    let spec = PlanSpec { world: 4, node_ranks: 2, tables: placed.collect() };
    Plan::new(&tables.expect("tables"), spec).expect("a plan")
}

/// As [`allocations`], of a plan.
fn counted(plan: &Plan, kind: RuleKind, weighted: bool, ids: IdWire, wires: Wires) -> usize {
    let sequences = |t: usize| plan.tables().tables().as_slice()[t].pooling();
    let initial_accumulator = kind.has_accumulator().then_some(0.1);
    let config = OptimizerConfig { initial_accumulator, ..OptimizerConfig::new(kind) };
    let rule: Optimizer = config.build().expect("valid");
    let specs: Vec<TableSpec> =
        names().into_iter().map(|name| TableSpec::new(name, ROWS, DIM, rule)).collect();
    let pooling = |t: usize| match (sequences(t), t % 2) {
        (emb_shard::Pooling::None, _) => Pooling::None,
        (_, 0) => Pooling::Sum,
        _ => Pooling::Mean,
    };
    let features: Vec<Feature> = (names().into_iter().enumerate())
        .map(|(table, name)| Feature { name, table, pooling: pooling(table) })
        .collect();
    let sequenced = features.iter().any(|feature| feature.pooling == Pooling::None);
    let batches = batches(weighted);
    let counts = run(WORLD, &Options::default(), |world| {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let (features, rates) = (features.clone(), vec![0.05; TABLES]);
        let mut sharded =
            ShardedEmbeddings::new(world, &mut cpu, plan, &specs, features, rates, 3, 7)?;
        sharded.set_id_wire(ids);
        sharded.set_wires(wires)?;
        let me = world.rank();
        let ones = vec![0.01; 3 * 12 * DIM];
        let mut gradient = Vec::with_capacity(12 * sharded.map().width());
        let mut steps = |from: usize, to: usize| {
            for step in from..to {
                let batch = &batches[step % batches.len()][me];
                let routed = sharded.route(batch.as_ref())?;
                let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                gradient.clear();
                gradient.extend(pooled.output().iter().map(|output| output / 32.0 + 0.01));
                // The gradients of sequences: any of the right length.
                let lens = SEQUENCES.map(|f| pooled.sequence(f).len());
                let of_sequences = lens.map(|len| &ones[..len]);
                let count = if sequenced { SEQUENCES.len() } else { 0 };
                let of_sequences = &of_sequences[..count];
                let number = step as u64 + 1;
                pooled.backward_all(
                    &mut sharded,
                    &mut cpu,
                    &gradient,
                    of_sequences,
                    1.0,
                    number,
                )?;
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
    let plan = tiered();
    let int8 = Wire::Int8Rowwise;
    let narrow =
        Wires { forward: Wire::Bf16, backward: Wire::F16, sync: Wire::F16, ..Wires::default() };
    for (ids, weighted, wires) in [
        (IdWire::Plain, true, Wires::default()),
        (IdWire::Packed, false, Wires { forward: int8, backward: int8, ..Wires::default() }),
        (IdWire::Plain, false, narrow),
    ] {
        let allocated = counted(&plan, row_wise_rule, weighted, ids, wires);
        assert_eq!(allocated, 0, "tiers, {ids:?}, {wires:?}");
    }
}
