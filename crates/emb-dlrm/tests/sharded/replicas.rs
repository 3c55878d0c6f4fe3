//! 2D: replicas that average weights.

use crate::equality::steps;
use crate::support::{
    Model, Random, Upstream, assert_near, assert_replicas_equal, bits, cases, one_process,
    over_ranks,
};
use emb_kernels::{Jagged, Pooling};
use emb_optim::{ReplicaRule, ReplicaScaling, RuleKind};
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, PlanBuilder, ReplicaSync, RowCut};
use std::num::NonZeroU32;

pub(crate) fn weights(every: u32) -> ReplicaSync {
    ReplicaSync::Weights { every: NonZeroU32::new(every).expect("a period") }
}

pub(crate) fn touched_rows(every: u32) -> ReplicaSync {
    ReplicaSync::TouchedRows { every: NonZeroU32::new(every).expect("a period") }
}

fn placements() -> [Placement; 3] {
    [
        Placement::TableWise { owner: None },
        Placement::RowWise { cut: RowCut::Modulo },
        Placement::ColumnWise { parts: None },
    ]
}

#[test]
fn averaged_weights_of_sgd_equal_one_process() {
    for seed in 0..cases(16) {
        let mut random = Random::new(seed);
        let model =
            Model::new(&[(37, 10, 2), (5, 3, 1), (60, 64, 1)], RuleKind::Sgd, Pooling::Mean);
        let (group, replicas) = (1 + random.below(4) as u32, 2 + random.below(3) as u32);
        let layout = random.pick(&[Layout::Strided, Layout::Contiguous]);
        let mesh = Mesh::new(group * replicas, group, layout).expect("a mesh");
        let mut builder = PlanBuilder::new(mesh).table("t1", Placement::DataParallel);
        for name in ["t0", "t2"] {
            let placement = random.pick(&placements());
            builder = builder.table(
                name,
                PlaceOptions { sync: Some(weights(1)), ..PlaceOptions::from(placement) },
            );
        }
        let plan = builder.build(&model.tables()).expect("a plan");
        let steps = steps(&model, &mut random, plan.world() as usize, 50, seed % 2 == 0);
        let one = one_process(&model, &steps, Upstream::Output);
        let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
        assert_near(&model, &ranks, &one, 1e-5, &format!("seed {seed}\n{plan}"));
        assert_replicas_equal(&ranks, &format!("seed {seed}"));
    }
}

#[test]
fn replicas_of_every_rule_are_bitwise_equal_after_a_sync() {
    for (k, kind) in RuleKind::ALL.into_iter().enumerate() {
        for (l, layout) in [Layout::Strided, Layout::Contiguous].into_iter().enumerate() {
            let mut model = Model::new(&[(37, 10, 2), (3, 3, 1), (20, 64, 1)], kind, Pooling::Sum);
            model.specs[2].dtype = emb_kernels::Dtype::Bf16;
            let mesh = Mesh::new(6, [2, 3][(k + l) % 2], layout).expect("a mesh");
            let mut builder = PlanBuilder::new(mesh);
            for (spec, placement) in model.specs.iter().zip(placements()) {
                let options = PlaceOptions { sync: Some(weights(3)), ..placement.into() };
                builder = builder.table(spec.name.clone(), options);
            }
            let plan = builder.build(&model.tables()).expect("a plan");
            let steps = steps(&model, &mut Random::new(k as u64), 6, 8, false);
            let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
            assert_replicas_equal(&ranks, &format!("{kind}, {layout:?}"));
        }
    }
}

#[test]
fn a_table_larger_than_one_round_of_a_sync_is_averaged_whole() {
    // 20,000 rows of 64 weights and a sum: more than 2^20 elements on each replica.
    let shapes = [(20_000, 64, 1), (1, 3, 1), (9000, 200, 1)];
    let model = Model::new(&shapes, RuleKind::RowWiseAdaGrad, Pooling::Sum);
    let mesh = Mesh::new(2, 1, Layout::Strided).expect("a mesh");
    let options = PlaceOptions { sync: Some(weights(2)), ..Placement::DataParallel.into() };
    let plan = PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan");
    let mut random = Random::new(11);
    let steps: Vec<_> = (0..3).map(|_| model.batches(&mut random, &[300, 200], false)).collect();
    let ranks = over_ranks(&model, &plan, &steps, Upstream::Given);
    assert_replicas_equal(&ranks, "two replicas");
    // Rows nobody touched are those of one process.
    let one = one_process(&model, &steps, Upstream::Given);
    for (got, expected) in [0, 2].map(|t| (&ranks[0].tables[t], &one.tables[t])) {
        let same = got.weights.iter().zip(&expected.weights).filter(|(a, b)| a == b).count();
        assert!(same > 0 && same < got.weights.len());
    }
}

#[test]
fn touched_rows_alone_give_the_bits_of_whole_tables() {
    for (k, kind) in RuleKind::ALL.into_iter().enumerate() {
        for (l, layout) in [Layout::Strided, Layout::Contiguous].into_iter().enumerate() {
            let mut model =
                Model::new(&[(300, 10, 2), (3, 3, 1), (90, 64, 1)], kind, Pooling::Mean);
            model.specs[2].dtype = emb_kernels::Dtype::F16;
            let mesh = Mesh::new(6, [2, 3][(k + l) % 2], layout).expect("a mesh");
            let mut random = Random::new(k as u64);
            let steps = steps(&model, &mut random, 6, 8, k % 2 == 0);
            let run = |sync: ReplicaSync| {
                let mut builder = PlanBuilder::new(mesh);
                for (spec, placement) in model.specs.iter().zip(placements()) {
                    let options = PlaceOptions { sync: Some(sync), ..placement.into() };
                    builder = builder.table(spec.name.clone(), options);
                }
                let plan = builder.build(&model.tables()).expect("a plan");
                over_ranks(&model, &plan, &steps, Upstream::Output)
            };
            let (touched, whole) = (run(touched_rows(3)), run(weights(3)));
            assert_replicas_equal(&touched, &format!("{kind}, {layout:?}"));
            for (touched, whole) in touched.iter().zip(&whole) {
                for (touched, whole) in touched.tables.iter().zip(&whole.tables) {
                    assert!(bits(touched) == bits(whole), "{kind}, {layout:?}");
                }
            }
        }
    }
}

/// With replica rule `history` a row that one replica alone touches takes the steps of one process:
/// its square is counted in one-process units, and the mean of the replicas' steps is that step.
#[test]
fn history_of_rows_with_one_replica_each_equals_one_process() {
    for kind in [RuleKind::AdaGrad, RuleKind::RowWiseAdaGrad] {
        for (k, placement) in placements().into_iter().enumerate() {
            for sync in [weights(1), touched_rows(1)] {
                let one_model = Model::new(&[(40, 10, 1), (40, 3, 1)], kind, Pooling::Sum);
                let mut model = one_model.clone();
                for spec in &mut model.specs {
                    let mut config = *spec.optimizer.config();
                    config.replica = ReplicaScaling::new(ReplicaRule::History, 2);
                    spec.optimizer = config.build().expect("valid");
                }
                let mesh = Mesh::new(4, 2, Layout::Strided).expect("a mesh");
                let options = PlaceOptions { sync: Some(sync), ..placement.into() };
                let plan =
                    PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan");
                // Group `g` of two: ranks g and g + 2. Its rows are those with the parity of g.
                let mut random = Random::new(k as u64);
                let mut bag = |rank: usize| {
                    let id = |_| (2 * random.below(20) + rank % 2) as i64;
                    (0..6).map(id).collect::<Vec<_>>()
                };
                let mut batch = |rank: usize| {
                    let ids = [bag(rank), bag(rank)].concat();
                    Jagged::from_lengths(&model.names(), 2, &[3; 4], ids, None).expect("a batch")
                };
                let steps: Vec<Vec<_>> =
                    (0..50).map(|_| (0..4).map(&mut batch).collect()).collect();
                let mut one = one_process(&one_model, &steps, Upstream::Output);
                // Nothing is left in the slot of the replica alone.
                for table in &mut one.tables {
                    table.state.push(vec![0.0; table.state[0].len()]);
                }
                let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
                assert_near(&model, &ranks, &one, 1e-5, &format!("{kind}, {placement:?}"));
                assert_replicas_equal(&ranks, &format!("{kind}, {placement:?}"));
            }
        }
    }
}
