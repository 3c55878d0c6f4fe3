//! What `docs/replica-scaling.md` says of the replica-scaling rules, small enough for every build.

#[path = "../examples/replica_scaling/study.rs"]
mod study;

use emb_dlrm::config::{ModelKind, OptimizerKind, ScalingKind};
use study::{Apart, Setup, distance, norm};

const REPLICAS: u32 = 4;

/// 102,400 samples in 100 steps.
fn setup() -> Setup {
    Setup {
        tables: 4,
        rows_per_table: 5000,
        dim: 8,
        model: ModelKind::DlrmDcn,
        batch: 1024,
        steps: 100,
        eval_samples: 20_000,
        seed: 1,
        optimizer: OptimizerKind::RowWiseAdaGrad,
        lr: 0.02,
        dense_lr: 0.02,
        initial_accumulator: None,
        warm_up: 20,
    }
}

#[test]
fn rules_lie_apart_from_one_process_in_the_documented_order() {
    let setup = setup();
    let (one, start) = (setup.one_process().expect("a run"), setup.start().expect("weights"));
    let teacher = setup.teacher().expect("samples").expect("two classes");
    // The run has learned something, and there is something left to learn.
    assert!(teacher < one.ne && one.ne < 0.97, "teacher {teacher}, one process {}", one.ne);
    let apart = |rule| {
        let run = setup.replicated(REPLICAS, rule).expect("a run");
        Apart::new(&run, &one, &start)
    };
    let (none, moment) = (apart(ScalingKind::None), apart(ScalingKind::Moment));
    let (history, exact) = (apart(ScalingKind::History), apart(ScalingKind::Exact));
    let all = format!("none {none:?}\nmoment {moment:?}\nhistory {history:?}\nexact {exact:?}");
    assert!(exact.ne_percent.abs() < 0.05, "{all}");
    assert!(exact.distance < 0.1 * history.distance, "{all}");
    assert!(history.distance < moment.distance && moment.distance < none.distance, "{all}");
    assert!(history.of_the_way < moment.of_the_way && moment.of_the_way < none.of_the_way, "{all}");
    // A replica's squares are about M times too large, and larger still where rows lag behind.
    let ratio = |apart: Apart| apart.accumulated.expect("a rule that accumulates");
    assert!(ratio(none) > 0.5 * f64::from(REPLICAS), "{all}");
    for apart in [moment, history, exact] {
        assert!((0.5..1.5).contains(&ratio(apart)), "{all}");
    }
}

/// With empty accumulators a replica's first step does not depend on the size of its gradient, and
/// `history` makes it `M` times as long as that of one process where all replicas touch the row: why
/// the order above needs a warm-up.
#[test]
fn the_first_step_of_history_is_that_of_lr() {
    let setup = Setup { steps: 1, warm_up: 0, ..setup() };
    let (one, start) = (setup.one_process().expect("a run"), setup.start().expect("weights"));
    let run = |rule| setup.replicated(REPLICAS, rule).expect("a run");
    let (history, lr) = (run(ScalingKind::History), run(ScalingKind::Lr));
    let way = distance(&one.weights, &start);
    assert!(distance(&history.weights, &lr.weights) < 0.01 * way);
    assert!(distance(&history.weights, &start) > 1.2 * way);
    let exact = run(ScalingKind::Exact);
    assert!(distance(&exact.weights, &one.weights) < 1e-4 * way);
}

/// Squares over `M` inside the root, or the rate times `sqrt(M)`: the same but for `eps`.
#[test]
fn moment_is_none_at_the_root_of_m_times_the_rate() {
    let setup = Setup { steps: 5, warm_up: 0, ..setup() };
    let moment = setup.replicated(REPLICAS, ScalingKind::Moment).expect("a run");
    let faster = Setup { lr: setup.lr * f64::from(REPLICAS).sqrt(), ..setup };
    let none = faster.replicated(REPLICAS, ScalingKind::None).expect("a run");
    let way = distance(&moment.weights, &setup.start().expect("weights"));
    let apart = distance(&moment.weights, &none.weights) / way;
    assert!(apart < 0.01, "{apart}");
}

/// Gradients at scale `1 / B` and `M` times the rate: the mean of the replicas is the one step.
#[test]
fn sgd_on_summed_gradients_with_rule_lr_equals_one_process() {
    let setup = Setup { optimizer: OptimizerKind::Sgd, lr: 2.0, steps: 50, warm_up: 0, ..setup() };
    let (one, start) = (setup.one_process().expect("a run"), setup.start().expect("weights"));
    let run = setup.replicated(REPLICAS, ScalingKind::Lr).expect("a run");
    for (t, (got, expected)) in run.weights.iter().zip(&one.weights).enumerate() {
        let (got, expected) = (std::slice::from_ref(got), std::slice::from_ref(expected));
        let apart = distance(got, expected) / norm(expected);
        assert!(apart <= 1e-5, "table {t} is {apart:e} apart");
        let way = distance(expected, &start[t..=t]) / norm(expected);
        assert!(way > 0.01, "table {t} went {way:e}");
    }
    let apart = Apart::new(&run, &one, &start);
    assert!(apart.ne_percent.abs() < 1e-3 && apart.accumulated.is_none(), "{apart:?}");
}
