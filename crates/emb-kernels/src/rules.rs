//! The rules of one update, one a table: those of emb-optim, or a user's own.

use emb_optim::{RowRule, Rule, RuleVisitor, Slot};

/// What an update asks of a rule before it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// See [`RowRule::slots`].
    pub(crate) slots: &'static [Slot],
    /// See [`RowRule::uses_statistic`].
    pub(crate) uses_statistic: bool,
    /// See [`RowRule::needs_whole_row`].
    pub(crate) needs_whole_row: bool,
    /// See [`RowRule::max_gradient`].
    pub(crate) max_gradient: Option<f32>,
}

/// One rule a table; kernels are generic over the concrete one, which they are visited with.
pub(crate) trait Rules: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Calls `visitor` with the rule of `table`.
    fn visit<V: RuleVisitor>(&self, table: usize, visitor: V) -> V::Output;

    /// What the rule of `table` says of itself.
    fn facts(&self, table: usize) -> Facts {
        struct Ask;
        impl RuleVisitor for Ask {
            type Output = Facts;
            fn visit<R: RowRule>(self, rule: R) -> Facts {
                Facts {
                    slots: rule.slots(),
                    uses_statistic: rule.uses_statistic(),
                    needs_whole_row: rule.needs_whole_row(),
                    max_gradient: rule.max_gradient(),
                }
            }
        }
        self.visit(table, Ask)
    }
}

impl Rules for [Rule] {
    fn count(&self) -> usize {
        self.len()
    }

    fn visit<V: RuleVisitor>(&self, table: usize, visitor: V) -> V::Output {
        self[table].visit(visitor)
    }
}

/// Rules of a user's own type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a, R>(pub(crate) &'a [R]);

impl<R: RowRule> Rules for Own<'_, R> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn visit<V: RuleVisitor>(&self, table: usize, visitor: V) -> V::Output {
        visitor.visit(self.0[table])
    }
}
