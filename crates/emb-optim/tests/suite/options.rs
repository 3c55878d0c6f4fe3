//! What is refused, in which words, and that the documentation's table says the same.

use std::fmt::Write as _;

use emb_optim::{
    Decay, DenseOptimizer, Error, GroupGradient, Optimizer, OptimizerConfig, ReplicaRule,
    ReplicaScaling, RuleKind, Schedule,
};

type Change = fn(&mut OptimizerConfig);
type Set = fn(&mut OptimizerConfig, f64);

/// Every option, set to a value that is valid where the option is.
const OPTIONS: [(&str, Change); 14] = [
    ("`eps`", |c| c.eps = Some(1e-6)),
    ("`beta1`", |c| c.beta1 = Some(0.8)),
    ("`beta2`", |c| c.beta2 = Some(0.99)),
    ("`initial_accumulator`", |c| c.initial_accumulator = Some(0.1)),
    ("`weight_decay`, `decay = l2`", |c| (c.weight_decay, c.decay) = (Some(0.1), Some(Decay::L2))),
    ("`weight_decay`, `decay = decoupled`", |c| {
        (c.weight_decay, c.decay) = (Some(0.1), Some(Decay::Decoupled));
    }),
    ("`max_gradient`", |c| c.max_gradient = Some(1.0)),
    ("`max_norm`", |c| c.max_norm = Some(1.0)),
    ("replica rule `none`", |c| c.replica = ReplicaScaling::new(ReplicaRule::None, 4)),
    ("replica rule `moment`", |c| c.replica = ReplicaScaling::new(ReplicaRule::Moment, 4)),
    ("replica rule `lr`", |c| c.replica = ReplicaScaling::new(ReplicaRule::Lr, 4)),
    ("replica rule `lr`, summed gradients", |c| {
        c.replica = ReplicaScaling::new(ReplicaRule::Lr, 4);
        c.replica.gradients = GroupGradient::Sum;
    }),
    ("replica rule `history`", |c| c.replica = ReplicaScaling::new(ReplicaRule::History, 4)),
    ("replica rule `exact`", |c| c.replica = ReplicaScaling::new(ReplicaRule::Exact, 4)),
];

fn with(kind: RuleKind, change: Change) -> OptimizerConfig {
    let mut config = OptimizerConfig::new(kind);
    change(&mut config);
    config
}

#[test]
fn options_table_of_the_documentation_is_what_the_code_does() {
    let mut table = String::from("| option |");
    for kind in RuleKind::ALL {
        write!(table, " `{kind}` |").expect("a string");
    }
    table.push_str(" dense |\n|---|---|---|---|---|---|---|\n");
    for (name, change) in OPTIONS {
        write!(table, "| {name} |").expect("a string");
        for kind in RuleKind::ALL {
            let built = with(kind, change).build();
            table.push_str(if built.is_ok() { " yes |" } else { " refused |" });
        }
        let dense = [RuleKind::Sgd, RuleKind::AdaGrad, RuleKind::Adam]
            .into_iter()
            .filter_map(|kind| with(kind, change).build().ok())
            .any(|optimizer| DenseOptimizer::new(optimizer).is_ok());
        table.push_str(if dense { " yes |\n" } else { " refused |\n" });
    }
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&table), "README.md should contain:\n{table}");
}

/// An option that is accepted changes what the rule does: nothing is taken and then ignored.
#[test]
fn every_accepted_option_changes_the_rule_or_its_start() {
    for (name, change) in OPTIONS {
        for kind in RuleKind::ALL {
            let Ok(optimizer) = with(kind, change).build() else { continue };
            let plain = Optimizer::new(kind);
            let starts = |o: &Optimizer| -> Vec<f32> {
                o.slots().iter().map(|&slot| o.initial_state(slot)).collect()
            };
            let differs = optimizer.rule(0.5, 2) != plain.rule(0.5, 2)
                || starts(&optimizer) != starts(&plain);
            // `none` and `exact` are the rule of one process by definition.
            let expected = !matches!(name, "replica rule `none`" | "replica rule `exact`");
            assert_eq!(differs, expected, "{kind} {name}");
        }
    }
}

#[test]
fn refusals_name_rule_option_and_remedy() {
    let mut messages = String::new();
    for (_, change) in OPTIONS {
        for kind in RuleKind::ALL {
            if let Err(error) = with(kind, change).build() {
                writeln!(messages, "{error}").expect("a string");
            }
        }
    }
    let expected = "\
rule sgd does not take eps: it has no denominator
rule sgd does not take beta1: it keeps no moving average of the gradient
rule adagrad does not take beta1: it keeps no moving average of the gradient
rule row-wise-adagrad does not take beta1: it keeps no moving average of the gradient
rule sgd does not take beta2: it keeps no moving average of the squared gradient
rule adagrad does not take beta2: it keeps no moving average of the squared gradient
rule row-wise-adagrad does not take beta2: it keeps no moving average of the squared gradient
rule sgd does not take initial_accumulator: it keeps no sum of squares
rule adam does not take initial_accumulator: it keeps no sum of squares
rule row-wise-adam does not take initial_accumulator: it keeps no sum of squares
rule sgd does not take replica rule moment: it keeps no sum of squares; use none or exact
rule sgd does not take replica rule lr: mean gradients need no other learning rate; use none
rule adam does not take replica rule lr: its moments are moving averages; use none, moment or exact
rule row-wise-adam does not take replica rule lr: its moments are moving averages; use none, moment or exact
rule adagrad does not take replica rule lr with summed gradients: adaptive rules are defined on mean gradients
rule row-wise-adagrad does not take replica rule lr with summed gradients: adaptive rules are defined on mean gradients
rule adam does not take replica rule lr with summed gradients: adaptive rules are defined on mean gradients
rule row-wise-adam does not take replica rule lr with summed gradients: adaptive rules are defined on mean gradients
rule sgd does not take replica rule history: it keeps no sum of squares; use none or exact
rule adam does not take replica rule history: its moments are moving averages; use none, moment or exact
rule row-wise-adam does not take replica rule history: its moments are moving averages; use none, moment or exact
";
    assert_eq!(messages, expected);
}

#[test]
fn contradictions_are_refused() {
    let refused =
        |kind, change: Change| with(kind, change).build().expect_err("refused").to_string();
    assert_eq!(
        refused(RuleKind::Adam, |c| c.weight_decay = Some(0.1)),
        "weight_decay cannot stand without decay: say decay = l2 or decay = decoupled"
    );
    assert_eq!(
        refused(RuleKind::Adam, |c| c.decay = Some(Decay::L2)),
        "decay cannot stand without weight_decay: say how strong it is"
    );
    assert_eq!(
        refused(RuleKind::AdaGrad, |c| {
            (c.weight_decay, c.decay) = (Some(0.1), Some(Decay::L2));
            c.replica = ReplicaScaling::new(ReplicaRule::Lr, 2);
        }),
        "weight_decay cannot stand with replica rule lr: \
         the decay would be multiplied by the replicas too"
    );
    assert_eq!(
        refused(RuleKind::Sgd, |c| c.replica.gradients = GroupGradient::Sum),
        "rule sgd does not take replica rule none with summed gradients: \
         averaging would divide the step by the replicas; use lr"
    );
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    let options: [(&str, Set); 7] = [
        ("eps", |c, x| c.eps = Some(x)),
        ("beta1", |c, x| c.beta1 = Some(x)),
        ("beta2", |c, x| c.beta2 = Some(x)),
        ("initial_accumulator", |c, x| {
            (c.kind, c.initial_accumulator) = (RuleKind::AdaGrad, Some(x));
        }),
        ("weight_decay", |c, x| (c.weight_decay, c.decay) = (Some(x), Some(Decay::L2))),
        ("max_gradient", |c, x| c.max_gradient = Some(x)),
        ("max_norm", |c, x| c.max_norm = Some(x)),
    ];
    for (name, set) in options {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-3, -1e-300, 1e39] {
            let mut config = OptimizerConfig::new(RuleKind::Adam);
            set(&mut config, bad);
            match config.build() {
                Err(Error::OutOfRange { option, value, valid }) => {
                    assert_eq!(option, name);
                    assert_eq!(value.to_bits(), bad.to_bits());
                    assert!(!valid.is_empty());
                }
                other => panic!("{name} = {bad}: {other:?}"),
            }
        }
    }
    let message =
        |change: Change| with(RuleKind::Adam, change).build().expect_err("refused").to_string();
    assert_eq!(message(|c| c.beta2 = Some(1.0)), "beta2 is 1, valid: 0 or more, below 1 in f32");
    // Rounds to 1 as f32.
    assert!(message(|c| c.beta2 = Some(0.999_999_999)).starts_with("beta2 is 0.999999999,"));
    assert_eq!(message(|c| c.max_norm = Some(0.0)), "max_norm is 0, valid: above 0, finite in f32");
    assert_eq!(message(|c| c.replica.replicas = 0), "replicas is 0, valid: 1 or more");
}

#[test]
fn dense_optimizers_refuse_what_speaks_of_rows() {
    let refused = |kind, change: Change| {
        let optimizer = with(kind, change).build().unwrap_or_else(|e| panic!("{e}"));
        DenseOptimizer::new(optimizer).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(RuleKind::RowWiseAdaGrad, |_| ()),
        "rule row-wise-adagrad does not take a dense parameter: it has no rows; use adagrad"
    );
    assert_eq!(
        refused(RuleKind::RowWiseAdam, |_| ()),
        "rule row-wise-adam does not take a dense parameter: it has no rows; use adam"
    );
    assert_eq!(
        refused(RuleKind::Adam, |c| c.max_norm = Some(1.0)),
        "rule adam does not take max_norm on a dense parameter: it has no rows"
    );
    assert_eq!(
        refused(RuleKind::Sgd, |c| c.max_gradient = Some(1.0)),
        "rule sgd does not take max_gradient on a dense parameter: \
         the clamp acts on the gradients of bags before they are summed"
    );
    assert_eq!(
        refused(RuleKind::AdaGrad, |c| c.replica = ReplicaScaling::new(ReplicaRule::Moment, 2)),
        "rule adagrad does not take replicas on a dense parameter: \
         its gradient is summed over the whole world"
    );
}

#[test]
fn dense_steps_of_wrong_lengths_write_nothing() {
    let dense = DenseOptimizer::new(Optimizer::new(RuleKind::Adam)).expect("valid");
    let (mut parameter, mut state) = ([1.0_f32; 3], [0.0_f32; 6]);
    let error = dense.step(0.1, 1, &mut parameter, &mut state, &[1.0; 2]).expect_err("short");
    assert_eq!(error.to_string(), "dense gradient: expected 3 values, got 2");
    let error = dense.step(0.1, 1, &mut parameter, &mut state[..5], &[1.0; 3]).expect_err("short");
    assert_eq!(error.to_string(), "dense state: expected 6 values, got 5");
    assert_eq!((parameter, state), ([1.0; 3], [0.0; 6]));
}

#[test]
fn names_round_trip_and_unknown_ones_are_refused() {
    for kind in RuleKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for rule in ReplicaRule::ALL {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    for decay in [Decay::L2, Decay::Decoupled] {
        assert_eq!(decay.to_string().parse(), Ok(decay));
    }
    assert_eq!(
        "lamb".parse::<RuleKind>().expect_err("unknown").to_string(),
        "unknown update rule \"lamb\", known: sgd, adagrad, row-wise-adagrad, adam, row-wise-adam"
    );
}

#[test]
fn steps_are_counted_from_one() {
    for kind in RuleKind::ALL {
        let rule = std::panic::catch_unwind(|| Optimizer::new(kind).rule(0.1, 0));
        assert!(rule.is_err(), "{kind}");
    }
    let lr = std::panic::catch_unwind(|| Schedule::constant(0.1).map(|schedule| schedule.lr(0)));
    assert!(lr.is_err());
}

#[test]
fn only_max_norm_needs_whole_rows() {
    for (name, change) in OPTIONS {
        for kind in RuleKind::ALL {
            let Ok(optimizer) = with(kind, change).build() else { continue };
            assert_eq!(optimizer.needs_whole_row(), name == "`max_norm`", "{kind} {name}");
            assert_eq!(optimizer.rule(0.1, 1).needs_whole_row(), optimizer.needs_whole_row());
        }
    }
}
