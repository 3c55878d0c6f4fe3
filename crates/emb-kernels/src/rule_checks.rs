//! What an update asks its rules before it starts, whatever the backend.

use crate::rules::{Facts, Rules};
use crate::shape::same;
use crate::{Error, Result, TableSpec};

/// Checks that there is one rule a table, with the state that the table has.
pub(crate) fn check_rules(
    operation: &'static str,
    specs: &[TableSpec],
    rules: &(impl Rules + ?Sized),
) -> Result<()> {
    same(operation, "rules, one for each table", specs.len(), rules.count())?;
    for (t, spec) in specs.iter().enumerate() {
        let (slots, wanted) = (rules.facts(t).slots, spec.optimizer.slots());
        if slots != wanted {
            return Err(Error::BadTable {
                table: spec.name.clone(),
                what: format!(
                    "a rule with state {slots:?}, but the table was made with {wanted:?}"
                ),
            });
        }
    }
    Ok(())
}

/// Refuses rules that need more of a row than its columns here, where an update is one call.
pub(crate) fn refuse_column_cuts(specs: &[TableSpec], rules: &(impl Rules + ?Sized)) -> Result<()> {
    let why = "the rule needs whole rows: use row_gradients and apply";
    refuse(specs, rules, |rule| rule.uses_statistic || rule.needs_whole_row, why)
}

/// Refuses rules that need all columns of a row at once where they are not here.
pub(crate) fn refuse_whole_rows(specs: &[TableSpec], rules: &(impl Rules + ?Sized)) -> Result<()> {
    refuse(specs, rules, |rule| rule.needs_whole_row, "the rule needs all at once")
}

fn refuse(
    specs: &[TableSpec],
    rules: &(impl Rules + ?Sized),
    needs_more: impl Fn(Facts) -> bool,
    why: &str,
) -> Result<()> {
    for (t, spec) in specs.iter().enumerate() {
        let whole = spec.window.table_dim;
        if whole != spec.dim && needs_more(rules.facts(t)) {
            return Err(Error::BadTable {
                table: spec.name.clone(),
                what: format!("{} of {whole} columns are here and {why}", spec.dim),
            });
        }
    }
    Ok(())
}
