//! Replica rules against one process: what each of them promises, on replicas kept in one process.

use emb_optim::{
    Error, GroupGradient, Optimizer, OptimizerConfig, ReplicaRule, ReplicaScaling, ReplicaSync,
    RuleKind, fold_history, history_total,
};

use crate::store::Store;

const DIM: usize = 8;

fn optimizer(kind: RuleKind, replica: ReplicaScaling) -> Optimizer {
    OptimizerConfig { replica, ..OptimizerConfig::new(kind) }
        .build()
        .unwrap_or_else(|e| panic!("{e}"))
}

fn gradient(step: u64) -> [f32; DIM] {
    std::array::from_fn(|i| ((step * 31 + i as u64 * 7) as f32).sin())
}

/// Makes replicas equal by the rule that their optimizer names.
fn sync(replicas: &mut [Store]) {
    let mean = |values: Vec<&mut Vec<f32>>| {
        let count = values.len() as f32;
        let sum: Vec<f32> =
            (0..values[0].len()).map(|i| values.iter().map(|v| v[i]).sum()).collect();
        for values in values {
            values.iter_mut().zip(&sum).for_each(|(value, sum)| *value = sum / count);
        }
    };
    mean(replicas.iter_mut().map(|store| &mut store.weights).collect());
    match replicas[0].optimizer.replica_sync() {
        ReplicaSync::Gradients => panic!("exact replicas are never averaged"),
        ReplicaSync::Mean => {
            for slot in 0..replicas[0].slots.len() {
                mean(replicas.iter_mut().map(|store| &mut store.slots[slot]).collect());
            }
        }
        ReplicaSync::MeanWithHistory => {
            let locals: Vec<&[f32]> =
                replicas.iter().map(|store| store.slot("sum_local")).collect();
            let mut total = vec![0.0; locals[0].len()];
            history_total(&locals, &mut total).unwrap_or_else(|e| panic!("{e}"));
            for store in replicas {
                let [sum, local] = &mut store.slots[..] else { panic!("two slots") };
                fold_history(sum, local, &total).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}

/// A rare row: each step one replica alone sees it, with `M` times the global mean gradient.
/// Returns the replicas after their last sync, and one process on the same gradients.
fn rare_row(kind: RuleKind, rule: ReplicaRule, count: u32, every: u64) -> (Vec<Store>, Store) {
    let replica = ReplicaScaling::new(rule, count);
    let store = Store::new(optimizer(kind, replica), DIM, vec![0.5; DIM]);
    let mut replicas = vec![store; count as usize];
    let one_process = optimizer(kind, ReplicaScaling::default());
    let mut one = Store::new(one_process, DIM, vec![0.5; DIM]);
    for step in 1..=24 {
        let grad = gradient(step);
        one.step(0, 0.1, step, &grad);
        let who = (step % u64::from(count)) as usize;
        replicas[who].step(0, 0.1, step, &grad.map(|g| g * count as f32));
        if step % every == 0 {
            sync(&mut replicas);
        }
    }
    (replicas, one)
}

#[test]
fn plain_accumulators_grow_by_the_replicas_and_scaled_ones_do_not() {
    for kind in [RuleKind::AdaGrad, RuleKind::RowWiseAdaGrad] {
        for count in [2, 4, 8] {
            for (rule, ratio) in [
                (ReplicaRule::None, count as f32),
                (ReplicaRule::Moment, 1.0),
                (ReplicaRule::History, 1.0),
            ] {
                let (replicas, one) = rare_row(kind, rule, count, 1);
                for (got, want) in replicas[0].slot("sum").iter().zip(one.slot("sum")) {
                    let got = got / want;
                    assert!((got - ratio).abs() < 1e-4 * ratio, "{kind} {rule} M={count}: {got}");
                }
            }
        }
    }
}

#[test]
fn history_equals_one_process_where_one_replica_at_a_time_sees_a_row() {
    for kind in [RuleKind::AdaGrad, RuleKind::RowWiseAdaGrad] {
        for count in [1, 2, 3, 4, 8] {
            let (replicas, one) = rare_row(kind, ReplicaRule::History, count, 1);
            for (got, want) in replicas[0].weights.iter().zip(&one.weights) {
                assert!((got - want).abs() < 5e-6, "{kind} M={count}: {got} {want}");
            }
        }
    }
}

#[test]
fn history_keeps_the_accumulator_of_one_process_for_any_sync_interval() {
    for every in [1, 3, 8, 24] {
        let (replicas, one) = rare_row(RuleKind::RowWiseAdaGrad, ReplicaRule::History, 4, every);
        let (got, want) = (replicas[0].slot("sum")[0], one.slot("sum")[0]);
        assert!((got - want).abs() < 1e-4 * want, "every {every}: {got} {want}");
        for store in &replicas {
            assert_eq!(store.slot("sum_local"), [0.0]);
            assert_eq!(store.slot("sum")[0].to_bits(), got.to_bits());
        }
    }
}

/// `w` after averaging = `w - lr * mean over replicas of g_m`, exact for SGD.
#[test]
fn sgd_replicas_equal_one_process_with_mean_and_with_summed_gradients() {
    for count in [2_u32, 4, 8] {
        let summed = ReplicaScaling {
            gradients: GroupGradient::Sum,
            ..ReplicaScaling::new(ReplicaRule::Lr, count)
        };
        for (replica, scale) in
            [(ReplicaScaling::new(ReplicaRule::None, count), count as f32), (summed, 1.0)]
        {
            let store = Store::new(optimizer(RuleKind::Sgd, replica), DIM, vec![0.5; DIM]);
            let mut replicas = vec![store; count as usize];
            let one = Optimizer::new(RuleKind::Sgd);
            let mut one = Store::new(one, DIM, vec![0.5; DIM]);
            for step in 1..=10 {
                let mut total = [0.0; DIM];
                for (m, store) in replicas.iter_mut().enumerate() {
                    let part = gradient(step * 100 + m as u64).map(|g| g / count as f32);
                    total.iter_mut().zip(&part).for_each(|(total, g)| *total += g);
                    store.step(0, 0.1, step, &part.map(|g| g * scale));
                }
                one.step(0, 0.1, step, &total);
                sync(&mut replicas);
            }
            for (got, want) in replicas[0].weights.iter().zip(&one.weights) {
                assert!((got - want).abs() < 2e-6, "M={count}: {got} {want}");
            }
        }
    }
}

#[test]
fn exact_is_the_rule_of_one_process_bitwise() {
    for kind in RuleKind::ALL {
        let exact = optimizer(kind, ReplicaScaling::new(ReplicaRule::Exact, 8));
        assert_eq!(exact.replica_sync(), ReplicaSync::Gradients);
        assert_eq!(exact.rule(0.1, 7), Optimizer::new(kind).rule(0.1, 7));
    }
}

#[test]
fn history_refuses_slices_that_do_not_match_and_changes_nothing() {
    let (mut sum, mut local) = ([1.0_f32, 2.0], [3.0_f32, 4.0]);
    let error = fold_history(&mut sum, &mut local, &[1.0]).expect_err("too short");
    assert_eq!(error, Error::Length { what: "local_total", expected: 2, got: 1 });
    assert_eq!((sum, local), ([1.0, 2.0], [3.0, 4.0]));
    let error = history_total(&[&[1.0, 2.0], &[1.0]], &mut sum).expect_err("too short");
    assert_eq!(error.to_string(), "sum_local: expected 2 values, got 1");
    assert_eq!(sum, [1.0, 2.0]);
}
