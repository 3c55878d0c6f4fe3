//! A line of a list of tables: [`WorkloadRow`].

use super::spec::TableSpec;
use serde::{Deserialize, Serialize};

/// One table of one workload, as lists of published workloads have it: with the header
/// `workload,table,rows,dim,pooling` in CSV, with these keys in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadRow {
    /// Name of the workload.
    #[serde(deserialize_with = "name")]
    pub workload: String,
    /// Name of the table; a number is a name, too.
    #[serde(deserialize_with = "name")]
    pub table: String,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub dim: usize,
    /// Mean number of ids in a bag.
    pub pooling: f64,
}

impl From<WorkloadRow> for TableSpec {
    fn from(row: WorkloadRow) -> Self {
        Self { pooling_factor: row.pooling, ..Self::new(row.table, row.rows, row.dim) }
    }
}

/// Readers that guess types hand out the name `7` as a number.
fn name<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a name: text, or a whole number")]
    enum Name {
        Text(String),
        Number(u64),
    }
    Ok(match Name::deserialize(reader)? {
        Name::Text(text) => text,
        Name::Number(number) => number.to_string(),
    })
}
