//! The look-ups that a run expects, from a file of `emb profile`.

use super::file::json_file;
use super::nearest::nearest;
use super::{Options, Tables};
use crate::{Error, Result};
use emb_shard::WorkloadSpec;

/// The workload of `--workload`, which speaks of every table of the run.
///
/// # Errors
/// An option without effect; a file that can't be read, by line and column; a table that it does not
/// speak of, with the nearest, or has with other rows.
pub(super) fn workload(options: &Options, tables: &Tables) -> Result<Option<WorkloadSpec>> {
    let Some(path) = &options.workload else { return Ok(None) };
    if options.health.unwrap_or(0) == 0 && options.planner.is_none() {
        let what = "--workload has no effect: give --planner NAME, or --health N";
        return Err(Error::Config(what.into()));
    }
    let spec: WorkloadSpec = json_file(path)?;
    let refuse = |what| Err(Error::Config(format!("--workload {}: {what}", path.display())));
    let names: Vec<&str> = spec.tables.iter().map(|table| table.name.as_str()).collect();
    for table in &tables.tables {
        let (name, rows, dim) = (&table.spec.name, table.spec.rows, table.spec.dim);
        let Some(found) = spec.tables.iter().find(|table| table.name == *name) else {
            let near = nearest(name, &names);
            let near = near.map_or_else(String::new, |near| format!("; the nearest is {near:?}"));
            return refuse(format!("nothing is measured of table {name:?}{near}"));
        };
        if found.rows != rows {
            let measured = found.rows;
            return refuse(format!("table {name:?} has {measured} rows there, {rows} in this run"));
        }
        if found.dim != dim {
            let planned = found.dim;
            return refuse(format!("table {name:?} has dim {planned} there, {dim} in this run"));
        }
    }
    Ok(Some(spec))
}
