//! Small tests with known values, each from a report about other software.

use emb_optim::{
    Decay, DenseOptimizer, Optimizer, OptimizerConfig, RuleKind, Schedule, limit_norm,
};

use crate::store::Store;

fn optimizer(config: OptimizerConfig) -> Optimizer {
    config.build().unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn close(got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() <= tolerance, "{got} is not {want}");
    }
}

/// Three look-ups of one row with gradient `[1, 2]` are one step with `[3, 6]`.
#[test]
fn u12_duplicates_are_one_step_with_the_summed_gradient() {
    for (kind, eps, want) in [
        (RuleKind::Sgd, None, [0.7, 0.4]),
        (RuleKind::AdaGrad, Some(0.0), [0.9, 0.9]),
        (RuleKind::RowWiseAdaGrad, Some(0.0), [0.936754, 0.873509]),
    ] {
        let config = OptimizerConfig { eps, ..OptimizerConfig::new(kind) };
        let mut store = Store::new(optimizer(config), 2, vec![1.0, 1.0]);
        store.step(0, 0.1, 1, &[3.0, 6.0]);
        close(store.row(0), &want, 1e-6);
    }
}

#[test]
fn u17_eps_is_added_after_the_square_root() {
    for kind in [RuleKind::AdaGrad, RuleKind::RowWiseAdaGrad] {
        let mut store = Store::new(Optimizer::new(kind), 1, vec![0.0]);
        store.step(0, 1.0, 1, &[1e-9]);
        // 1e-9 / (1e-9 + 1e-8); inside the root it would be 1e-5.
        close(store.row(0), &[-0.0909091], 1e-7);
    }
}

#[test]
fn u17_start_accumulator_counts() {
    for kind in [RuleKind::AdaGrad, RuleKind::RowWiseAdaGrad] {
        let config =
            OptimizerConfig { initial_accumulator: Some(0.1), ..OptimizerConfig::new(kind) };
        let mut store = Store::new(optimizer(config), 1, vec![0.0]);
        store.step(0, 1.0, 1, &[1.0]);
        close(store.row(0), &[-0.953463], 1e-6);
    }
}

#[test]
fn u17_dense_and_embedding_adagrad_have_the_same_defaults() {
    let embedding = Optimizer::new(RuleKind::AdaGrad);
    let dense = DenseOptimizer::new(embedding).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(dense.optimizer().to_string(), "adagrad eps=1e-8 initial_accumulator=0");
    assert_eq!(
        Optimizer::new(RuleKind::RowWiseAdaGrad).to_string(),
        "row-wise-adagrad eps=1e-8 initial_accumulator=0"
    );
    assert_eq!(Optimizer::new(RuleKind::Adam).to_string(), "adam eps=1e-8 beta1=0.9 beta2=0.999");
    let (mut rows, mut parameter) = (Store::new(embedding, 5, vec![0.5; 5]), [0.5_f32; 5]);
    let mut state = [9.0_f32; 5];
    dense.initialize(5, &mut state).unwrap_or_else(|e| panic!("{e}"));
    for step in 1..4 {
        let grad = [0.1, -0.2, 0.0, 3.0, 1e-9].map(|g: f32| g * step as f32);
        rows.step(0, 0.3, step, &grad);
        dense.step(0.3, step, &mut parameter, &mut state, &grad).unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(rows.row(0), parameter);
    assert_eq!(rows.slot("sum"), state);
}

/// Decay acts on touched rows only, whichever way it acts; rows without a gradient keep all bits.
#[test]
fn u18_decay_is_lazy() {
    for decay in [Decay::L2, Decay::Decoupled] {
        for kind in RuleKind::ALL {
            let config = OptimizerConfig {
                weight_decay: Some(0.1),
                decay: Some(decay),
                ..OptimizerConfig::new(kind)
            };
            let mut store = Store::new(optimizer(config), 1, vec![1.0, 1.0]);
            let before: Vec<f32> = store.slots.iter().map(|slot| slot[1]).collect();
            store.step(0, 1.0, 1, &[0.5]);
            let after: Vec<f32> = store.slots.iter().map(|slot| slot[1]).collect();
            assert_eq!((store.weights[1], after), (1.0, before), "{kind} {decay}");
            if kind == RuleKind::Sgd {
                close(store.row(0), &[0.4], 1e-6);
            }
        }
    }
}

/// Decoupled: first `w * (1 - lr * decay)`, then the step of the plain gradient, whose first Adam
/// step is `lr` long.
#[test]
fn u18_decoupled_decay_is_a_rule_of_its_own() {
    let config = |decay| OptimizerConfig {
        weight_decay: Some(0.1),
        decay: Some(decay),
        ..OptimizerConfig::new(RuleKind::Adam)
    };
    let mut decoupled = Store::new(optimizer(config(Decay::Decoupled)), 1, vec![1.0]);
    decoupled.step(0, 1.0, 1, &[0.5]);
    close(decoupled.row(0), &[1.0 - 0.1 - 1.0], 1e-6);
    close(decoupled.slot("exp_avg"), &[0.05], 1e-8);
    let mut l2 = Store::new(optimizer(config(Decay::L2)), 1, vec![1.0]);
    l2.step(0, 1.0, 1, &[0.5]);
    close(l2.row(0), &[0.0], 1e-6);
    close(l2.slot("exp_avg"), &[0.06], 1e-8);
}

#[test]
fn u19_adam_moments_do_not_depend_on_the_width() {
    for dim in [1, 3, 4, 8, 128] {
        let mut store = Store::new(Optimizer::new(RuleKind::Adam), dim, vec![0.0; dim]);
        let ones = vec![1.0; dim];
        store.step(0, 0.1, 1, &ones);
        close(store.row(0), &vec![-0.1; dim], 1e-6);
        close(store.slot("exp_avg"), &vec![0.1; dim], 1e-8);
        close(store.slot("exp_avg_sq"), &vec![0.001; dim], 1e-9);
        store.step(0, 0.1, 2, &ones);
        close(store.slot("exp_avg"), &vec![0.19; dim], 1e-7);
        close(store.slot("exp_avg_sq"), &vec![0.001999; dim], 1e-9);
    }
}

#[test]
fn u20_one_schedule_moves_rows_and_dense_parameters_alike() {
    let text = "piecewise lr=0.1 2=0.2 3=0.4";
    let sgd = Optimizer::new(RuleKind::Sgd);
    let dense = DenseOptimizer::new(sgd).unwrap_or_else(|e| panic!("{e}"));
    let mut row = Store::new(sgd, 1, vec![0.0]);
    let mut bias = [0.0_f32];
    let mut schedule: Schedule = text.parse().unwrap_or_else(|e| panic!("{e}"));
    for step in 1..=3 {
        if step == 3 {
            // A resumed run reads its schedule back from text and goes on with its step.
            schedule = schedule.to_string().parse().unwrap_or_else(|e| panic!("{e}"));
        }
        let lr = schedule.lr(step);
        row.step(0, lr, step, &[1.0]);
        dense.step(lr, step, &mut bias, &mut [], &[1.0]).unwrap_or_else(|e| panic!("{e}"));
    }
    close(row.row(0), &[-0.7], 1e-7);
    close(&bias, &[-0.7], 1e-7);
}

#[test]
fn max_norm_holds_after_every_step() {
    for kind in RuleKind::ALL {
        let config = OptimizerConfig { max_norm: Some(0.25), ..OptimizerConfig::new(kind) };
        let mut store = Store::new(optimizer(config), 33, vec![1.0; 33]);
        store.step(0, 0.1, 1, &[0.5; 33]);
        let norm = store.weights.iter().map(|w| f64::from(w * w)).sum::<f64>().sqrt();
        assert!((norm - 0.25).abs() < 1e-6, "{kind}: {norm}");
        let mut again = store.weights.clone();
        limit_norm(&mut again, Some(0.2500001));
        assert_eq!(again, store.weights, "{kind}");
    }
}

#[test]
fn nan_gradients_reach_the_weight_where_they_are_seen() {
    for kind in RuleKind::ALL {
        let mut store = Store::new(Optimizer::new(kind), 1, vec![1.0]);
        store.step(0, 0.1, 1, &[f32::NAN]);
        assert!(store.weights[0].is_nan(), "{kind}");
    }
}
