//! Reports from the field about hot and cold rows, each with its id.

use crate::random_plans::permutation;
use crate::replicas::{touched_rows, weights};
use crate::support::{
    Model, Random, Upstream, assert_near, bits, cpu, one_process, one_step, over_ranks,
};
use crate::tiered::{Lives, POOLED, Tiers};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{Error, WholeTable};
use emb_kernels::{Init, Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{Plan, ReplicaSync};

/// Ten rows of which so many are hot, in this order.
fn ten_rows(model: &Model, lives: Lives, hot: u64, order: Option<Vec<u64>>) -> Plan {
    Tiers { order, ..Tiers::of_four(lives) }.with_hot(hot).plan(model)
}

/// Batches of four ranks, with more ids than rows are hot.
fn batches(model: &Model, random: &mut Random, count: usize) -> Vec<Vec<Jagged>> {
    (0..count).map(|_| model.batches(random, &[3, 0, 2, 4], false)).collect()
}

#[test]
fn u23_a_row_has_the_same_outputs_hot_or_cold() {
    let mut model = Model::new(&[(10, 4, 1)], RuleKind::Sgd, Pooling::Sum);
    model.rate = 1.0;
    model.specs[0].init = Init::Constant(0.0);
    // Row 5 is among the others, or the hottest.
    let mut hottest: Vec<u64> = (0..10).collect();
    hottest.swap(0, 5);
    for exchange in POOLED {
        for (hot, order) in [(0, None), (2, None), (2, Some(hottest.clone())), (10, None)] {
            for group in [2, 4] {
                let plan = ten_rows(&model, Lives::new(group, exchange), hot, order.clone());
                let outputs = run(4, &Options::default(), |world| {
                    let mut cpu = cpu();
                    let mut sharded = model.shard(world, &mut cpu, &plan)?;
                    let mut outputs = Vec::new();
                    for step in 1..=3 {
                        let (samples, ids) =
                            if world.rank() == 1 { (1, vec![5]) } else { (0, vec![]) };
                        let lengths = vec![1; samples];
                        let names = model.names();
                        let batch = Jagged::from_lengths(&names, samples, &lengths, ids, None)?;
                        let routed = sharded.route(batch.as_ref())?;
                        let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                        let output = pooled.output().to_vec();
                        let ones = vec![1.0; output.len()];
                        pooled.backward(&mut sharded, &mut cpu, &ones, 1.0, step)?;
                        outputs.extend(output);
                    }
                    Ok::<_, Error>(outputs)
                });
                let outputs = outputs.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
                let expected = [[0.0; 4], [-1.0; 4], [-2.0; 4]].concat();
                assert_eq!(outputs[1], expected, "{plan}");
            }
        }
    }
}

#[test]
fn u23_hot_and_cold_tiers_give_the_bits_of_one_table() {
    for (k, kind) in RuleKind::ALL.into_iter().enumerate() {
        let model = Model::new(&[(10, 6, 2)], kind, Pooling::Sum);
        let mut random = Random::new(23 + k as u64);
        let steps = batches(&model, &mut random, 200);
        let exchange = POOLED[k % POOLED.len()];
        let lives = Lives { blocks: 1 + k % 2, ..Lives::new([4, 2][k % 2], exchange) };
        // Sums that are the same in any order: nothing but hot rows is left to differ.
        let one = one_process(&model, &steps, Upstream::Exact);
        for (hot, ordered) in [(0, false), (2, false), (2, true), (10, true)] {
            let order = ordered.then(|| permutation(&mut random, 10));
            let plan = ten_rows(&model, lives, hot, order);
            let ranks = over_ranks(&model, &plan, &steps, Upstream::Exact);
            for rank in &ranks {
                assert!(bits(&rank.tables[0]) == bits(&one.tables[0]), "{kind}, {hot} hot\n{plan}");
            }
        }
    }
}

#[test]
fn u23_hot_and_cold_tiers_equal_one_table_whatever_the_order_of_sums() {
    for (k, exchange) in POOLED.into_iter().enumerate() {
        let kind = [RuleKind::AdaGrad, RuleKind::RowWiseAdaGrad][k % 2];
        let model = Model::new(&[(10, 6, 2)], kind, Pooling::Mean);
        let mut random = Random::new(k as u64);
        let steps = batches(&model, &mut random, 200);
        let one = one_process(&model, &steps, Upstream::Output);
        for hot in [0, 2, 10] {
            let order = Some(permutation(&mut random, 10));
            let plan = ten_rows(&model, Lives::new(4, exchange), hot, order);
            let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
            assert_near(&model, &ranks, &one, 1e-5, &format!("{kind}\n{plan}"));
        }
    }
}

#[test]
fn u23_a_row_that_becomes_cold_and_hot_again_keeps_its_state() {
    for (k, kind) in RuleKind::ALL.into_iter().enumerate() {
        let model = Model::new(&[(10, 6, 2)], kind, Pooling::Sum);
        let mut random = Random::new(k as u64);
        let steps = batches(&model, &mut random, 15);
        let one = one_process(&model, &steps, Upstream::Exact);
        let lives = Lives::new(4, POOLED[k % POOLED.len()]);
        let (hot, cold) = (ten_rows(&model, lives, 4, None), ten_rows(&model, lives, 1, None));
        let mut saved: Option<WholeTable> = None;
        for (part, plan) in [&hot, &cold, &hot].into_iter().enumerate() {
            let tables = run(4, &Options::default(), |world| {
                let mut cpu = cpu();
                let mut sharded = model.shard(world, &mut cpu, plan)?;
                if let Some(saved) = &saved {
                    sharded.load_table(&mut cpu, 0, saved)?;
                }
                for (number, batches) in steps.iter().enumerate().skip(5 * part).take(5) {
                    let (step, me) = (number as u64 + 1, world.rank());
                    let upstream = Upstream::Exact;
                    one_step(&model, &mut sharded, &mut cpu, (batches, me), upstream, step)?;
                }
                sharded.gather_table(&mut cpu, 0)
            });
            let tables = tables.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
            assert!(tables.iter().all(|table| bits(table) == bits(&tables[0])));
            saved = tables.into_iter().next();
        }
        let saved = saved.expect("three parts");
        assert!(bits(&saved) == bits(&one.tables[0]), "{kind}");
    }
}

/// A hot row and another, on two replicas or more: four ranks in groups of two.
fn hot_and_cold(model: &Model, sync: ReplicaSync) -> Vec<Plan> {
    let lives = |exchange| Lives { sync, ..Lives::new(2, exchange) };
    let mut order: Vec<u64> = (0..10).collect();
    // Row 3 is hot, row 0 isn't.
    order.swap(0, 3);
    POOLED.map(|exchange| ten_rows(model, lives(exchange), 1, Some(order.clone()))).to_vec()
}

#[test]
fn u45_replicas_of_hot_and_cold_rows_meet_in_the_middle() {
    let model = Model::new(&[(10, 2, 1)], RuleKind::AdaGrad, Pooling::Sum);
    // Weights and sums of replica A and of replica B.
    let rows = |weight: f32, sum: f32| WholeTable {
        weights: vec![weight; 20],
        state: vec![vec![sum; 20]],
    };
    for plan in
        [weights(100), touched_rows(100)].iter().flat_map(|&sync| hot_and_cold(&model, sync))
    {
        let tables = run(4, &Options::default(), |world| {
            let mut cpu = cpu();
            let mut sharded = model.shard(world, &mut cpu, &plan)?;
            // Groups of two: ranks 0 and 1, ranks 2 and 3.
            let start = if world.rank() < 2 { rows(1.0, 0.5) } else { rows(3.0, 1.0) };
            sharded.load_table(&mut cpu, 0, &start)?;
            // Rows 3 and 0 are touched and stay as they are.
            let batch = Jagged::from_lengths(&model.names(), 1, &[2], vec![3, 0], None)?;
            let routed = sharded.route(batch.as_ref())?;
            let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
            pooled.backward(&mut sharded, &mut cpu, &[0.0; 2], 1.0, 1)?;
            let before = sharded.gather_table(&mut cpu, 0)?;
            assert_eq!(before, start);
            sharded.sync(&mut cpu)?;
            sharded.gather_table(&mut cpu, 0)
        });
        for table in tables.unwrap_or_else(|failure| panic!("{failure}\n{plan}")) {
            for row in [0, 3] {
                assert_eq!(table.weights[2 * row..2 * row + 2], [2.0; 2], "row {row}\n{plan}");
                assert_eq!(table.state[0][2 * row..2 * row + 2], [0.75; 2], "row {row}\n{plan}");
            }
        }
    }
}

#[test]
fn u45_tiers_are_equal_after_every_third_step_and_when_told() {
    let model = Model::new(&[(10, 2, 1)], RuleKind::Adam, Pooling::Sum);
    for plan in [weights(3), touched_rows(3)].iter().flat_map(|&sync| hot_and_cold(&model, sync)) {
        let seen = run(4, &Options::default(), |world| {
            let mut cpu = cpu();
            let mut sharded = model.shard(world, &mut cpu, &plan)?;
            let mut tables = Vec::new();
            for step in 1..=7 {
                let ids = vec![3, world.rank() as i64];
                let batch = Jagged::from_lengths(&model.names(), 1, &[2], ids, None)?;
                let routed = sharded.route(batch.as_ref())?;
                let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                let gradient = [0.5, 1.0 + world.rank() as f32];
                pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, step)?;
                assert_eq!(sharded.unsynced_steps(), step % 3);
                tables.push(sharded.gather_table(&mut cpu, 0)?);
            }
            // As before a checkpoint, an evaluation or the end.
            sharded.sync(&mut cpu)?;
            let table = sharded.gather_table(&mut cpu, 0)?;
            let (mut weights, mut state) = (vec![0.0; 20], vec![vec![0.0; 20]; 2]);
            sharded.read_rows(&mut cpu, 0, 0, &mut weights, &mut state)?;
            if world.rank() == 0 {
                assert_eq!(WholeTable { weights, state }, table, "what is saved");
            }
            tables.push(table);
            Ok::<_, Error>(tables)
        });
        let seen = seen.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
        for (number, expected) in
            [false, false, true, false, false, true, false, true].iter().enumerate()
        {
            let all = seen.iter().map(|tables| bits(&tables[number]));
            let equal = all.clone().all(|table| table == bits(&seen[0][number]));
            assert_eq!(equal, *expected, "step {}\n{plan}", number + 1);
        }
    }
}
