//! Dense parameter updates.
use crate::Result;
use emb_optim::{RowRule, RowState, Rule, RuleVisitor, Statistic};

pub(crate) fn dense_update(
    _threads: usize,
    rule: &Rule,
    parameter: &mut [f32],
    state: &mut [f32],
    gradient: &[f32],
) -> Result<()> {
    struct Step<'a>(&'a mut [f32], &'a mut [f32], &'a [f32]);
    impl RuleVisitor for Step<'_> {
        type Output = ();
        fn visit<R: RowRule>(self, rule: R) {
            let state = RowState { row: &mut [], element: self.1 };
            rule.step(self.0, state, self.2, Statistic { total: 0.0, dim: 1 });
        }
    }
    rule.visit(Step(parameter, state, gradient));
    Ok(())
}
