//! Batches, plans and the two runs that tests compare.

use emb_comm::{Collective, Local, Options, run};
use emb_dlrm::EmbeddingBags;
use emb_dlrm::sharded::{Error, IdWire, Pooled, ShardedEmbeddings, WholeTable};
use emb_kernels::{Backend, Cpu, CpuOptions, Feature, Jagged, Mat, Pooling, TableSpec};
use emb_optim::{Optimizer, OptimizerConfig, RuleKind};
use emb_shard::{Plan, Table, TableOptions, Tables};
use std::ops::Range;

pub(crate) const SEED: u64 = 7;

/// Random numbers that are the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// Tables, features and a learning rate.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) specs: Vec<TableSpec>,
    pub(crate) features: Vec<Feature>,
    pub(crate) rate: f64,
}

/// The rule with the usual start of its sums.
pub(crate) fn optimizer(kind: RuleKind) -> Optimizer {
    let initial_accumulator = kind.has_accumulator().then_some(0.1);
    OptimizerConfig { initial_accumulator, ..OptimizerConfig::new(kind) }.build().expect("valid")
}

impl Model {
    /// Tables of `(rows, dim, features)`.
    pub(crate) fn new(shapes: &[(u64, usize, usize)], kind: RuleKind, pooling: Pooling) -> Self {
        let mut model = Self { specs: Vec::new(), features: Vec::new(), rate: 0.05 };
        for (table, &(rows, dim, features)) in shapes.iter().enumerate() {
            let spec = TableSpec::new(format!("t{table}"), rows, dim, optimizer(kind));
            model.specs.push(spec);
            for f in 0..features {
                model.features.push(Feature { name: format!("t{table}f{f}"), table, pooling });
            }
        }
        model
    }

    pub(crate) fn tables(&self) -> Tables {
        let table = |(t, spec): (usize, &TableSpec)| {
            let named = self.features.iter().filter(|feature| feature.table == t);
            let sequence = named.clone().any(|feature| feature.pooling == Pooling::None);
            let pooling = if sequence { emb_shard::Pooling::None } else { emb_shard::Pooling::Sum };
            let features = Some(named.map(|feature| feature.name.clone()).collect());
            let options = TableOptions { pooling, features, ..TableOptions::default() };
            Table::new(spec.name.clone(), spec.rows, spec.dim, options).expect("a table")
        };
        Tables::new(self.specs.iter().enumerate().map(table).collect()).expect("tables")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.features.iter().map(|feature| feature.name.clone()).collect()
    }

    pub(crate) fn rates(&self) -> Vec<f64> {
        vec![self.rate; self.specs.len()]
    }

    /// Positions of the features whose bags aren't pooled.
    pub(crate) fn sequences(&self) -> Vec<usize> {
        let none = |&f: &usize| self.features[f].pooling == Pooling::None;
        (0..self.features.len()).filter(none).collect()
    }

    /// Columns of the table of a feature.
    pub(crate) fn dim(&self, feature: usize) -> usize {
        self.specs[self.features[feature].table].dim
    }

    /// One batch a rank: `sizes` samples, bags of 0 to 4 ids with a few hot rows among them.
    pub(crate) fn batches(
        &self,
        random: &mut Random,
        sizes: &[usize],
        weighted: bool,
    ) -> Vec<Jagged> {
        let one = |&samples: &usize| {
            let (mut lengths, mut ids) = (Vec::new(), Vec::new());
            for feature in &self.features {
                let rows = self.specs[feature.table].rows as usize;
                for _ in 0..samples {
                    let length = random.below(5);
                    lengths.push(length as i64);
                    for _ in 0..length {
                        let hot = random.below(3) == 0;
                        ids.push(random.below(if hot { rows.min(3) } else { rows }) as i64);
                    }
                }
            }
            let weights = weighted.then(|| ids.iter().map(|_| 0.25 + random.unit()).collect());
            Jagged::from_lengths(&self.names(), samples, &lengths, ids, weights).expect("a batch")
        };
        sizes.iter().map(one).collect()
    }

    /// Columns of the pooled output.
    pub(crate) fn width(&self) -> usize {
        let pooled = self.features.iter().filter(|feature| feature.pooling != Pooling::None);
        pooled.map(|feature| self.specs[feature.table].dim).sum()
    }

    pub(crate) fn shard(
        &self,
        world: &mut Local,
        cpu: &mut Cpu,
        plan: &Plan,
    ) -> Result<ShardedEmbeddings<Cpu, Local>, Error> {
        let (features, rates) = (self.features.clone(), self.rates());
        ShardedEmbeddings::new(world, cpu, plan, &self.specs, features, rates, 0, SEED)
    }
}

/// All ranks' samples as one batch, in rank order.
pub(crate) fn concat(names: &[String], batches: &[Jagged]) -> Jagged {
    let total = batches.iter().map(Jagged::batch).sum();
    let weighted = batches.iter().any(|batch| batch.as_ref().weights.is_some());
    let (mut lengths, mut ids, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for f in 0..names.len() {
        for batch in batches {
            for b in 0..batch.batch() {
                let bag = batch.as_ref().bag_range(f, b);
                lengths.push(bag.len() as i64);
                ids.extend_from_slice(batch.bag(f, b));
                weights.extend(bag.map(|k| batch.as_ref().weights.map_or(1.0, |w| w[k])));
            }
        }
    }
    let weights = weighted.then_some(weights);
    Jagged::from_lengths(names, total, &lengths, ids, weights).expect("a batch")
}

/// Where the gradients of the output come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Upstream {
    /// The same whatever the output.
    Given,
    /// `(output - target) / B`, so that a difference feeds back.
    Output,
    /// As `Given`, multiples of 1/64: their sums have the same bits in any order.
    Exact,
}

impl Upstream {
    /// The gradient of the mean over `total` samples, for samples from `first` on.
    pub(crate) fn gradient(
        self,
        output: &[f32],
        width: usize,
        (step, first, total): (u64, usize, usize),
    ) -> Vec<f32> {
        let value = |(k, &output): (usize, &f32)| {
            let (sample, column) = (first + k / width, k % width);
            let key = step.wrapping_mul(1_000_003) ^ ((sample * width + column) as u64) << 20;
            let target = Random::new(key).unit() - 0.5;
            match self {
                Self::Given => target / total as f32,
                Self::Output => (output - target) / total as f32,
                Self::Exact => (64.0 * target).round() / 64.0,
            }
        };
        output.iter().enumerate().map(value).collect()
    }

    /// The same of the rows of sequence feature `feature`, from its id `first` on.
    pub(crate) fn of_sequence(
        self,
        rows: &[f32],
        (feature, dim): (usize, usize),
        (step, first, total): (u64, usize, usize),
    ) -> Vec<f32> {
        let key = step + ((feature as u64 + 1) << 40);
        self.gradient(rows, dim, (key, first, total))
    }
}

/// What a run ends with.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) tables: Vec<WholeTable>,
    /// The pooled output of every step.
    pub(crate) outputs: Vec<Vec<f32>>,
    /// The rows of every step, by sequence feature.
    pub(crate) sequences: Vec<Vec<Vec<f32>>>,
}

pub(crate) fn cpu() -> Cpu {
    Cpu::new(CpuOptions { threads: 1 }).expect("a backend")
}

/// The same steps in one process.
pub(crate) fn one_process(model: &Model, steps: &[Vec<Jagged>], upstream: Upstream) -> Outcome {
    let mut cpu = cpu();
    let (features, rates) = (model.features.clone(), model.rates());
    let mut bags =
        EmbeddingBags::new(&mut cpu, &model.specs, features, rates, 0, SEED).expect("tables");
    let width = model.width();
    let mut outputs = Vec::new();
    for (number, batches) in steps.iter().enumerate() {
        let step = number as u64 + 1;
        let batch = concat(&model.names(), batches);
        let samples = batch.batch();
        let mut out = vec![0.0; samples * width];
        let view = batch.as_ref().view::<Cpu>();
        bags.forward(&mut cpu, view, Mat::new(&mut out[..], samples, width)).expect("forward");
        let gradient = upstream.gradient(&out, width, (step, 0, samples));
        let gradient = Mat::new(&gradient[..], samples, width);
        bags.backward(&mut cpu, view, gradient, 1.0, step).expect("backward");
        outputs.push(out);
    }
    let tables = (0..model.specs.len())
        .map(|t| {
            let spec = &model.specs[t];
            let mut weights = vec![0.0; spec.rows as usize * spec.dim];
            let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
            cpu.read_rows(bags.tables_mut(), t, 0, &mut weights, &mut state).expect("rows");
            WholeTable { weights, state }
        })
        .collect();
    Outcome { tables, outputs, sequences: Vec::new() }
}

/// The same steps over ranks; what each rank ends with, after a forced sync.
pub(crate) fn over_ranks(
    model: &Model,
    plan: &Plan,
    steps: &[Vec<Jagged>],
    upstream: Upstream,
) -> Vec<Outcome> {
    try_over_ranks(model, plan, steps, upstream).unwrap_or_else(|failure| panic!("{failure}"))
}

/// As [`over_ranks`], or what happened.
pub(crate) fn try_over_ranks(
    model: &Model,
    plan: &Plan,
    steps: &[Vec<Jagged>],
    upstream: Upstream,
) -> Result<Vec<Outcome>, String> {
    let results = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        // A half of all plans, and a third.
        if plan.fingerprint().is_multiple_of(2) {
            sharded.set_id_wire(IdWire::Packed);
        }
        if plan.fingerprint().is_multiple_of(3) {
            sharded.sync_beside(world, &cpu)?;
        }
        all_steps(world, &mut sharded, &mut cpu, model, steps, upstream)
    });
    results.map_err(|failure| failure.to_string())
}

/// All steps of a rank, and what it ends with.
pub(crate) fn all_steps(
    world: &mut Local,
    sharded: &mut ShardedEmbeddings<Cpu, Local>,
    cpu: &mut Cpu,
    model: &Model,
    steps: &[Vec<Jagged>],
    upstream: Upstream,
) -> Result<Outcome, Error> {
    let me = world.rank();
    let (mut outputs, mut sequences) = (Vec::new(), Vec::new());
    for (step, batches) in (1..).zip(steps) {
        world.set_step(step);
        let (output, rows) = one_step(model, sharded, cpu, (batches, me), upstream, step)?;
        outputs.push(output);
        sequences.push(rows);
    }
    Ok(Outcome { tables: synced(sharded, cpu, model)?, outputs, sequences })
}

/// All tables, after a forced sync.
pub(crate) fn synced(
    sharded: &mut ShardedEmbeddings<Cpu, Local>,
    cpu: &mut Cpu,
    model: &Model,
) -> Result<Vec<WholeTable>, Error> {
    sharded.sync(cpu)?;
    (0..model.specs.len()).map(|t| sharded.gather_table(cpu, t)).collect()
}

/// One step of rank `me`: its output, and the rows of its sequence features.
pub(crate) fn one_step(
    model: &Model,
    sharded: &mut ShardedEmbeddings<Cpu, Local>,
    cpu: &mut Cpu,
    (batches, me): (&[Jagged], usize),
    upstream: Upstream,
    step: u64,
) -> Result<(Vec<f32>, Vec<Vec<f32>>), Error> {
    let routed = sharded.route(batches[me].as_ref())?;
    let pooled = routed.exchange(sharded)?.pool(sharded, cpu)?;
    finish_step(model, (sharded, cpu), pooled, (batches, me), upstream, step)
}

/// The end of [`one_step`], once everything is pooled.
pub(crate) fn finish_step(
    model: &Model,
    (sharded, cpu): (&mut ShardedEmbeddings<Cpu, Local>, &mut Cpu),
    pooled: Pooled<Cpu>,
    (batches, me): (&[Jagged], usize),
    upstream: Upstream,
    step: u64,
) -> Result<(Vec<f32>, Vec<Vec<f32>>), Error> {
    let total = batches.iter().map(Jagged::batch).sum();
    let first = batches[..me].iter().map(Jagged::batch).sum();
    let output = pooled.output().to_vec();
    let gradient = upstream.gradient(&output, model.width(), (step, first, total));
    let (mut rows, mut gradients) = (Vec::new(), Vec::new());
    for f in model.sequences() {
        let ids = |batch: &Jagged| batch.as_ref().feature_range(f).len();
        let first = batches[..me].iter().map(ids).sum();
        let got = pooled.sequence(f).to_vec();
        assert_eq!(got.len(), ids(&batches[me]) * model.dim(f), "rows of feature {f}");
        gradients.push(upstream.of_sequence(&got, (f, model.dim(f)), (step, first, total)));
        rows.push(got);
    }
    if gradients.is_empty() {
        pooled.backward(sharded, cpu, &gradient, 1.0, step)?;
    } else {
        let gradients: Vec<&[f32]> = gradients.iter().map(Vec::as_slice).collect();
        pooled.backward_all(sharded, cpu, &gradient, &gradients, 1.0, step)?;
    }
    Ok((output, rows))
}

/// `|a - b| / |b|` in the Euclidean norm.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |x: f64| x * x;
    let apart: f64 = a.iter().zip(b).map(|(&a, &b)| square(f64::from(a) - f64::from(b))).sum();
    let norm: f64 = b.iter().map(|&b| square(f64::from(b))).sum();
    if apart == 0.0 { 0.0 } else { (apart / norm).sqrt() }
}

/// Every rank holds the tables of one process, norm-wise.
pub(crate) fn assert_near(model: &Model, ranks: &[Outcome], one: &Outcome, limit: f64, case: &str) {
    for (rank, outcome) in ranks.iter().enumerate() {
        for (t, (got, expected)) in outcome.tables.iter().zip(&one.tables).enumerate() {
            let apart = distance(&got.weights, &expected.weights);
            let name = &model.specs[t].name;
            assert!(apart <= limit, "{case}: rank {rank}, table {name}: weights {apart:e} apart");
            for (slot, (got, expected)) in got.state.iter().zip(&expected.state).enumerate() {
                let apart = distance(got, expected);
                assert!(apart <= limit, "{case}: rank {rank}, {name}, slot {slot}: {apart:e}");
            }
        }
    }
}

/// All ranks hold the same bits.
pub(crate) fn assert_replicas_equal(ranks: &[Outcome], case: &str) {
    for (rank, outcome) in ranks.iter().enumerate() {
        for (t, (got, expected)) in outcome.tables.iter().zip(&ranks[0].tables).enumerate() {
            assert!(bits(got) == bits(expected), "{case}: rank {rank}, table {t} differs");
        }
    }
}

/// The bits of a table, so that comparisons see every one.
pub(crate) fn bits(table: &WholeTable) -> Vec<u32> {
    let state = table.state.iter().flatten();
    table.weights.iter().chain(state).map(|value| value.to_bits()).collect()
}

/// Seeds of a loop: so many from 0 on, as [`cases`] has it, or `EMB_SEED` alone.
pub(crate) fn seeds(default: u64) -> Range<u64> {
    let one = std::env::var("EMB_SEED").ok().and_then(|text| text.parse().ok());
    one.map_or_else(|| 0..cases(default), |seed: u64| seed..seed + 1)
}

/// Cases of a seeded loop: `EMB_CASES`, or so many. Prints the seeds that are taken.
pub(crate) fn cases(default: u64) -> u64 {
    let asked = std::env::var("EMB_CASES").ok().and_then(|text| text.parse().ok());
    let cases = asked.unwrap_or(default);
    eprintln!("seeds 0 to {}", cases - 1);
    cases
}
