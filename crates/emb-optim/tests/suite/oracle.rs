//! Every rule against a naive `f64` version of its textbook formula.

use emb_optim::{Decay, Optimizer, OptimizerConfig, ReplicaRule, ReplicaScaling, RuleKind};
use proptest::prelude::*;

use crate::store::Store;

/// One row in `f64`. The formulas are written as in the literature, with the decayed gradient used
/// everywhere, not in the rearranged form of the rules.
struct Oracle {
    optimizer: Optimizer,
    w: Vec<f64>,
    m: Vec<f64>,
    v: Vec<f64>,
}

impl Oracle {
    fn new(optimizer: Optimizer, w: &[f32]) -> Self {
        let start = optimizer.config().initial_accumulator.unwrap_or(0.0);
        let w: Vec<f64> = w.iter().map(|&w| f64::from(w)).collect();
        Self { optimizer, m: vec![0.0; w.len()], v: vec![start; w.len()], w }
    }

    fn step(&mut self, lr: f64, t: u64, grad: &[f32]) {
        let config = *self.optimizer.config();
        let dim = self.w.len();
        let replicas = f64::from(config.replica.replicas);
        let (lr, squares) = match config.replica.rule {
            ReplicaRule::Lr => (lr * replicas, 1.0),
            ReplicaRule::Moment => (lr, 1.0 / replicas),
            // Without a sync both parts of the history are one sum.
            ReplicaRule::History => (lr, 1.0 / replicas / replicas),
            ReplicaRule::None | ReplicaRule::Exact => (lr, 1.0),
        };
        let strength = config.weight_decay.unwrap_or(0.0);
        let mut h: Vec<f64> = grad.iter().map(|&g| f64::from(g)).collect();
        if config.decay == Some(Decay::L2) {
            h.iter_mut().zip(&self.w).for_each(|(h, w)| *h += strength * w);
        }
        if config.decay == Some(Decay::Decoupled) {
            self.w.iter_mut().for_each(|w| *w *= 1.0 - lr * strength);
        }
        let mean = h.iter().map(|h| h * h).sum::<f64>() / dim as f64;
        let (beta1, beta2) = self.optimizer.betas();
        let eps = self.optimizer.eps();
        for (i, &h) in h.iter().enumerate() {
            let (m, v) = (&mut self.m[i], &mut self.v[i]);
            let row_wise = matches!(config.kind, RuleKind::RowWiseAdaGrad | RuleKind::RowWiseAdam);
            let square = squares * if row_wise { mean } else { h * h };
            let update = match config.kind {
                RuleKind::Sgd => h,
                RuleKind::AdaGrad | RuleKind::RowWiseAdaGrad => {
                    *v += square;
                    h / (v.sqrt() + eps)
                }
                RuleKind::Adam | RuleKind::RowWiseAdam => {
                    *m = beta1 * *m + (1.0 - beta1) * h;
                    *v = beta2 * *v + (1.0 - beta2) * square;
                    let m = *m / (1.0 - beta1.powf(t as f64));
                    let v = *v / (1.0 - beta2.powf(t as f64));
                    m / (v.sqrt() + eps)
                }
            };
            self.w[i] -= lr * update;
        }
        if let Some(limit) = config.max_norm {
            let norm = self.w.iter().map(|w| w * w).sum::<f64>().sqrt();
            if norm > limit {
                self.w.iter_mut().for_each(|w| *w *= limit / norm);
            }
        }
    }
}

/// Weights in `[-1, 1]`; gradients of magnitude 0.1 to 1, so that a decayed gradient does not cancel.
fn row(dim: usize) -> impl Strategy<Value = Vec<f32>> {
    proptest::collection::vec(-1.0_f32..1.0, dim)
}

fn gradient(dim: usize) -> impl Strategy<Value = Vec<f32>> {
    // Not a range of `f32`: of one whose lower end is no multiple of the upper end's last place,
    // proptest 1.12 draws once in tens of millions a number below it, and panics.
    let element = (0.1_f64..1.0, any::<bool>())
        .prop_map(|(g, minus)| if minus { -g as f32 } else { g as f32 });
    proptest::collection::vec(element, dim)
}

fn case() -> impl Strategy<Value = (Vec<f32>, Vec<Vec<f32>>)> {
    (1_usize..=1280).prop_flat_map(|dim| (row(dim), proptest::collection::vec(gradient(dim), 1..5)))
}

/// Options that every rule is run with, as far as it has them.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    eps: Option<f64>,
    decay: Option<(Decay, f64)>,
    max_norm: Option<f64>,
    start: Option<f64>,
}

fn options() -> impl Strategy<Value = Options> {
    let eps = prop_oneof![Just(0.0), Just(1e-8), Just(1e-2)];
    let decay = prop_oneof![Just(Decay::L2), Just(Decay::Decoupled)];
    (
        proptest::option::of(eps),
        proptest::option::of((decay, 0.001_f64..0.05)),
        proptest::option::of(0.5_f64..5.0),
        proptest::option::of(0.0_f64..0.5),
    )
        .prop_map(|(eps, decay, max_norm, start)| Options { eps, decay, max_norm, start })
}

fn check(
    kind: RuleKind,
    replica: ReplicaRule,
    (w, grads): (Vec<f32>, Vec<Vec<f32>>),
    options: Options,
    (lr, first_step): (f64, u64),
) -> Result<(), TestCaseError> {
    let config = OptimizerConfig {
        eps: options.eps.filter(|_| kind.has_eps()),
        initial_accumulator: options.start.filter(|_| kind.has_accumulator()),
        weight_decay: options.decay.map(|(_, strength)| strength),
        decay: options.decay.map(|(decay, _)| decay),
        max_norm: options.max_norm,
        replica: ReplicaScaling::new(replica, 4),
        ..OptimizerConfig::new(kind)
    };
    let optimizer = config.build().map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut oracle = Oracle::new(optimizer, &w);
    let mut store = Store::new(optimizer, w.len(), w);
    for (i, grad) in grads.iter().enumerate() {
        store.step(0, lr, first_step + i as u64, grad);
        oracle.step(lr, first_step + i as u64, grad);
    }
    for (i, (got, want)) in store.weights.iter().zip(&oracle.w).enumerate() {
        let error = (f64::from(*got) - want).abs();
        prop_assert!(error <= 2e-6 * want.abs().max(1.0), "{optimizer}: column {i}: {got} {want}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn sgd_is_its_formula(case in case(), options in options(), lr in 0.001_f64..0.5) {
        check(RuleKind::Sgd, ReplicaRule::None, case, options, (lr, 1))?;
    }

    #[test]
    fn adagrad_is_its_formula(case in case(), options in options(), lr in 0.001_f64..0.5) {
        check(RuleKind::AdaGrad, ReplicaRule::None, case, options, (lr, 1))?;
    }

    #[test]
    fn rowwise_adagrad_is_its_formula(case in case(), options in options(), lr in 0.001_f64..0.5) {
        check(RuleKind::RowWiseAdaGrad, ReplicaRule::None, case, options, (lr, 1))?;
    }

    #[test]
    fn adam_is_its_formula(
        case in case(),
        options in options(),
        lr in 0.001_f64..0.1,
        first in prop_oneof![Just(1_u64), Just(50), Just(100_000)],
    ) {
        check(RuleKind::Adam, ReplicaRule::None, case, options, (lr, first))?;
    }

    #[test]
    fn rowwise_adam_is_its_formula(
        case in case(),
        options in options(),
        lr in 0.001_f64..0.1,
        first in prop_oneof![Just(1_u64), Just(50), Just(100_000)],
    ) {
        check(RuleKind::RowWiseAdam, ReplicaRule::None, case, options, (lr, first))?;
    }

    #[test]
    fn replica_rules_are_their_formulas(
        case in case(),
        lr in 0.001_f64..0.05,
        (kind, rule) in prop_oneof![
            Just((RuleKind::AdaGrad, ReplicaRule::Moment)),
            Just((RuleKind::AdaGrad, ReplicaRule::Lr)),
            Just((RuleKind::AdaGrad, ReplicaRule::History)),
            Just((RuleKind::RowWiseAdaGrad, ReplicaRule::Moment)),
            Just((RuleKind::RowWiseAdaGrad, ReplicaRule::Lr)),
            Just((RuleKind::RowWiseAdaGrad, ReplicaRule::History)),
            Just((RuleKind::Adam, ReplicaRule::Moment)),
            Just((RuleKind::RowWiseAdam, ReplicaRule::Moment)),
        ],
    ) {
        check(kind, rule, case, Options { start: Some(0.1), ..Options::default() }, (lr, 1))?;
    }
}
