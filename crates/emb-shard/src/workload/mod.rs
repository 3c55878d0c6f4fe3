//! What a run asks for: [`Workload`], tables with the look-ups of a batch, and the dense model.
//!
//! ```text
//!   WorkloadRow  workload,table,rows,dim,pooling   a line of a list of tables (CSV, JSON lines)
//!        |
//!   WorkloadSpec  name, batch, types, tables       a file (JSON, TOML), or made in code
//!        | checked
//!   Workload --> Tables           what plans are made of
//!            --> RowFrequencies   how often each row is looked up, by table
//!            --> Batch, DenseTime, ValueType, IdType
//! ```

mod row;
mod spec;
mod types;

pub use row::WorkloadRow;
pub use spec::{TableSpec, WorkloadSpec};
pub use types::{Batch, DenseModel, DenseTime, IdType, ValueType};

use crate::{Error, Id, Result, RowFrequencies, RowOrder, TableId, Tables, TypedVec};
use serde::{Deserialize, Serialize};

/// Tables, who looks up which of their rows, and the rest of a training step; checked.
///
/// ```
/// use emb_shard::{Access, Batch, TableId, TableSpec, Workload, WorkloadSpec};
///
/// let mut spec = WorkloadSpec::new("two tables", Batch::Global(65_536));
/// spec.access = Access::Zipf { exponent: 1.05 };
/// spec.tables = vec![TableSpec::new("ads", 10_000_000, 64), TableSpec::new("users", 90_000, 64)];
/// spec.tables[0].pooling_factor = 20.0;
/// let workload = Workload::new(spec)?;
///
/// // A quarter of the batch looks up 327,680 rows of "ads", fewer than half of them distinct.
/// let ads = TableId::new(0);
/// let lookups = workload.lookups(ads, 65_536 / 4)?;
/// assert_eq!(lookups, 327_680.0);
/// assert!(workload.frequencies()[ads].expected_unique(lookups)? < lookups / 2.0);
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WorkloadSpec", into = "WorkloadSpec")]
pub struct Workload {
    spec: WorkloadSpec,
    tables: Tables,
    frequencies: TypedVec<TableId, RowFrequencies>,
}

impl Workload {
    /// Checks what `spec` says.
    ///
    /// # Errors
    /// By table: what [`Table::new`](crate::Table::new), [`Tables::new`] and
    /// [`RowFrequencies::new`] refuse, hot rows beyond the table or listed twice. By workload: no name, no tables, an empty batch, rows stored
    /// as 8-bit integers, a time of the dense model that is negative or not finite.
    pub fn new(spec: WorkloadSpec) -> Result<Self> {
        if let Some(what) = fault(&spec) {
            return Err(Error::BadWorkload { workload: spec.name, what });
        }
        let tables = spec.tables.iter().map(|table| table.table(&spec));
        let tables = Tables::new(tables.collect::<Result<_>>()?)?;
        let frequencies = spec.tables.iter().map(|table| {
            let access = table.access.as_ref().unwrap_or(&spec.access);
            RowFrequencies::new(access, table.rows).map_err(|error| Error::BadTable {
                table: table.name.clone(),
                what: error.to_string(),
            })
        });
        let frequencies = TypedVec::new(frequencies.collect::<Result<_>>()?)?;
        for table in &spec.tables {
            let Some(hot) = &table.hot else { continue };
            let bad = |error: Error| Error::BadTable {
                table: table.name.clone(),
                what: error.to_string(),
            };
            RowOrder::hot_first(table.rows, hot.clone()).map_err(bad)?;
        }
        Ok(Self { spec, tables, frequencies })
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The tables, with the bytes of stored weights and of optimizer state.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// How often the rows of every table are looked up.
    pub fn frequencies(&self) -> &TypedVec<TableId, RowFrequencies> {
        &self.frequencies
    }

    /// The most frequent rows of a table, the most frequent first, as far as they are known;
    /// `None` where nobody knows which they are, or there is no such table.
    pub fn hot_rows(&self, table: TableId) -> Option<&[u64]> {
        self.spec.tables.get(table.index())?.hot.as_deref()
    }

    /// Samples of a step.
    pub fn batch(&self) -> Batch {
        self.spec.batch
    }

    /// Type of stored weights.
    pub fn rows(&self) -> ValueType {
        self.spec.rows
    }

    /// Type of ids, in memory and on the wire.
    pub fn ids(&self) -> IdType {
        self.spec.ids
    }

    /// Type of rows and pooled sums on the wire.
    pub fn outputs(&self) -> ValueType {
        self.spec.outputs
    }

    /// Type of their gradients on the wire.
    pub fn gradients(&self) -> ValueType {
        self.spec.gradients.unwrap_or(self.spec.outputs)
    }

    /// Type of weights that replicas send each other directly to average them, and of gradients to
    /// sum them.
    pub fn synced(&self) -> ValueType {
        self.spec.synced.unwrap_or_default()
    }

    /// Bytes of the length of a bag on the wire; 0 where they are not counted.
    pub fn length_bytes(&self) -> u8 {
        self.spec.length_bytes
    }

    /// Memory and gradients of the dense model.
    pub fn dense_model(&self) -> DenseModel {
        self.spec.dense_model
    }

    /// Time of the dense model.
    pub fn dense(&self) -> DenseTime {
        self.spec.dense
    }

    /// Mean number of rows of `table` that all its features look up for `samples` samples.
    ///
    /// # Errors
    /// A table that is not there.
    pub fn lookups(&self, table: TableId, samples: u64) -> Result<f64> {
        Ok(self.tables.tables().get(table)?.lookups() * samples as f64)
    }
}

fn fault(spec: &WorkloadSpec) -> Option<String> {
    if spec.name.is_empty() {
        return Some("needs a name".into());
    }
    if spec.tables.is_empty() {
        return Some("has no tables".into());
    }
    if let Batch::Global(0) | Batch::PerRank(0) = spec.batch {
        return Some("a batch of 0 samples: must be at least 1".into());
    }
    for (what, value) in [("rows", spec.rows), ("synced", spec.synced.unwrap_or_default())] {
        if !value.is_stored() {
            let name = serde_name(value);
            return Some(format!("{what} of {name}: weights are stored as f32, f16 or bf16"));
        }
    }
    let (DenseTime::SecondsPerSample(value) | DenseTime::FlopsPerSample(value)) = spec.dense;
    if !(value.is_finite() && value >= 0.0) {
        return Some(format!("a dense model of {value} a sample: must be finite and at least 0"));
    }
    None
}

/// As files have it.
fn serde_name(value: ValueType) -> &'static str {
    match value {
        ValueType::F32 => "f32",
        ValueType::F16 => "f16",
        ValueType::Bf16 => "bf16",
        ValueType::Int8Rowwise => "int8_rowwise",
        ValueType::Fp8E4m3 => "fp8_e4m3",
        ValueType::Fp8E5m2 => "fp8_e5m2",
        ValueType::Int4 => "int4",
    }
}

impl TryFrom<WorkloadSpec> for Workload {
    type Error = Error;

    fn try_from(spec: WorkloadSpec) -> Result<Self> {
        Self::new(spec)
    }
}

impl From<Workload> for WorkloadSpec {
    fn from(workload: Workload) -> Self {
        workload.spec
    }
}

#[cfg(test)]
mod tests;
