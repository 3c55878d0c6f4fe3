//! What an update asks its rules before it starts, whatever the backend.

use crate::shape::same;
use crate::{Error, Result, TableSpec};
use emb_optim::{RowRule, Rule, RuleVisitor};

/// Checks that there is one rule a table, with the state that the table has.
pub(crate) fn check_rules(
    operation: &'static str,
    specs: &[TableSpec],
    rules: &[Rule],
) -> Result<()> {
    same(operation, "rules, one for each table", specs.len(), rules.len())?;
    for (spec, rule) in specs.iter().zip(rules) {
        if rule.slots() != spec.optimizer.slots() {
            return Err(Error::BadTable {
                table: spec.name.clone(),
                what: format!(
                    "a rule with state {:?}, but the table was made with {:?}",
                    rule.slots(),
                    spec.optimizer.slots()
                ),
            });
        }
    }
    Ok(())
}

/// Refuses rules that need more of a row than its columns here, where an update is one call.
pub(crate) fn refuse_column_cuts(specs: &[TableSpec], rules: &[Rule]) -> Result<()> {
    refuse(
        specs,
        rules,
        |rule| uses_statistic(rule) || rule.needs_whole_row(),
        "the rule needs whole rows: use row_gradients and apply",
    )
}

/// Refuses rules that need all columns of a row at once where they are not here.
pub(crate) fn refuse_whole_rows(specs: &[TableSpec], rules: &[Rule]) -> Result<()> {
    refuse(specs, rules, Rule::needs_whole_row, "the rule needs all at once")
}

fn refuse(
    specs: &[TableSpec],
    rules: &[Rule],
    needs_more: impl Fn(&Rule) -> bool,
    why: &str,
) -> Result<()> {
    for (spec, rule) in specs.iter().zip(rules) {
        let whole = spec.window.table_dim;
        if whole != spec.dim && needs_more(rule) {
            return Err(Error::BadTable {
                table: spec.name.clone(),
                what: format!("{} of {whole} columns are here and {why}", spec.dim),
            });
        }
    }
    Ok(())
}

/// See [`RowRule::uses_statistic`].
pub(crate) fn uses_statistic(rule: &Rule) -> bool {
    struct Ask;
    impl RuleVisitor for Ask {
        type Output = bool;
        fn visit<R: RowRule>(self, rule: R) -> bool {
            rule.uses_statistic()
        }
    }
    rule.visit(Ask)
}

/// See [`RowRule::max_gradient`].
pub(crate) fn max_gradient(rule: &Rule) -> Option<f32> {
    struct Ask;
    impl RuleVisitor for Ask {
        type Output = Option<f32>;
        fn visit<R: RowRule>(self, rule: R) -> Option<f32> {
            rule.max_gradient()
        }
    }
    rule.visit(Ask)
}
