use super::*;
use crate::{
    Decay, Extent, OptimizerConfig, ReplicaRule, ReplicaScaling, RuleKind, RuleVisitor, Slot,
};

struct Laws;

impl RuleVisitor for Laws {
    type Output = Result<(), LawBroken>;

    fn visit<R: RowRule>(self, rule: R) -> Self::Output {
        row_rule(rule)
    }
}

#[test]
fn every_rule_of_this_crate_keeps_the_laws_under_every_option() {
    let mut tried = 0;
    for kind in RuleKind::ALL {
        for eps in [None, Some(0.0)] {
            for decay in [None, Some(Decay::L2), Some(Decay::Decoupled)] {
                for replica in ReplicaRule::ALL {
                    for max_norm in [None, Some(0.5)] {
                        let config = OptimizerConfig {
                            eps,
                            decay,
                            weight_decay: decay.map(|_| 0.01),
                            max_norm,
                            replica: ReplicaScaling::new(replica, 4),
                            ..OptimizerConfig::new(kind)
                        };
                        let Ok(optimizer) = config.build() else { continue };
                        for step in [1, 1000] {
                            let result = optimizer.rule(0.1, step).visit(Laws);
                            assert_eq!(result, Ok(()), "{optimizer} step {step}");
                            tried += 1;
                        }
                    }
                }
            }
        }
    }
    // A count, so that a change in what is refused cannot empty this test.
    assert_eq!(tried, 24 + 2 * 104 + 2 * 72);
}

/// A rule with one defect, chosen by name.
#[derive(Clone, Copy)]
struct Defective(&'static str);

impl RowRule for Defective {
    fn slots(&self) -> &'static [Slot] {
        const S: Slot = Slot { name: "s", extent: Extent::Row };
        if self.0 == "names" { &[S, S] } else { &[S] }
    }

    fn uses_statistic(&self) -> bool {
        self.0 != "unused"
    }

    fn max_gradient(&self) -> Option<f32> {
        (self.0 == "clamp").then_some(-1.0)
    }

    fn statistic(&self, _row: &[f32], grad: &[f32]) -> f64 {
        match self.0 {
            "nothing" => 1.0,
            "root" => crate::sum_of_squares(grad).sqrt(),
            _ => crate::sum_of_squares(grad),
        }
    }

    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], statistic: Statistic) {
        let part = if self.0 == "local" { row.len() } else { statistic.dim } as f64;
        state.row[0] += (statistic.total / part) as f32;
        for (w, &g) in row.iter_mut().zip(grad) {
            let divisor = if self.0 == "divide" { state.row[0].sqrt() } else { 1.0 + state.row[0] };
            *w -= g / divisor;
        }
    }
}

#[test]
fn each_law_catches_a_rule_that_breaks_it() {
    assert_eq!(row_rule(Defective("nothing wrong")), Ok(()));
    for (defect, law) in [
        ("names", "slots have names of their own"),
        ("clamp", "a clamp is positive and finite"),
        ("nothing", "zero columns are fine"),
        ("root", "the statistic adds up over column cuts"),
        ("unused", "an unused statistic is ignored"),
        ("local", "column cuts step like the whole row"),
        ("divide", "finite stays finite"),
    ] {
        let broken = row_rule(Defective(defect)).expect_err(defect);
        assert_eq!(broken.law, law, "{broken}");
    }
}
