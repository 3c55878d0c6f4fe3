//! What was published of FlexShard and EMBark, on the meters of collectives.
//!
//! The full sizes take a minute and several gigabytes: `EMB_FULL=1`. Otherwise tables and batches
//! are smaller, and only what does not depend on that is claimed.

use crate::laws::Law;
use crate::metered::{Bytes, counted, estimate, mean, predicted, topology};
use crate::support::{Model, Random, cpu, optimizer};
use crate::tiered::{Lives, Tiers, UNIQUE, UNIQUE_BY_NODE};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::Error;
use emb_kernels::{Init, Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{
    Access, Batch, CostOptions, Duplicates, EmbarkPlanner, Exchange, FlexShardPlanner, IdType,
    Lattice, Plan, Planner, Preset, Rank, StepModel, TableId, TableRowWise, TableSpec, Task,
    TierCut, TieredLookups, Topology, ValueType, Workload, WorkloadSpec,
};

/// Whether the full sizes were asked for.
fn full() -> bool {
    std::env::var("EMB_FULL").is_ok_and(|text| text != "0")
}

/// Most memory that the process had so far, in bytes; 0 where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// What a plan costs as it is run.
struct Ran {
    /// Of every rank, in a step.
    bytes: Vec<Bytes>,
    /// Of every rank, in a step: what the last set of ranks of the plan exchanged.
    last: Vec<f64>,
    /// Which rows are no longer zero, by table.
    changed: Vec<Vec<bool>>,
}

/// Trains tables that begin as zeros, with the gradient 1 everywhere, on `steps[step][rank]`.
fn train(model: &Model, plan: &Plan, steps: &[Vec<Jagged>]) -> Ran {
    let options = Options::default().with_ranks_per_node(plan.node_ranks() as usize);
    let ranks = run(plan.world() as usize, &options, |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        for (number, batches) in steps.iter().enumerate() {
            let step = number as u64 + 1;
            let routed = sharded.route(batches[world.rank()].as_ref())?;
            let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
            let gradient = vec![1.0; pooled.output().len()];
            let sequences = model.sequences();
            let sequences: Vec<Vec<f32>> =
                sequences.iter().map(|&f| vec![1.0; pooled.sequence(f).len()]).collect();
            let sequences: Vec<&[f32]> = sequences.iter().map(Vec::as_slice).collect();
            if sequences.is_empty() {
                pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, step)?;
            } else {
                pooled.backward_all(&mut sharded, &mut cpu, &gradient, &sequences, 1.0, step)?;
            }
        }
        let bytes = counted(&sharded, steps.len());
        let last = sharded.meters().last().map_or(0, |meters| meters.total().bytes());
        let last = last as f64 / steps.len() as f64;
        let mut changed = Vec::new();
        for t in 0..model.specs.len() {
            changed.push(nonzero(model, world, &mut cpu, &mut sharded, t)?);
        }
        Ok::<_, Error>((bytes, last, changed))
    });
    let ranks = ranks.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
    let (mut ran, mut all) = (Ran { bytes: vec![], last: vec![], changed: vec![] }, Vec::new());
    for (bytes, last, changed) in ranks {
        ran.bytes.push(bytes);
        ran.last.push(last);
        all.push(changed);
    }
    ran.changed = all.swap_remove(0);
    ran
}

/// Rows that are read at a time.
const CHUNK: u64 = 1 << 16;

/// Which rows of a table are no longer zero; on rank 0.
fn nonzero(
    model: &Model,
    world: &emb_comm::Local,
    cpu: &mut emb_kernels::Cpu,
    sharded: &mut emb_dlrm::sharded::ShardedEmbeddings<emb_kernels::Cpu, emb_comm::Local>,
    table: usize,
) -> Result<Vec<bool>, Error> {
    let spec = &model.specs[table];
    let mut changed = Vec::new();
    for first in (0..spec.rows).step_by(CHUNK as usize) {
        let rows = CHUNK.min(spec.rows - first) as usize;
        let mut weights = vec![0.0; rows * spec.dim];
        let mut state: Vec<Vec<f32>> = Vec::new();
        for slot in spec.optimizer.slots() {
            let each = if slot.extent == emb_optim::Extent::Row { 1 } else { spec.dim };
            state.push(vec![0.0; rows * each]);
        }
        sharded.read_rows(cpu, table, first, &mut weights, &mut state)?;
        if world.rank() == 0 {
            let rows = weights.chunks_exact(spec.dim);
            changed.extend(rows.map(|row| row.iter().any(|&weight| weight != 0.0)));
        }
    }
    Ok(changed)
}

/// Every row that was looked up has changed, and no other.
fn assert_touched_rows_changed(model: &Model, steps: &[Vec<Jagged>], ran: &Ran, what: &str) {
    let mut touched: Vec<Vec<bool>> =
        model.specs.iter().map(|spec| vec![false; spec.rows as usize]).collect();
    for batch in steps.iter().flatten() {
        for (f, feature) in model.features.iter().enumerate() {
            for &id in &batch.as_ref().values[batch.as_ref().feature_range(f)] {
                touched[feature.table][id as usize] = true;
            }
        }
    }
    for (spec, (touched, changed)) in model.specs.iter().zip(touched.iter().zip(&ran.changed)) {
        let differs = touched.iter().zip(changed).position(|(touched, changed)| touched != changed);
        if let Some(row) = differs {
            let asked = if touched[row] { "looked up" } else { "not looked up" };
            panic!("{what}: table {}, row {row}: {asked}, changed: {}", spec.name, changed[row]);
        }
    }
}

/// How far a number is from what was predicted, as a part of it.
fn apart(got: f64, predicted: f64) -> f64 {
    (got - predicted).abs() / predicted
}

/// Ranks of a node, nodes.
const FLEXSHARD: (u32, u32) = (4, 4);

/// One sequence feature over one table whose rows are in the order of frequency.
struct Sequence {
    model: Model,
    workload: Workload,
    steps: Vec<Vec<Jagged>>,
    lookups: f64,
}

impl Sequence {
    const SAMPLES: usize = 1024;
    const EXPONENT: f64 = 1.05;
    const DIM: usize = 8;

    fn new(rows: u64, ids: usize, steps: usize) -> Self {
        let mut model = Model::new(&[(rows, Self::DIM, 1)], RuleKind::Sgd, Pooling::None);
        model.specs[0].init = Init::Constant(0.0);
        let mut spec = WorkloadSpec::new("sequence", Batch::PerRank(Self::SAMPLES as u64));
        let sequence = TableSpec {
            pooling_factor: ids as f64,
            pooling: emb_shard::Pooling::None,
            features: Some(model.names()),
            access: Some(Access::Zipf { exponent: Self::EXPONENT }),
            ..TableSpec::new("t0", rows, Self::DIM)
        };
        spec.tables.push(sequence);
        let law = Law::zipf(rows, Self::EXPONENT);
        let batch = |step: usize, rank: u32| {
            let mut random = Random::new(((step as u64) << 32) + u64::from(rank));
            let values = (0..Self::SAMPLES * ids).map(|_| law.id(&mut random)).collect();
            let lengths = vec![ids as i64; Self::SAMPLES];
            let names = model.names();
            Jagged::from_lengths(&names, Self::SAMPLES, &lengths, values, None).expect("a batch")
        };
        let world = FLEXSHARD.0 * FLEXSHARD.1;
        let steps = (0..steps).map(|step| (0..world).map(|rank| batch(step, rank)).collect());
        let steps = steps.collect();
        let lookups = (Self::SAMPLES * ids) as f64;
        Self { workload: Workload::new(spec).expect("a workload"), model, steps, lookups }
    }

    /// All rows over all ranks.
    fn row_wise(&self, exchange: Exchange) -> Plan {
        let world = FLEXSHARD.0 * FLEXSHARD.1;
        let rows = vec![(0, Lives::new(world, exchange))];
        let tiers = Tiers { world, node_ranks: FLEXSHARD.0, order: None, rows };
        tiers.plan(&self.model)
    }

    /// Rows that leave no node, of the table's first.
    fn hot(plan: &Plan) -> TierCut {
        let mut cut = TierCut::default();
        for tier in &plan.placed()[TableId::new(0)].tiers {
            match tier.mesh.group_ranks() {
                1 => cut.replicated = tier.rows.rows(),
                ranks if ranks == FLEXSHARD.0 => cut.in_node = tier.rows.rows(),
                _ => {}
            }
        }
        cut
    }

    /// Bytes of rows, gradients and ids between nodes of the mean rank in a step, as the formulas of
    /// tiers have it.
    fn of_tiers(&self, cut: TierCut, duplicates: Duplicates) -> f64 {
        let frequencies = &self.workload.frequencies()[TableId::new(0)];
        let (node_ranks, nodes) = FLEXSHARD;
        let table = TieredLookups { frequencies, lookups: self.lookups, nodes, node_ranks };
        let traffic = table.traffic(cut, duplicates).expect("traffic");
        traffic.bytes(4.0 * Self::DIM as f64, 0.0, 8.0).inter_node
    }
}

fn gib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 30)
}

#[test]
fn flexshard_keeps_look_ups_off_the_global_exchange_as_predicted() {
    let (rows, ids, steps) = if full() { (10_000_000, 100, 3) } else { (1_000_000, 10, 3) };
    let case = Sequence::new(rows, ids, steps);
    let (node_ranks, nodes) = FLEXSHARD;
    let world = node_ranks * nodes;
    let row_wise = case.row_wise(Exchange::Rows);
    // Tiers may take as much memory as the fullest rank of the row-wise plan.
    let roomy = topology(world, node_ranks, 1 << 40);
    let baseline = estimate(&row_wise, &case.workload, &roomy);
    let budget = baseline.fullest().expect("ranks").peak.total().ceil();
    let machines = topology(world, node_ranks, budget as u64);
    let task = Task::new(&case.workload, &machines);
    let tiers = FlexShardPlanner::default().plan(&task).expect("tiers within the budget");
    let by_node = case.row_wise(UNIQUE_BY_NODE);
    let mut between = Vec::new();
    let mut global = Vec::new();
    for (name, plan, cut, duplicates) in [
        ("row-wise", &row_wise, TierCut::default(), Duplicates::Kept),
        ("flexshard", &tiers, Sequence::hot(&tiers), Duplicates::Kept),
        ("unique by node", &by_node, TierCut::default(), Duplicates::PerNode),
    ] {
        let ran = train(&case.model, plan, &case.steps);
        assert_touched_rows_changed(&case.model, &case.steps, &ran, name);
        let estimate = estimate(plan, &case.workload, &machines);
        let predicted = mean(&predicted(&estimate), Bytes::inter_node);
        let counted = mean(&ran.bytes, Bytes::inter_node);
        let stored =
            (0..world).map(|rank| plan.bytes_of(Rank::new(rank)).expect("a rank").total().get());
        let stored = stored.max().expect("ranks");
        let peak = estimate.fullest().expect("ranks").peak.total();
        eprintln!(
            "{name}: {counted:.0} bytes between nodes a rank and step, {predicted:.0} predicted; \
             tables of the fullest rank {:.3} GiB, its peak {:.3} GiB predicted, budget {:.3} GiB; \
             all ranks {:.3} GiB so far",
            gib(stored as f64),
            gib(peak),
            gib(budget),
            gib(peak_memory() as f64)
        );
        assert!(apart(counted, predicted) <= 0.03, "{name}: {counted}, not {predicted}");
        // What replicas tell each other apart.
        let (exchanged, formula) =
            (mean(&ran.bytes, |b| b.exchanged[1]), case.of_tiers(cut, duplicates));
        assert!(apart(exchanged, formula) <= 0.03, "{name}: {exchanged}, not {formula}");
        between.push(counted);
        // Rows over all ranks are the last tier.
        global.push(ran.last.iter().sum::<f64>());
    }
    let cut = Sequence::hot(&tiers);
    let share = 1.0 - global[1] / global[0];
    let predicted = case.workload.frequencies()[TableId::new(0)].share_of_top(cut.hot());
    let fewer = [1, 2].map(|plan| between[0] / between[plan]);
    eprintln!(
        "{} rows on every rank, {} in every node: {:.1} % of look-ups off the global exchange, \
         {:.1} % predicted; {:.2} and {:.2} times fewer bytes between nodes",
        cut.replicated,
        cut.in_node,
        100.0 * share,
        100.0 * predicted,
        fewer[0],
        fewer[1]
    );
    assert!(apart(share, predicted) <= 0.03, "{share}, not {predicted}");
    for rank in (0..world).map(Rank::new) {
        let bytes = |plan: &Plan| plan.bytes_of(rank).expect("a rank");
        assert_eq!(bytes(&by_node), bytes(&row_wise), "no memory beyond the row-wise plan");
    }
    if full() {
        assert!(fewer[1] >= 3.2, "{} times fewer bytes", fewer[1]);
    }
}

/// Samples of all ranks.
const BATCH: u64 = 4096;

/// Ranks of a node, nodes.
const EMBARK: (u32, u32) = (2, 4);

/// A published model whose tables have a thousandth of their rows.
struct Published {
    model: Model,
    workload: Workload,
    steps: Vec<Vec<Jagged>>,
}

impl Published {
    fn new(name: &str, steps: usize) -> Self {
        let preset = Preset::named(name).expect("a preset");
        let mut spec = preset.spec().clone();
        // What travels here: 64-bit ids and lengths, 32-bit values.
        (spec.ids, spec.outputs, spec.length_bytes) = (IdType::I64, ValueType::F32, 8);
        spec.batch = Batch::Global(BATCH);
        let kind = if spec.state.per_element > 0 { RuleKind::AdaGrad } else { RuleKind::Sgd };
        let mut shapes = Vec::new();
        for (t, table) in spec.tables.iter_mut().enumerate() {
            table.rows = table.rows.div_ceil(1000).max(4);
            table.name = format!("t{t}");
            table.features = Some(vec![format!("t{t}f0")]);
            shapes.push((table.rows, table.dim, 1));
        }
        let mut model = Model::new(&shapes, kind, Pooling::Sum);
        for table in &mut model.specs {
            table.optimizer = optimizer(kind);
            table.init = Init::Constant(0.0);
        }
        let Access::Zipf { exponent } = spec.access else { panic!("look-ups by Zipf's law") };
        let laws: Vec<Law> =
            spec.tables.iter().map(|table| Law::zipf(table.rows, exponent)).collect();
        let world = EMBARK.0 * EMBARK.1;
        let samples = (BATCH / u64::from(world)) as usize;
        let batch = |step: usize, rank: u32| {
            let mut random = Random::new(((step as u64) << 32) + u64::from(rank));
            let (mut lengths, mut ids) = (Vec::new(), Vec::new());
            for (table, law) in spec.tables.iter().zip(&laws) {
                let many = table.pooling_factor as usize;
                lengths.resize(lengths.len() + samples, many as i64);
                ids.extend((0..samples * many).map(|_| law.id(&mut random)));
            }
            Jagged::from_lengths(&model.names(), samples, &lengths, ids, None).expect("a batch")
        };
        let steps = (0..steps).map(|step| (0..world).map(|rank| batch(step, rank)).collect());
        let steps = steps.collect();
        let workload = Workload::new(spec).expect("a workload");
        Self { model, workload, steps }
    }

    /// The plans of three planners, the first of which is the baseline, and the cluster in which
    /// distinct rows of pooled tables travel, of all tables.
    fn plans(&self, machines: &Topology) -> Vec<(String, Plan)> {
        let task = Task::new(&self.workload, machines);
        let model = StepModel { options: CostOptions::of_emb_train() };
        let lattice = Lattice { model, tries: None };
        let planners: [&dyn Planner; 3] = [&TableRowWise, &EmbarkPlanner::default(), &lattice];
        let plan = |planner: &&dyn Planner| {
            let plan = planner.plan(&task).expect("a plan");
            (planner.name().to_owned(), plan)
        };
        let mut plans: Vec<_> = planners.iter().map(plan).collect();
        let (node_ranks, nodes) = EMBARK;
        let world = node_ranks * nodes;
        let rows = vec![(0, Lives::new(world, UNIQUE))];
        let unique = Tiers { world, node_ranks, order: None, rows };
        plans.push(("unique".into(), unique.plan(&self.model)));
        plans
    }

    /// Trains the plans.
    fn check(&self, machines: &Topology) {
        let mut baseline = None;
        for (name, plan) in self.plans(machines) {
            let what = format!("{}, {name}", self.workload.name());
            let ran = train(&self.model, &plan, &self.steps);
            assert_touched_rows_changed(&self.model, &self.steps, &ran, &what);
            let estimate = estimate(&plan, &self.workload, machines);
            let predicted = mean(&predicted(&estimate), Bytes::inter_node);
            let counted = mean(&ran.bytes, Bytes::inter_node);
            let most = *baseline.get_or_insert(counted);
            let exchanges = plan.exchange_classes().iter();
            let exchanges: Vec<String> = exchanges
                .map(|class| format!("{} x {}", class.tiers.len(), class.exchange))
                .collect();
            eprintln!(
                "{what}: {counted:.0} bytes between nodes a rank and step, {predicted:.0} \
                 predicted ({:+.2} %), {:.2} times fewer than table-row-wise; {}; {:.2} GiB so far",
                100.0 * (counted - predicted) / predicted,
                most / counted,
                exchanges.join(", "),
                gib(peak_memory() as f64)
            );
            assert!(
                apart(counted, predicted) <= 0.02,
                "{what}: {counted}, not {predicted}\n{plan}"
            );
        }
    }
}

#[test]
fn embark_models_train_by_every_planner_with_the_bytes_that_were_predicted() {
    let names = ["embark-dcnv2", "embark-t180", "embark-t200", "embark-t510"];
    let machines = topology(EMBARK.0 * EMBARK.1, EMBARK.0, 1 << 34);
    for name in &names[..if full() { names.len() } else { 1 }] {
        Published::new(name, if full() { 1 } else { 2 }).check(&machines);
    }
}
