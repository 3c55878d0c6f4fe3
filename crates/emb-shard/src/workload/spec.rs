//! A workload as a file says it: [`WorkloadSpec`].

use super::row::WorkloadRow;
use super::types::{Batch, DenseModel, DenseTime, IdType, ValueType};
use crate::nearest::unknown;
use crate::{Access, Error, Pooling, Result, StateBytes, Table, TableOptions};
use serde::{Deserialize, Serialize};

/// What a [`Workload`](crate::Workload) is made of, not yet checked.
///
/// ```
/// let text = r#"{
///     "name": "clicks", "batch": { "per_rank": 512 },
///     "rows": "f32", "ids": "i64", "outputs": "bf16",
///     "state": { "per_row": 4, "per_element": 0 },
///     "dense": { "flops_per_sample": 2e7 },
///     "access": { "zipf": { "exponent": 1.05 } },
///     "tables": [
///         { "name": "ads", "rows": 10000000, "dim": 64, "pooling_factor": 20 },
///         { "name": "day", "rows": 7, "dim": 64, "access": "uniform" }
///     ]
/// }"#;
/// let workload: emb_shard::Workload = serde_json::from_str(text)?;
/// assert_eq!(workload.batch().global(8)?, 4096);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Name, for messages.
    pub name: String,
    /// Samples of a step.
    pub batch: Batch,
    /// Type of stored weights: `f32`, `f16` or `bf16`.
    #[serde(default)]
    pub rows: ValueType,
    /// Type of ids.
    #[serde(default)]
    pub ids: IdType,
    /// Bytes of the length of a bag, which travels to every owner with the bag's ids; 0 where
    /// lengths are not counted, as in the published figures of `EMBark`.
    #[serde(default = "length_bytes")]
    pub length_bytes: u8,
    /// Type of rows and pooled sums on the wire.
    #[serde(default)]
    pub outputs: ValueType,
    /// Type of their gradients on the wire; `None` for that of `outputs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradients: Option<ValueType>,
    /// Type of weights that replicas send each other directly to average them, and of gradients to
    /// sum them: `f32`, `f16` or `bf16`; `None` for `f32`. Optimizer state travels unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced: Option<ValueType>,
    /// Optimizer state of every table.
    #[serde(default)]
    pub state: StateBytes,
    /// Time of the dense model.
    #[serde(default)]
    pub dense: DenseTime,
    /// Memory and gradients of the dense model.
    #[serde(default)]
    pub dense_model: DenseModel,
    /// How look-ups spread over the rows of tables that do not say so themselves.
    #[serde(default)]
    pub access: Access,
    /// The tables.
    pub tables: Vec<TableSpec>,
}

/// A table of a [`WorkloadSpec`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Name, unique in the workload.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub dim: usize,
    /// Mean number of ids in a bag of one of its features.
    #[serde(default = "one")]
    pub pooling_factor: f64,
    /// How its features pool bags.
    #[serde(default)]
    pub pooling: Pooling,
    /// The features that look rows up; `None` for one named like the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// How look-ups spread over its rows; `None` for what the workload says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Its most frequent rows, the most frequent first, as far as they are known; `None` where
    /// nobody knows which they are. They tell a plan which rows its tiers for hot rows have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<Vec<u64>>,
}

fn one() -> f64 {
    1.0
}

/// As `emb train` sends them: in 64 bits.
fn length_bytes() -> u8 {
    8
}

impl WorkloadSpec {
    /// A workload without tables: `f32` rows and outputs, 64-bit ids, no optimizer state, no dense
    /// time, uniform access.
    pub fn new(name: impl Into<String>, batch: Batch) -> Self {
        Self {
            name: name.into(),
            batch,
            rows: ValueType::default(),
            ids: IdType::default(),
            length_bytes: length_bytes(),
            outputs: ValueType::default(),
            gradients: None,
            synced: None,
            state: StateBytes::default(),
            dense: DenseTime::default(),
            dense_model: DenseModel::default(),
            access: Access::default(),
            tables: Vec::new(),
        }
    }

    /// The workload named `name` among `rows`, lists of tables of any number of workloads; all
    /// else as [`WorkloadSpec::new`] has it.
    ///
    /// # Errors
    /// A name that no row has, with the nearest one that there is.
    pub fn from_rows(
        name: &str,
        batch: Batch,
        rows: impl IntoIterator<Item = WorkloadRow>,
    ) -> Result<Self> {
        let mut spec = Self::new(name, batch);
        let mut others: Vec<String> = Vec::new();
        for row in rows {
            if row.workload == name {
                spec.tables.push(row.into());
            } else if others.last() != Some(&row.workload) {
                others.push(row.workload);
            }
        }
        if spec.tables.is_empty() {
            others.sort_unstable();
            others.dedup();
            let known: Vec<&str> = others.iter().map(String::as_str).collect();
            let what = unknown(name, &known);
            return Err(Error::BadWorkload { workload: name.to_owned(), what });
        }
        Ok(spec)
    }
}

impl TableSpec {
    /// A table that one feature of its name looks up, one id a bag, summed.
    pub fn new(name: impl Into<String>, rows: u64, dim: usize) -> Self {
        Self {
            name: name.into(),
            rows,
            dim,
            pooling_factor: one(),
            pooling: Pooling::default(),
            features: None,
            access: None,
            hot: None,
        }
    }

    pub(super) fn table(&self, workload: &WorkloadSpec) -> Result<Table> {
        let options = TableOptions {
            element_bytes: workload.rows.bytes(),
            state: workload.state,
            pooling: self.pooling,
            pooling_factor: self.pooling_factor,
            features: self.features.clone(),
        };
        Table::new(&self.name, self.rows, self.dim, options)
    }
}
