//! Tables of 2^33 rows, of which few are ever touched: rows beyond 32 bits, and a step's time.

use super::{SEQUENCES, batch};
use crate::replicas::touched_rows;
use crate::support::{Model, SEED, cpu};
use crate::tiered::POOLED;
use emb_comm::{Collective, Local, Options, run};
use emb_dlrm::sharded::{Error, IdWire, ShardedEmbeddings};
use emb_kernels::{Backend, Cpu, FeatureMap, Gradients, Jagged, Mat, Pooling};
use emb_optim::RuleKind;
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, Plan, PlanSpec, ReplicaSync, RowMap, RowOrder,
    RowRange, TablePlan, Tier,
};
use std::time::{Duration, Instant};

const ROWS: u64 = 1 << 33;

/// Rows of four ranks' batches: the ends of the table and of 32 bits, in any order, some twice.
const NEAR: [u64; 10] = [
    ROWS - 1,
    0,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    ROWS - 2,
    (1 << 31) - 1,
    1 << 31,
    3 << 31,
    ROWS - 1,
];

/// How the rows of a tier are dealt out.
fn maps(rows: u64) -> [RowMap; 4] {
    let hot = vec![rows - 1, 1 << 32, 7];
    let order = RowOrder::hot_first(rows, hot).expect("an order");
    let modulo = || RowMap::modulo(rows, 4).expect("a map");
    [
        RowMap::even(rows, 4).expect("a map"),
        RowMap::range(vec![0, 1, 1, rows - 1, rows]).expect("a map"),
        modulo(),
        RowMap::ordered(order, modulo()).expect("a map"),
    ]
}

/// A few hot rows on every rank, all others over four.
fn plan(model: &Model, exchange: Exchange, number: usize, sync: ReplicaSync) -> Plan {
    let hot = vec![1 << 32, ROWS - 1, 5];
    let few = hot.len() as u64;
    let columns = ColRange::new(0, 1).expect("a column");
    let tier = |rows: (u64, u64), group: u32, map: RowMap| {
        let mesh = Mesh::new(4, group, Layout::Contiguous).expect("a mesh");
        Tier {
            rows: RowRange::new(rows.0, rows.1).expect("rows"),
            mesh,
            exchange: if group == 1 { Exchange::Local } else { exchange },
            sync: if group == 4 { ReplicaSync::None } else { sync },
            blocks: vec![Block { columns, map, owners: Owners::span(0, group) }],
        }
    };
    let cold = maps(ROWS - few)[number % 4].clone();
    let tiers =
        vec![tier((0, few), 1, RowMap::even(few, 1).expect("a map")), tier((few, ROWS), 4, cold)];
    let order = Some(RowOrder::hot_first(ROWS, hot).expect("an order"));
    let table = TablePlan { table: "t0".into(), order, tiers };
    let spec = PlanSpec { world: 4, node_ranks: 2, tables: vec![table] };
    Plan::new(&model.tables(), spec).expect("a plan")
}

/// The whole table on every rank.
fn replicated(model: &Model, sync: ReplicaSync) -> Plan {
    let mesh = Mesh::new(4, 1, Layout::Contiguous).expect("a mesh");
    let rows = RowRange::new(0, ROWS).expect("rows");
    let map = RowMap::even(ROWS, 1).expect("a map");
    let columns = ColRange::new(0, 1).expect("a column");
    let blocks = vec![Block { columns, map, owners: Owners::span(0, 1) }];
    let tier = Tier { rows, mesh, exchange: Exchange::Local, sync, blocks };
    let table = TablePlan { table: "t0".into(), order: None, tiers: vec![tier] };
    let spec = PlanSpec { world: 4, node_ranks: 2, tables: vec![table] };
    Plan::new(&model.tables(), spec).expect("a plan")
}

fn model(pooling: Pooling) -> Model {
    Model::new(&[(ROWS, 1, 1)], RuleKind::Sgd, pooling)
}

/// Two samples of rank `me`, of two and of one id.
fn ids(model: &Model, me: usize) -> Jagged {
    let near = NEAR.map(|row| row as i64);
    batch(model, 2, |_, b| near.iter().copied().cycle().skip(3 * me + b).take(2 - b).collect())
}

/// Rows near the ends of 32 bits and of the table.
fn ends() -> [u64; 3] {
    [(1 << 32) - 3, ROWS - 5, (1 << 31) - 2]
}

/// After one step with gradients of 1, five rows from each of [`ends`].
fn one_process(model: &Model) -> Vec<f32> {
    let mut cpu = cpu();
    let mut tables = cpu.create_tables(&model.specs, SEED).expect("tables");
    let map = FeatureMap::new(model.features.clone(), &model.specs, 0).expect("features");
    let rule = model.specs[0].optimizer.rule(model.rate, 1);
    let batches: Vec<Jagged> = (0..4).map(|me| ids(model, me)).collect();
    let batch = crate::support::concat(&model.names(), &batches);
    let count =
        if model.sequences().is_empty() { batch.batch() } else { batch.as_ref().values.len() };
    let ones = vec![1.0; count];
    let list = [(0, Mat::new(&ones[..], count, 1))];
    let gradients = if model.sequences().is_empty() {
        Gradients { pooled: Mat::new(&ones[..], count, 1), sequences: &[] }
    } else {
        Gradients { pooled: Mat::new(&ones[..0], batch.batch(), 0), sequences: &list }
    };
    let view = batch.as_ref().view::<Cpu>();
    cpu.scatter_update(&mut tables, &map, view, &gradients, &[rule], 1).expect("an update");
    let mut read = |first| {
        let mut weights = vec![0.0; 5];
        cpu.read_rows(&mut tables, 0, first, &mut weights, &mut []).expect("rows");
        weights
    };
    ends().map(&mut read).concat()
}

fn step(
    model: &Model,
    (sharded, cpu): (&mut ShardedEmbeddings<Cpu, Local>, &mut Cpu),
    batch: &Jagged,
    number: u64,
) -> Result<Vec<f32>, Error> {
    let pooled = sharded.route(batch.as_ref())?.exchange(sharded)?.pool(sharded, cpu)?;
    let output = pooled.output().to_vec();
    let ones = vec![1.0; output.len().max(batch.as_ref().values.len())];
    let all = [&ones[..]];
    let sequences = if model.sequences().is_empty() { &[][..] } else { &all[..] };
    pooled.backward_all(sharded, cpu, &ones[..output.len()], sequences, 1.0, number)?;
    Ok(output)
}

/// Steps and syncs that look at all rows compute for minutes, at a bit for each for seconds; those
/// that do not, for about 10 ms together.
const STEPS: u64 = 30;
const SOON: Duration = Duration::from_secs(2);

/// How long this thread has computed, which does not count what it waits for a busy processor; where
/// the system does not tell, how long it has been since `begun`.
fn computed(begun: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.filter(|&all| all > 0).map_or_else(|| begun.elapsed(), Duration::from_nanos)
}

fn check(model: &Model, plan: &Plan, wire: IdWire, name: &str) {
    let expected = one_process(model);
    let ranks = run(4, &Options::default(), |world| {
        let (mut cpu, me) = (cpu(), world.rank());
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        sharded.set_id_wire(wire);
        let batch = ids(model, me);
        step(model, (&mut sharded, &mut cpu), &batch, 1)?;
        sharded.sync(&mut cpu)?;
        let mut got = Vec::new();
        for first in ends() {
            let mut weights = vec![0.0; 5];
            sharded.read_rows(&mut cpu, 0, first, &mut weights, &mut [])?;
            got.extend(weights);
        }
        // As a checkpoint puts them back.
        for (number, first) in ends().into_iter().enumerate() {
            let values: Vec<f32> = (0..5).map(|row| (10 * number + row) as f32).collect();
            sharded.write_rows(&mut cpu, 0, first, &values, &[])?;
            let mut weights = vec![0.0; 5];
            sharded.read_rows(&mut cpu, 0, first, &mut weights, &mut [])?;
            assert!(me > 0 || weights == values, "{name}: {weights:?} from row {first}");
        }
        world.barrier()?;
        let begun = Instant::now();
        let before = computed(begun);
        for number in 2..2 + STEPS {
            step(model, (&mut sharded, &mut cpu), &batch, number)?;
            sharded.sync(&mut cpu)?;
        }
        world.barrier()?;
        Ok::<_, Error>((got, computed(begun).saturating_sub(before)))
    });
    let ranks = ranks.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let (got, took) = &ranks[0];
    for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert!((got - expected).abs() < 1e-6, "{name}: row {k}: {got}, not {expected}");
    }
    eprintln!("{name}: {STEPS} steps and syncs took {took:?}");
    assert!(*took < SOON, "{name}: {STEPS} steps took {took:?}");
}

#[test]
fn rows_beyond_32_bits_train_and_are_saved_whatever_the_exchange_and_map() {
    for number in 0..4 {
        for pooling in [Pooling::Sum, Pooling::None] {
            let model = model(pooling);
            let exchanges = if pooling == Pooling::None { &SEQUENCES[..] } else { &POOLED[..] };
            for (k, &exchange) in exchanges.iter().enumerate() {
                let wire = [IdWire::Plain, IdWire::Packed][(number + k) % 2];
                let sync = [ReplicaSync::Gradients, touched_rows(1)][k % 2];
                let name = format!("{exchange}, {pooling:?}, map {number}, {wire:?}, {sync}");
                check(&model, &plan(&model, exchange, number, sync), wire, &name);
            }
        }
    }
}

#[test]
fn a_table_of_which_every_rank_has_all_rows_is_never_read_through() {
    for sync in [ReplicaSync::Gradients, touched_rows(1)] {
        for pooling in [Pooling::Sum, Pooling::None] {
            let model = model(pooling);
            let name = format!("local, {pooling:?}, {sync}");
            check(&model, &replicated(&model, sync), IdWire::Plain, &name);
        }
    }
}

#[test]
fn the_first_row_beyond_a_far_table_is_refused() {
    let model = model(Pooling::Sum);
    let plan = plan(&model, POOLED[2], 0, ReplicaSync::Gradients);
    let failure = run(4, &Options::default(), |world| {
        let sharded = model.shard(world, &mut cpu(), &plan)?;
        let beyond = batch(&model, 1, |_, _| vec![ROWS as i64]);
        sharded.route(beyond.as_ref()).map(|_| ())
    });
    let text = failure.expect_err("no such row").to_string();
    assert!(text.contains("id 8589934592 is outside 0..=8589934591"), "{text}");
}
