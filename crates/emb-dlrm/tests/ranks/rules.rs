//! Update rules with all their options, and 16-bit weights, over ranks.

use crate::support::{Folder, assert_near, criteo, feature, options, outcome, table, trained};
use emb_dlrm::config::{
    DecayKind, FeatureOptions, ModelKind, OptimizerKind, Options, PoolingKind, RoundingMode,
    SyncKind, WeightType,
};

const PLANS: [(u32, &str, Option<u32>); 6] = [
    (2, "table-wise", None),
    (3, "row-wise", None),
    (4, "column-wise", None),
    (4, "data-parallel", None),
    (4, "row-wise", Some(2)),
    (8, "table-wise", Some(4)),
];

fn over(alone: &Options, (world, plan, replicas): (u32, &str, Option<u32>)) -> Options {
    let sync = replicas.map(|_| SyncKind::Gradients);
    Options { world: Some(world), plan: Some(plan.into()), replicas, sync, ..alone.clone() }
}

/// Bags of some ids, sums and means, so that a bag has several owners.
fn bags() -> Options {
    let features = [("a", "a", PoolingKind::Sum), ("b", "b", PoolingKind::Mean)];
    let features = features.into_iter().chain([("c", "a", PoolingKind::Mean)]);
    let features = features.map(|(name, table, pooling)| FeatureOptions {
        bag: Some(3.0),
        ..feature(name, table, pooling)
    });
    Options {
        table: vec![table("a", 60, 4), table("b", 30, 4)],
        feature: features.collect(),
        steps: Some(50),
        batch_size: Some(12),
        lr: Some(0.05),
        ..options("synthetic".as_ref(), ModelKind::Dlrm)
    }
}

#[test]
fn decay_and_schedules_equal_one_process() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(200, 1));
    for (rule, decay) in [
        (OptimizerKind::Sgd, DecayKind::L2),
        (OptimizerKind::RowWiseAdaGrad, DecayKind::L2),
        (OptimizerKind::RowWiseAdaGrad, DecayKind::Decoupled),
        (OptimizerKind::RowWiseAdam, DecayKind::Decoupled),
    ] {
        let alone = Options {
            optimizer: Some(rule),
            decay: Some(decay),
            weight_decay: Some(0.01),
            initial_accumulator: Some(0.1),
            lr: Some(0.02),
            lr_warmup: Some(5),
            lr_decay: Some("poly:10:60:2".into()),
            steps: Some(50),
            ..options(&data, ModelKind::DlrmDcn)
        };
        let one = outcome(alone.clone());
        for plan in PLANS {
            let case = format!("{rule}, {decay}, {plan:?}");
            assert_near(&outcome(over(&alone, plan)), &one, 1e-5, &case);
        }
    }
}

#[test]
fn clamped_gradients_equal_one_process() {
    for limit in [1e-3, 1e-2] {
        let alone = Options { max_gradient: Some(limit), ..bags() };
        let alone = Options { initial_accumulator: Some(0.1), ..alone };
        let one = trained(alone.clone());
        for plan in PLANS {
            let case = format!("max gradient {limit}, {plan:?}");
            assert_near(&trained(over(&alone, plan)), &one, 1e-5, &case);
        }
    }
}

#[test]
fn bounded_rows_equal_one_process() {
    let alone = Options { max_norm: Some(0.2), initial_accumulator: Some(0.1), ..bags() };
    let one = trained(alone.clone());
    for plan in PLANS.into_iter().filter(|(_, plan, _)| *plan != "column-wise") {
        assert_near(&trained(over(&alone, plan)), &one, 1e-5, &format!("{plan:?}"));
    }
}

#[test]
fn tables_with_rules_and_rates_of_their_own_equal_one_process() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(200, 1));
    let mut alone = Options {
        initial_accumulator: Some(0.1),
        steps: Some(50),
        ..options(&data, ModelKind::DlrmDcn)
    };
    let rules = [OptimizerKind::Adam, OptimizerKind::Sgd, OptimizerKind::RowWiseAdaGrad];
    for ((table, rule), lr) in alone.table.iter_mut().zip(rules).zip([0.003, 0.2, 0.05]) {
        (table.optimizer, table.lr) = (Some(rule), Some(lr));
    }
    let one = outcome(alone.clone());
    for plan in PLANS {
        assert_near(&outcome(over(&alone, plan)), &one, 1e-5, &format!("{plan:?}"));
    }
}

#[test]
fn sixteen_bits_stay_near_one_process() {
    for weights in [WeightType::Bf16, WeightType::F16] {
        for rounding in [RoundingMode::Nearest, RoundingMode::Stochastic] {
            let alone = Options {
                weight_type: Some(weights),
                rounding: Some(rounding),
                initial_accumulator: Some(0.1),
                ..bags()
            };
            let one = trained(alone.clone());
            for plan in PLANS {
                // A sum that differs by a bit may be rounded to the other neighbour; rows rounded
                // by other random numbers would be apart by some thousandths.
                let case = format!("{weights}, {rounding}, {plan:?}");
                assert_near(&trained(over(&alone, plan)), &one, 1e-3, &case);
            }
        }
    }
}

#[test]
fn threads_of_a_rank_change_no_bit() {
    let alone = Options { initial_accumulator: Some(0.1), steps: Some(20), ..bags() };
    for plan in PLANS {
        let with = |threads| {
            let options = Options { threads_per_rank: Some(threads), ..over(&alone, plan) };
            trained(options).bytes
        };
        assert!(with(1) == with(3), "{plan:?}");
    }
}
