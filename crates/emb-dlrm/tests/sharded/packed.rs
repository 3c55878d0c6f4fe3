//! Ids in few bits: how many bytes they save. That nothing else changes is what half of the plans in
//! the test of all plans show.

use crate::metered::topology;
use crate::support::{Model, Random, cpu};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{Error, IdWire};
use emb_kernels::{Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{
    Access, Batch, EmbarkPlanner, Lattice, Plan, Planner, Preset, TableRowWise, Task, Workload,
};

/// Samples of all ranks.
const BATCH: u64 = 1024;

/// Ranks of a node, nodes.
const RANKS: (u32, u32) = (2, 4);

/// A row by Zipf's law of an exponent other than 1, the hot ones anywhere: the inverse of the
/// integral of `x^-s` over `1..=rows + 1`, and a multiplication modulo the rows.
fn row(random: &mut Random, rows: u64, exponent: f64) -> i64 {
    let unit = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    let power = 1.0 - exponent;
    let last = (rows as f64 + 1.0).powf(power) - 1.0;
    let rank = ((last * unit + 1.0).powf(1.0 / power) as u64).clamp(1, rows) - 1;
    let mut step = 0x9E37_79B1 % rows;
    while step == 0 || greatest_common_divisor(step, rows) > 1 {
        step += 1;
    }
    (u128::from(rank) * u128::from(step) % u128::from(rows)) as i64
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The published model with all of its rows, and a batch of each rank.
fn t180() -> (Model, Workload, Vec<Jagged>) {
    let mut spec = Preset::named("embark-t180").expect("a preset").spec().clone();
    spec.batch = Batch::Global(BATCH);
    let mut shapes = Vec::new();
    for (t, table) in spec.tables.iter_mut().enumerate() {
        table.name = format!("t{t}");
        table.features = Some(vec![format!("t{t}f0")]);
        shapes.push((table.rows, table.dim, 1));
    }
    let model = Model::new(&shapes, RuleKind::Sgd, Pooling::Sum);
    let Access::Zipf { exponent } = spec.access else { panic!("look-ups by Zipf's law") };
    let world = u64::from(RANKS.0 * RANKS.1);
    let samples = (BATCH / world) as usize;
    let batch = |rank: u64| {
        let mut random = Random::new(rank);
        let (mut lengths, mut ids) = (Vec::new(), Vec::new());
        for table in &spec.tables {
            let many = table.pooling_factor as usize;
            lengths.resize(lengths.len() + samples, many as i64);
            ids.extend((0..samples * many).map(|_| row(&mut random, table.rows, exponent)));
        }
        Jagged::from_lengths(&model.names(), samples, &lengths, ids, None).expect("a batch")
    };
    let batches = (0..world).map(batch).collect();
    (model, Workload::new(spec).expect("a workload"), batches)
}

/// Bytes of ids that all ranks receive together. Nothing is looked up: no rows take memory.
fn sent(model: &Model, plan: &Plan, batches: &[Jagged], ids: IdWire) -> u64 {
    let ranks = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        sharded.set_id_wire(ids);
        let routed = sharded.route(batches[world.rank()].as_ref())?;
        routed.exchange(&mut sharded)?;
        Ok::<_, Error>(sharded.exchanged().bytes())
    });
    ranks.expect("an exchange").into_iter().sum()
}

#[test]
fn packed_ids_of_a_published_model_take_less_than_three_fifths_of_the_bytes() {
    let (model, workload, batches) = t180();
    let machines = topology(RANKS.0 * RANKS.1, RANKS.0, 1 << 44);
    let task = Task::new(&workload, &machines);
    let planners: [&dyn Planner; 3] =
        [&TableRowWise, &EmbarkPlanner::default(), &Lattice::default()];
    for planner in planners {
        let plan = planner.plan(&task).expect("a plan");
        let [plain, packed] =
            [IdWire::Plain, IdWire::Packed].map(|ids| sent(&model, &plan, &batches, ids));
        let saved = |of: f64| 100.0 * (1.0 - packed as f64 / of);
        eprintln!(
            "{}: {packed} bytes of ids and lengths, packed from {plain}: {:.1} % fewer, {:.1} % \
             fewer than in 4 bytes each",
            planner.name(),
            saved(plain as f64),
            saved(plain as f64 / 2.0),
        );
        assert!(saved(plain as f64) >= 40.0, "{}", planner.name());
    }
}
