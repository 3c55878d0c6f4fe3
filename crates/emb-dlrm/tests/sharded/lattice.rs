//! The same result as one process, anywhere in the lattice of plans.

use crate::naive::OneProcess;
use crate::random_plans::{Shape, permutation};
use crate::support::{Model, Outcome, Random, Upstream, bits, concat, seeds, try_over_ranks};
use emb_kernels::{Jagged, Pooling};
use emb_optim::{Decay, OptimizerConfig, RuleKind};
use emb_shard::{Plan, PlanSpec, ReplicaSync, Tier};
use std::collections::BTreeMap;

/// Steps of a case.
const STEPS: usize = 10;

/// Relative error, norm-wise by tensor.
const LIMIT: f64 = 1e-5;

/// Any model, any plan of it, and batches of every rank.
pub(crate) struct Case {
    pub(crate) model: Model,
    spec: PlanSpec,
    pub(crate) plan: Plan,
    pub(crate) steps: Vec<Vec<Jagged>>,
}

impl Case {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut model = model(&mut random);
        let shape = Shape::new(&mut random);
        let spec = shape.plan(&mut random, &model);
        for (table, placed) in model.specs.iter_mut().zip(&spec.tables) {
            let exact = |tier: &Tier| {
                let summed = matches!(tier.sync, ReplicaSync::None | ReplicaSync::Gradients);
                summed && tier.blocks.len() == 1
            };
            if placed.tiers.iter().all(exact) && random.below(3) == 0 {
                let mut config = *table.optimizer.config();
                config.max_norm = Some(0.3);
                table.optimizer = config.build().expect("valid");
            }
        }
        let plan = Plan::new(&model.tables(), spec.clone()).expect("a plan");
        let steps = steps(&mut random, &model, shape.world as usize);
        Self { model, spec, plan, steps }
    }

    /// How far the ranks end from one process, or how they differ.
    fn check(&self, twice: bool) -> Result<f64, String> {
        let Self { model, plan, steps, .. } = self;
        let one = OneProcess::new(model, steps, Upstream::Output);
        let ranks = try_over_ranks(model, plan, steps, Upstream::Output)?;
        let most = one.check(model, &ranks, LIMIT)?;
        for (rank, outcome) in ranks.iter().enumerate() {
            if let Some(table) = differing(outcome, &ranks[0]) {
                return Err(format!("ranks 0 and {rank} have other bits of table {table}"));
            }
        }
        if twice {
            let again = try_over_ranks(model, plan, steps, Upstream::Output)?;
            for (rank, (once, again)) in ranks.iter().zip(&again).enumerate() {
                if let Some(table) = differing(once, again) {
                    return Err(format!(
                        "rank {rank}: another run has other bits of table {table}"
                    ));
                }
                if once.outputs != again.outputs || once.sequences != again.sequences {
                    return Err(format!("rank {rank}: another run has other outputs"));
                }
            }
        }
        Ok(most)
    }

    /// Adds what the case is made of to `seen`.
    fn count(&self, seen: &mut BTreeMap<String, usize>) {
        let mut saw = |what: String| *seen.entry(what).or_default() += 1;
        for (t, (_, placed)) in self.plan.placed().iter().enumerate() {
            let features = self.model.features.iter().filter(|feature| feature.table == t);
            for feature in features {
                for tier in &placed.tiers {
                    saw(format!("{} of {:?}", tier.exchange, feature.pooling));
                }
            }
            let replicated = placed.tiers.iter().filter(|tier| tier.sync != ReplicaSync::None);
            for tier in replicated {
                saw(format!("sync {}", tier.sync));
            }
            saw(format!("{} tiers", placed.tiers.len()));
        }
    }
}

/// The first table of other bits.
fn differing(a: &Outcome, b: &Outcome) -> Option<usize> {
    let tables = a.tables.iter().zip(&b.tables);
    tables.enumerate().find(|(_, (a, b))| bits(a) != bits(b)).map(|(table, _)| table)
}

/// One to three small tables with one or two features each, in any order.
fn model(random: &mut Random) -> Model {
    let mut poolings = Vec::new();
    let shapes: Vec<_> = (0..=random.below(3))
        .map(|_| {
            let few = [1, 2, 3, 5, 17];
            let rows = if random.below(3) == 0 { random.pick(&few) } else { 1 + random.below(200) };
            let dim = if random.below(3) == 0 { random.pick(&few) } else { 1 + random.below(64) };
            let sequence = random.below(4) == 0;
            // Where rows travel, others may pool them.
            poolings.push(if sequence {
                &[Pooling::None, Pooling::None, Pooling::Sum, Pooling::Mean][..]
            } else {
                &[Pooling::Sum, Pooling::Mean]
            });
            (rows as u64, dim, 1 + random.below(2))
        })
        .collect();
    let mut model = Model::new(&shapes, RuleKind::Sgd, Pooling::Sum);
    for feature in &mut model.features {
        feature.pooling = random.pick(poolings[feature.table]);
    }
    for spec in &mut model.specs {
        // Replicas that average are equal to one process with this one alone.
        let plain = random.below(4) == 0;
        let kind = if plain { RuleKind::Sgd } else { random.pick(&RuleKind::ALL) };
        let mut config = OptimizerConfig::new(kind);
        config.initial_accumulator = kind.has_accumulator().then_some(0.1);
        // The first step of Adam has the size of the learning rate, whatever the size of the
        // gradient: without this a gradient that cancels to rounding errors takes a step as well.
        config.eps = kind.has_betas().then_some(1e-4);
        if !plain && random.below(3) == 0 {
            config.max_gradient = Some(0.02);
        }
        if !plain && random.below(3) == 0 {
            config.weight_decay = Some(0.01);
            config.decay = Some(random.pick(&[Decay::L2, Decay::Decoupled]));
        }
        spec.optimizer = config.build().expect("valid");
    }
    let order = permutation(random, model.features.len() as u64);
    model.features = order.iter().map(|&f| model.features[f as usize].clone()).collect();
    model
}

/// Zero to four samples a rank; per-sample weights on no rank, on all or on some.
fn steps(random: &mut Random, model: &Model, world: usize) -> Vec<Vec<Jagged>> {
    let weighted = random.below(3);
    let mut one = |_| {
        let mut batches = Vec::new();
        for _ in 0..world {
            let samples = if random.below(4) == 0 { 0 } else { random.below(5) };
            let weighted = weighted == 1 || (weighted == 2 && random.below(2) == 0);
            batches.extend(model.batches(random, &[samples], weighted));
        }
        // Steps count samples; there is one at least.
        if batches.iter().all(|batch| batch.batch() == 0) {
            batches.splice(0..1, model.batches(random, &[1], weighted == 1));
        }
        batches
    };
    (0..STEPS).map(&mut one).collect()
}

#[test]
fn any_plan_equals_one_process() {
    let seeds = seeds(60);
    // A long run repeats every case.
    let all_twice = std::env::var_os("EMB_CASES").is_some();
    let (mut faults, mut seen, mut most) = (Vec::new(), BTreeMap::new(), 0.0_f64);
    for seed in seeds.clone() {
        let case = Case::new(seed);
        case.count(&mut seen);
        match case.check(all_twice || seed % 4 == 0) {
            Ok(apart) => most = most.max(apart),
            Err(fault) => {
                eprintln!("seed {seed}: {fault}");
                let text = format!("seed {seed}: {fault}\n{}{:?}", case.plan, case.spec);
                faults.push((seed, text));
            }
        }
    }
    eprintln!("tables are {most:.1e} apart at most");
    for (what, count) in &seen {
        eprintln!("{count:5} x {what}");
    }
    let failed: Vec<u64> = faults.iter().map(|(seed, _)| *seed).collect();
    let smallest = faults.iter().min_by_key(|(_, text)| text.len());
    if let Some((_, text)) = smallest {
        panic!("seeds {failed:?}, of which the smallest is\n{text}");
    }
    // Every exchange with every pooling that it serves, every number of tiers, every sync.
    if seeds.end - seeds.start >= 100 {
        assert_eq!(seen.len(), EVERYTHING, "{seen:?}");
    }
}

/// Exchanges of sums and of means: local, two ways to reduce, two to fetch distinct rows, one to
/// fetch all; of sequences those that don't reduce; three syncs; one to three tiers.
const EVERYTHING: usize = 2 * 6 + 4 + 3 + 3;

#[test]
fn cases_are_what_they_are_said_to_be() {
    let (mut duplicates, mut idle, mut untouched) = (0, 0, 0);
    for seed in 0..50 {
        let Case { model, steps, .. } = Case::new(seed);
        let mut touched: Vec<_> =
            model.specs.iter().map(|spec| vec![false; spec.rows as usize]).collect();
        for batches in &steps {
            idle += batches.iter().filter(|batch| batch.batch() == 0).count();
            let batch = concat(&model.names(), batches);
            for (f, feature) in model.features.iter().enumerate() {
                for b in 0..batch.batch() {
                    let mut bag = batch.bag(f, b).to_vec();
                    for &id in &bag {
                        touched[feature.table][id as usize] = true;
                    }
                    bag.sort_unstable();
                    duplicates += bag.windows(2).filter(|pair| pair[0] == pair[1]).count();
                }
            }
        }
        untouched += touched.iter().flatten().filter(|&&touched| !touched).count();
    }
    eprintln!("{duplicates} duplicates in bags, {idle} ranks without samples, {untouched} rows");
    assert!(duplicates > 1000 && idle > 500 && untouched > 500);
}
