//! Reports from the field about who fetches which rows, each with its id.

use crate::collectives::of_these;
use crate::support::{Model, Random, SEED, bits, cpu};
use crate::tiered::{Lives, POOLED, REDUCE, REDUCE_BY_NODE, Tiers, UNIQUE, UNIQUE_BY_NODE};
use emb_comm::{Collective, Options, run};
use emb_dlrm::EmbeddingBags;
use emb_dlrm::sharded::{Error, WholeTable};
use emb_kernels::{Cpu, Init, Jagged, Mat, Pooling};
use emb_optim::{OptimizerConfig, RuleKind};
use emb_shard::{Exchange, Plan};

/// Every exchange over four ranks on two nodes: whole tables, hot rows apart, columns cut.
fn plans(model: &Model, exchanges: &[Exchange]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for &exchange in exchanges {
        for (group, blocks, hot) in [(4, 1, 0), (4, 2, 0), (4, 1, 2), (2, 1, 0), (2, 2, 1)] {
            let lives = Lives { blocks, ..Lives::new(group, exchange) };
            plans.push(Tiers::of_four(lives).with_hot(hot).plan(model));
        }
    }
    plans.push(Tiers::of_four(Lives::new(1, Exchange::Local)).plan(model));
    plans
}

/// One step in which rank `who` has these bags, one a feature, and no other rank has samples:
/// its output, and table 0 afterwards. `start` is what the tables begin with.
fn one_sample(
    model: &Model,
    plan: &Plan,
    who: usize,
    bags: &[&[i64]],
    gradient: &[f32],
    start: &[WholeTable],
) -> (Vec<f32>, WholeTable) {
    let results = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        for (table, rows) in start.iter().enumerate() {
            sharded.load_table(&mut cpu, table, rows)?;
        }
        let batch = if world.rank() == who {
            let lengths: Vec<i64> = bags.iter().map(|bag| bag.len() as i64).collect();
            Jagged::from_lengths(&model.names(), 1, &lengths, bags.concat(), None)?
        } else {
            Jagged::empty(&model.names())
        };
        let routed = sharded.route(batch.as_ref())?;
        let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
        let output = pooled.output().to_vec();
        let gradient = if output.is_empty() { &[] } else { gradient };
        pooled.backward(&mut sharded, &mut cpu, gradient, 1.0, 1)?;
        Ok::<_, Error>((output, sharded.gather_table(&mut cpu, 0)?))
    });
    let results = results.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
    assert!(results.iter().all(|(_, table)| bits(table) == bits(&results[0].1)), "{plan}");
    results.into_iter().nth(who).expect("the rank")
}

#[test]
fn u11_one_feature_in_two_tables_has_both_outputs() {
    let mut model = Model::new(&[(10, 2, 1), (10, 2, 1)], RuleKind::Sgd, Pooling::Sum);
    model.rate = 1.0;
    let rows = |first: u32| WholeTable {
        weights: (0..20).map(|k| (first + k / 2) as f32).collect(),
        state: Vec::new(),
    };
    for plan in plans(&model, &POOLED) {
        let start = [rows(0), rows(100)];
        let (output, _) = one_sample(&model, &plan, 3, &[&[3], &[3]], &[1.0; 4], &start);
        assert_eq!(output, [3.0, 3.0, 103.0, 103.0], "{plan}");
    }
}

#[test]
fn u11_two_features_of_one_table_keep_their_ids_when_ids_are_fetched_once() {
    let mut model = Model::new(&[(10, 3, 2)], RuleKind::Sgd, Pooling::Sum);
    model.rate = 1.0;
    let bags: [&[i64]; 2] = [&[1, 2], &[2, 2, 3, 4, 5, 6]];
    // One process, whose rows have many digits, and which fetches every row as often as it is
    // asked for.
    let mut one = cpu();
    let (features, rates) = (model.features.clone(), vec![1.0]);
    let mut tables =
        EmbeddingBags::new(&mut one, &model.specs, features, rates, 0, SEED).expect("tables");
    let batch = Jagged::from_lengths(&model.names(), 1, &[2, 6], bags.concat(), None);
    let batch = batch.expect("a batch");
    let mut expected = vec![0.0; 6];
    let view = batch.as_ref().view::<Cpu>();
    tables.forward(&mut one, view, Mat::new(&mut expected[..], 1, 6)).expect("outputs");
    for plan in plans(&model, &[UNIQUE, UNIQUE_BY_NODE]) {
        for who in 0..4 {
            let (output, _) = one_sample(&model, &plan, who, &bags, &[0.5; 6], &[]);
            assert_eq!(output, expected, "rank {who}\n{plan}");
        }
    }
    let zeros = WholeTable { weights: vec![0.0; 30], state: Vec::new() };
    for plan in plans(&model, &POOLED) {
        let start = [zeros.clone()];
        let (_, table) = one_sample(&model, &plan, 2, &bags, &[0.5; 6], &start);
        let steps = [0.0, 0.5, 1.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0];
        let rows: Vec<f32> = steps.iter().flat_map(|&step| [0.0 - step; 3]).collect();
        assert_eq!(table.weights, rows, "{plan}");
    }
}

#[test]
fn u12_duplicates_of_a_bag_are_one_step() {
    for (kind, expected) in [
        (RuleKind::Sgd, [0.7, 0.4]),
        (RuleKind::AdaGrad, [0.9, 0.9]),
        (RuleKind::RowWiseAdaGrad, [0.936754, 0.873509]),
    ] {
        let mut model = Model::new(&[(5, 2, 1)], kind, Pooling::Sum);
        model.rate = 0.1;
        model.specs[0].init = Init::Constant(1.0);
        let eps = kind.has_eps().then_some(0.0);
        let config = OptimizerConfig { eps, ..OptimizerConfig::new(kind) };
        model.specs[0].optimizer = config.build().expect("valid");
        for plan in plans(&model, &POOLED) {
            let (_, table) = one_sample(&model, &plan, 1, &[&[0, 0, 0]], &[1.0, 2.0], &[]);
            for (got, expected) in table.weights.iter().zip(expected) {
                assert!((got - expected).abs() <= 1e-6, "{kind}: {got}, not {expected}\n{plan}");
            }
            assert!(table.weights[2..].iter().all(|&weight| weight == 1.0), "{kind}\n{plan}");
        }
    }
}

/// Samples of a rank, each with a bag of 16 ids: 65,536 ids over four ranks.
const SAMPLES: usize = 1024;

#[test]
fn u12_ten_thousand_copies_of_an_id_give_the_same_bits_in_every_run() {
    let model = Model::new(&[(3000, 6, 1)], RuleKind::RowWiseAdaGrad, Pooling::Mean);
    let mut random = Random::new(12);
    let mut batch = |_| {
        let ids = (0..SAMPLES * 16).map(|k| {
            let copy = k % 13 < 2 || k % 1000 == 17;
            if copy { 7 } else { random.below(3000) as i64 }
        });
        let ids: Vec<i64> = ids.collect();
        Jagged::from_lengths(&model.names(), SAMPLES, &[16; SAMPLES], ids, None).expect("a batch")
    };
    let batches: Vec<Jagged> = (0..4).map(&mut batch).collect();
    let all = batches.iter().flat_map(|batch| batch.as_ref().values);
    assert!(all.filter(|&&id| id == 7).count() >= 10_000);
    for exchange in POOLED {
        for hot in [0, 20] {
            let plan = Tiers::of_four(Lives::new(4, exchange)).with_hot(hot).plan(&model);
            let mut first: Option<Vec<u32>> = None;
            for turn in 0..20 {
                let tables = run(4, &Options::default(), |world| {
                    let mut cpu = cpu();
                    let mut sharded = model.shard(world, &mut cpu, &plan)?;
                    let batch = batches[world.rank()].as_ref();
                    let routed = sharded.route(batch)?;
                    let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                    let mut random = Random::new(world.rank() as u64);
                    let gradient: Vec<f32> =
                        pooled.output().iter().map(|_| random.unit() - 0.5).collect();
                    pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, 1)?;
                    sharded.gather_table(&mut cpu, 0)
                });
                let tables = tables.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
                for table in &tables {
                    let first = first.get_or_insert_with(|| bits(table));
                    assert!(bits(table) == *first, "run {turn}\n{plan}");
                }
            }
        }
    }
}

/// Batches of four ranks in which all features have the same bags.
fn alike(model: &Model) -> Vec<Jagged> {
    let one = Model { features: model.features[..1].to_vec(), ..model.clone() };
    let batches = one.batches(&mut Random::new(3), &[2, 1, 0, 1], false);
    let repeat = |batch: Jagged| {
        let (samples, times) = (batch.batch(), model.features.len());
        let lengths: Vec<i64> = (0..samples).map(|b| batch.bag(0, b).len() as i64).collect();
        let (lengths, ids) = (lengths.repeat(times), batch.as_ref().values.repeat(times));
        Jagged::from_lengths(&model.names(), samples, &lengths, ids, None).expect("a batch")
    };
    batches.into_iter().map(repeat).collect()
}

#[test]
fn u43_collectives_of_a_step_do_not_grow_with_tables_whatever_the_exchange() {
    for (exchange, pooling, expected) in [
        // Counts, ids, sums, gradients.
        (REDUCE, Pooling::Sum, 4),
        // Sums and gradients inside nodes and between them.
        (REDUCE_BY_NODE, Pooling::Mean, 6),
        // Counts, ids, rows, gradients.
        (UNIQUE, Pooling::Sum, 4),
        (UNIQUE, Pooling::None, 4),
        (Exchange::Rows, Pooling::None, 4),
        // Each of them inside nodes and between them.
        (UNIQUE_BY_NODE, Pooling::Mean, 8),
        (UNIQUE_BY_NODE, Pooling::None, 8),
    ] {
        for (group, blocks, hot) in [(4, 1, 0), (4, 2, 0), (4, 1, 5), (2, 1, 0), (2, 2, 5)] {
            let lives = Lives { blocks, ..Lives::new(group, exchange) };
            let tiers = Tiers::of_four(lives).with_hot(hot);
            let counts = [1, 26, 200].map(|tables| {
                let shapes = vec![(20, 6, 1); tables];
                let model = Model::new(&shapes, RuleKind::RowWiseAdaGrad, pooling);
                of_these(&model, &tiers.plan(&model), &alike(&model))
            });
            let what = format!("{exchange}, groups of {group}, {blocks} blocks, {hot} hot rows");
            eprintln!("{what}: {:?}", counts[0]);
            assert!(counts.iter().all(|count| *count == counts[0]), "{what}: {counts:?}");
            if (group, blocks, hot) == (4, 1, 0) {
                assert_eq!(counts[0], [expected; 4], "{what}");
            }
        }
    }
}
