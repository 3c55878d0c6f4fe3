//! The cost model of plans against what collectives count.

use crate::replicas::{touched_rows, weights};
use crate::support::{Model, Random, Upstream, cases, cpu};
use emb_comm::{Collective, Meter, Options, run};
use emb_dlrm::sharded::Error;
use emb_kernels::{Jagged, Pooling};
use emb_optim::{Extent, RuleKind};
use emb_shard::{
    Access, Batch, CostModel, CostOptions, Estimate, Layout, LevelBytes, LevelSpec, Mesh,
    NodeSplit, PlaceOptions, Placement, Plan, PlanBuilder, RankEstimate, ReplicaSync, RowCut,
    StepModel, TableSpec, Topology, TopologySpec, UnitRanks, Workload, WorkloadSpec,
};

/// Samples of a rank: enough that the mean of the steps is near what is expected.
const BATCH: usize = 256;

/// A multiple of every period of a sync.
const STEPS: usize = 32;

/// How the ids of a table are drawn.
struct Law {
    /// Up to and with each row, in the order of frequency.
    sums: Vec<f64>,
    /// Rows by frequency rank.
    rows: Vec<i64>,
    /// Bags have up to twice as many ids.
    pooling_factor: usize,
    uniform: bool,
}

struct Case {
    model: Model,
    workload: Workload,
    topology: Topology,
    plan: Plan,
    laws: Vec<Law>,
    node_ranks: usize,
}

/// Bytes that a rank receives in a step, in its node and from other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bytes {
    exchanged: [f64; 2],
    synced: [f64; 2],
}

impl Law {
    fn new(random: &mut Random, rows: u64, exponent: f64) -> Self {
        let (mut sum, mut sums) = (0.0, Vec::new());
        for rank in 1..=rows {
            sum += (rank as f64).powf(-exponent);
            sums.push(sum);
        }
        // Hot rows may be anywhere.
        let mut order: Vec<i64> = (0..rows as i64).collect();
        for end in (1..order.len()).rev() {
            order.swap(end, random.below(end + 1));
        }
        Self { sums, rows: order, pooling_factor: 1 + random.below(4), uniform: exponent == 0.0 }
    }

    fn id(&self, random: &mut Random) -> i64 {
        let all = self.sums[self.sums.len() - 1];
        let point = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * all;
        self.rows[self.sums.partition_point(|&sum| sum <= point).min(self.rows.len() - 1)]
    }
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = random.pick(&RuleKind::ALL);
        let shapes: Vec<_> = (0..=random.below(4))
            .map(|_| {
                let rows = random.pick(&[3_u64, 40, 700, 3000]);
                (rows, random.pick(&[4, 10, 16, 33]), 1 + random.below(2))
            })
            .collect();
        let model = Model::new(&shapes, kind, Pooling::Sum);
        let mut spec = WorkloadSpec::new("drawn", Batch::PerRank(BATCH as u64));
        let mut laws = Vec::new();
        for (t, table) in model.specs.iter().enumerate() {
            let exponent = random.pick(&[0.0, 0.8, 1.1]);
            let law = Law::new(&mut random, table.rows, exponent);
            let named = model.features.iter().filter(|feature| feature.table == t);
            spec.tables.push(TableSpec {
                pooling_factor: law.pooling_factor as f64,
                features: Some(named.map(|feature| feature.name.clone()).collect()),
                access: Some(Access::Zipf { exponent }),
                ..TableSpec::new(table.name.clone(), table.rows, table.dim)
            });
            laws.push(law);
        }
        for slot in model.specs[0].optimizer.slots() {
            match slot.extent {
                Extent::Row => spec.state.per_row += 4,
                Extent::Element => spec.state.per_element += 4,
            }
        }
        let workload = Workload::new(spec).expect("a workload");
        let (world, node_ranks) =
            random.pick(&[(2, 1), (2, 2), (4, 2), (4, 4), (6, 2), (6, 3), (8, 2), (8, 4)]);
        let plan = plan(&mut random, &workload, world, node_ranks);
        let topology = topology(world, node_ranks);
        Self { model, workload, topology, plan, laws, node_ranks: node_ranks as usize }
    }

    fn batch(&self, random: &mut Random) -> Jagged {
        let (mut lengths, mut ids) = (Vec::new(), Vec::new());
        for feature in &self.model.features {
            let law = &self.laws[feature.table];
            for _ in 0..BATCH {
                let length = random.below(2 * law.pooling_factor + 1);
                lengths.push(length as i64);
                ids.extend((0..length).map(|_| law.id(random)));
            }
        }
        Jagged::from_lengths(&self.model.names(), BATCH, &lengths, ids, None).expect("a batch")
    }

    /// What every rank's collectives count, as a mean over the steps.
    fn counted(&self, seed: u64) -> Vec<Bytes> {
        let options = Options::default().with_ranks_per_node(self.node_ranks);
        let ranks = run(self.plan.world() as usize, &options, |world| {
            let mut cpu = cpu();
            let mut sharded = self.model.shard(world, &mut cpu, &self.plan)?;
            let me = world.rank() as u64;
            let mut random = Random::new(seed ^ (me + 1) << 32);
            let total = BATCH * world.world();
            for step in 1..=STEPS as u64 {
                let batch = self.batch(&mut random);
                let routed = sharded.route(batch.as_ref())?;
                let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                let (output, width) = (pooled.output(), self.model.width());
                let gradient = Upstream::Given.gradient(output, width, (step, 0, total));
                pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, step)?;
            }
            let a_step = |meter: Meter| {
                let bytes = [meter.intra_node_bytes, meter.inter_node_bytes];
                bytes.map(|bytes| bytes as f64 / STEPS as f64)
            };
            let (exchanged, synced) = (a_step(sharded.exchanged()), a_step(sharded.synced()));
            let bytes = Bytes { exchanged, synced };
            Ok::<_, Error>(bytes)
        });
        ranks.unwrap_or_else(|failure| panic!("{failure}\n{}", self.plan))
    }

    fn predicted(&self) -> Vec<Bytes> {
        let model = StepModel { options: CostOptions::of_emb_train() };
        let estimate = model.estimate(&self.plan, &self.workload, &self.topology);
        let Estimate { ranks, .. } = estimate.expect("the plan's workload");
        let received = |levels: &[LevelBytes]| [levels[0].received, levels[1].received];
        let bytes = |rank: &RankEstimate| Bytes {
            exchanged: received(&rank.exchanged),
            synced: received(&rank.synced),
        };
        ranks.iter().map(bytes).collect()
    }
}

fn topology(world: u32, node_ranks: u32) -> Topology {
    let level = |name: &str, ranks| LevelSpec {
        name: name.to_owned(),
        ranks: UnitRanks::Equal(ranks),
        bandwidth: 1e9,
        latency: 1e-6,
        all_to_all: Vec::new(),
    };
    let spec = TopologySpec {
        name: "threads".into(),
        ranks: world,
        memory_bytes: 1 << 30,
        memory_bandwidth: 1e10,
        flops: 1e9,
        levels: vec![level("node", node_ranks), level("cluster", world)],
    };
    Topology::new(spec).expect("a topology")
}

/// Any plan that can be run.
fn plan(random: &mut Random, workload: &Workload, world: u32, node_ranks: u32) -> Plan {
    let divisors: Vec<u32> = (1..=world).filter(|&ranks| world.is_multiple_of(ranks)).collect();
    let layouts = [Layout::Strided, Layout::Contiguous];
    let mesh = Mesh::new(world, random.pick(&divisors), random.pick(&layouts)).expect("a mesh");
    let mut builder = PlanBuilder::new(mesh).node_ranks(node_ranks);
    for table in workload.tables().tables().as_slice() {
        let group = (random.below(3) == 0).then(|| (random.pick(&divisors), random.pick(&layouts)));
        let own =
            group.map_or(mesh, |(ranks, layout)| Mesh::new(world, ranks, layout).expect("so"));
        let cut = random.pick(&[RowCut::Ceil, RowCut::Even, RowCut::Modulo]);
        let mut placements = vec![
            Placement::TableWise { owner: None },
            Placement::RowWise { cut },
            Placement::ColumnWise { parts: None },
            Placement::ColumnWise { parts: Some(1 + own.group_ranks() / 2) },
            Placement::DataParallel,
        ];
        if NodeSplit::new(own, node_ranks).expect("nodes").is_some() {
            placements.push(Placement::TableRowWise { cut, node: None });
            placements.push(Placement::Grid { cut, parts: None });
        }
        let placement = random.pick(&placements);
        let replicas = if placement == Placement::DataParallel { world } else { own.replicas() };
        let every = random.pick(&[1, 2, 4]);
        let syncs = [weights(every), touched_rows(every), ReplicaSync::Gradients];
        let sync = (replicas > 1).then(|| random.pick(&syncs));
        let options = PlaceOptions { placement, group, exchange: None, sync };
        builder = builder.table(table.name(), options);
    }
    builder.build(workload.tables()).expect("a plan")
}

/// One of the kinds of bytes.
type OneKind = fn(&Bytes) -> f64;

/// Bytes by what they are for and how far they go.
const KINDS: [(&str, OneKind); 4] = [
    ("exchanged inside nodes", |bytes| bytes.exchanged[0]),
    ("exchanged between nodes", |bytes| bytes.exchanged[1]),
    ("synced inside nodes", |bytes| bytes.synced[0]),
    ("synced between nodes", |bytes| bytes.synced[1]),
];

/// Bytes below which the busiest rank is that by chance.
const A_FEW: f64 = 1000.0;

#[test]
fn bytes_over_every_level_are_those_that_the_cost_model_predicts() {
    let mut faults = Vec::new();
    for seed in 0..cases(30) {
        let case = Case::new(seed);
        let (predicted, counted) = (case.predicted(), case.counted(seed));
        for (name, of) in KINDS {
            let mean = |ranks: &[Bytes]| ranks.iter().map(of).sum::<f64>() / ranks.len() as f64;
            let most = |ranks: &[Bytes]| ranks.iter().map(of).fold(0.0, f64::max);
            for (who, predicted, counted) in [
                ("mean", mean(&predicted), mean(&counted)),
                ("busiest", most(&predicted), most(&counted)),
            ] {
                let apart = (predicted - counted).abs() / counted.max(1.0);
                let line = format!(
                    "seed {seed}, {who} rank, {name}: {predicted:.0} predicted, {counted:.0} \
                     counted, {:.2} % apart",
                    100.0 * apart
                );
                eprintln!("{line}");
                // Which owner has the hot rows, where there are any, no plan knows; and of a few
                // ids the busiest rank has a few more.
                let even = case.laws.iter().all(|law| law.uniform);
                let known = who == "mean" || (even && counted >= A_FEW);
                if apart > 0.02 && known {
                    faults.push(format!("{line}\n{}", case.plan));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
