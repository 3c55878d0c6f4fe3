//! Whether tables are those that a plan was made for.

use super::{Plan, fingerprint};
use crate::{Error, Result, Table};
use std::collections::HashMap;
use std::fmt::Display;

impl Plan {
    /// Checks that `tables` are those the plan was made for, in the same order.
    ///
    /// # Errors
    /// By name: tables that the plan lacks or that the model lacks, and a table whose rows,
    /// columns, stored bytes, pooling or features differ; else a differing order, by fingerprint.
    pub fn check_tables(&self, tables: &[Table]) -> Result<()> {
        let given = fingerprint(tables);
        if given == self.fingerprint {
            return Ok(());
        }
        let mut by_name: HashMap<&str, &Table> =
            tables.iter().map(|table| (table.name(), table)).collect();
        let mut unknown = Vec::new();
        for plan in self.tables.tables().as_slice() {
            match by_name.remove(plan.name()) {
                Some(given) => same_table(plan, given)?,
                None => unknown.push(plan.name().to_owned()),
            }
        }
        if !by_name.is_empty() {
            let mut missing: Vec<String> = by_name.into_keys().map(str::to_owned).collect();
            missing.sort_unstable();
            return Err(Error::TablesMissing { tables: missing });
        }
        if !unknown.is_empty() {
            return Err(Error::TablesUnknown { tables: unknown });
        }
        Err(Error::Fingerprint { plan: self.fingerprint, given })
    }
}

fn same_table(plan: &Table, given: &Table) -> Result<()> {
    let name = plan.name();
    same(name, "rows", &plan.rows(), &given.rows())?;
    same(name, "columns", &plan.dim(), &given.dim())?;
    same(name, "bytes a weight", &plan.element_bytes(), &given.element_bytes())?;
    let pooling = |table: &Table| format!("{:?}", table.pooling());
    same(name, "pooling", &pooling(plan), &pooling(given))?;
    same(name, "features", &plan.features().join(", "), &given.features().join(", "))
}

/// An error that names the table and both values unless they are equal.
pub(super) fn same<T: PartialEq + Display>(
    table: &str,
    what: &'static str,
    plan: &T,
    given: &T,
) -> Result<()> {
    if plan == given {
        return Ok(());
    }
    let (plan, given) = (plan.to_string(), given.to_string());
    Err(Error::TableDiffers { table: table.to_owned(), what, plan, given })
}
