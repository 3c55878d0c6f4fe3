//! A workload as JSON that a person can read: one line for each table.

use crate::{Error, Result};
use emb_shard::WorkloadSpec;

/// The workload as a file; every JSON reader reads it back.
///
/// # Errors
/// Numbers that JSON has no words for (a pooling factor that is not finite).
///
/// # Panics
/// Never: a workload ends with its tables.
pub fn workload_text(spec: &WorkloadSpec) -> Result<String> {
    let failed = |error| Error::Config(format!("workload {:?}: {error}", spec.name));
    let head = WorkloadSpec { tables: Vec::new(), ..spec.clone() };
    let head = serde_json::to_string_pretty(&head).map_err(failed)?;
    let head = head
        .strip_suffix("[]\n}")
        .expect("invariant: the tables are the last of what a workload says");
    let tables = spec
        .tables
        .iter()
        .map(|table| serde_json::to_string(table).map(|line| format!("    {line}")))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    Ok(format!("{head}[\n{}\n  ]\n}}\n", tables.join(",\n")))
}
