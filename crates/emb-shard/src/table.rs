//! What a table is, before anything decides where it lives: [`Table`], [`Tables`].

use crate::{Bytes, Error, FeatureId, Result, TableId, TypedVec};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// How the rows of one bag become output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// Their (weighted) sum.
    #[default]
    Sum,
    /// Their (weighted) mean.
    Mean,
    /// No pooling: one output row per id (sequence features).
    None,
}

/// Bytes of optimizer state beside the weights.
///
/// Row-wise `AdaGrad` in `f32` keeps 4 bytes a row, Adam 8 bytes an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateBytes {
    /// Bytes for each row. Every owner of columns of the row holds them, as equal copies.
    pub per_row: u32,
    /// Bytes for each weight.
    pub per_element: u32,
}

/// The choices of a [`Table`] that have an ordinary value.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// Bytes of one stored weight: 1, 2 or 4.
    pub element_bytes: u8,
    /// Bytes of optimizer state.
    pub state: StateBytes,
    /// How its features pool bags.
    pub pooling: Pooling,
    /// Mean number of ids in a bag of one of its features; finite, at least 0.
    pub pooling_factor: f64,
    /// The features that look rows up; `None` for one feature named like the table.
    pub features: Option<Vec<String>>,
}

impl Default for TableOptions {
    /// `f32` weights without state, sums of bags, one id a bag, one feature named like the table.
    fn default() -> Self {
        Self {
            element_bytes: 4,
            state: StateBytes::default(),
            pooling: Pooling::Sum,
            pooling_factor: 1.0,
            features: None,
        }
    }
}

/// One embedding table: `rows x dim` weights that features look up.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    name: String,
    rows: u64,
    dim: usize,
    element_bytes: u8,
    state: StateBytes,
    pooling: Pooling,
    pooling_factor: f64,
    features: Vec<String>,
    weight_bytes: Bytes,
}

impl Table {
    /// Checks and makes a table.
    ///
    /// # Errors
    /// By table name: an empty name, no rows, no columns, an element of other than 1, 2 or 4
    /// bytes, a pooling factor that is negative or not finite, no features, two features of one
    /// name, weights beyond 2^63 bytes.
    pub fn new(
        name: impl Into<String>,
        rows: u64,
        dim: usize,
        options: TableOptions,
    ) -> Result<Self> {
        let name = name.into();
        let TableOptions { element_bytes, state, pooling, pooling_factor, features } = options;
        let features = features.unwrap_or_else(|| vec![name.clone()]);
        if let Some(what) = fault(&name, rows, dim, element_bytes, pooling_factor, &features) {
            return Err(Error::BadTable { table: name, what });
        }
        no_duplicate("feature", &features)?;
        let Some(weight_bytes) = weight_bytes(rows, dim, element_bytes) else {
            let what = format!("{rows} rows of {dim} x {element_bytes} bytes exceed 2^63 bytes");
            return Err(Error::BadTable { table: name, what });
        };
        Ok(Self {
            name,
            rows,
            dim,
            element_bytes,
            state,
            pooling,
            pooling_factor,
            features,
            weight_bytes,
        })
    }

    /// Name, unique among [`Tables`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rows, at least 1.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Columns, at least 1.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Bytes of one stored weight.
    pub fn element_bytes(&self) -> u8 {
        self.element_bytes
    }

    /// Bytes of optimizer state.
    pub fn state(&self) -> StateBytes {
        self.state
    }

    /// How its features pool bags.
    pub fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// Mean number of ids in a bag.
    pub fn pooling_factor(&self) -> f64 {
        self.pooling_factor
    }

    /// Names of the features that look rows up; at least one.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// Bytes of all its weights: `rows * dim * element_bytes`.
    pub fn weight_bytes(&self) -> Bytes {
        self.weight_bytes
    }

    /// Bytes of the weights and of the optimizer state of `rows x columns` cells stored together;
    /// the largest 64-bit number where they are more.
    pub fn part_bytes(&self, rows: u64, columns: usize) -> PartBytes {
        let cells = u128::from(rows) * columns as u128;
        let state = cells * u128::from(self.state.per_element)
            + u128::from(rows) * u128::from(self.state.per_row);
        PartBytes {
            weights: saturate(cells * u128::from(self.element_bytes)),
            state: saturate(state),
        }
    }

    /// Mean number of rows that one sample looks up: the pooling factor times the features.
    pub fn lookups(&self) -> f64 {
        self.pooling_factor * self.features.len() as f64
    }
}

/// Bytes of a part of one table, or of all that one rank stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartBytes {
    /// Weights.
    pub weights: Bytes,
    /// Optimizer state.
    pub state: Bytes,
}

impl PartBytes {
    /// Weights and state.
    pub fn total(self) -> Bytes {
        self.weights.saturating_add(self.state)
    }

    /// Both parts, added.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            weights: self.weights.saturating_add(other.weights),
            state: self.state.saturating_add(other.state),
        }
    }
}

/// The tables of a model, each named once, and the features over all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    by_id: TypedVec<TableId, Table>,
    table_of: TypedVec<FeatureId, TableId>,
    feature_names: Vec<String>,
}

impl Tables {
    /// Checks that tables and features are each named once.
    ///
    /// # Errors
    /// Two tables, or two features of different tables, of one name.
    pub fn new(tables: Vec<Table>) -> Result<Self> {
        let names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        no_duplicate("table", &names)?;
        let by_id: TypedVec<TableId, Table> = TypedVec::new(tables)?;
        let mut feature_names = Vec::new();
        let mut table_of = Vec::new();
        for (id, table) in by_id.iter() {
            feature_names.extend_from_slice(&table.features);
            table_of.resize(feature_names.len(), id);
        }
        no_duplicate("feature", &feature_names)?;
        Ok(Self { by_id, table_of: TypedVec::new(table_of)?, feature_names })
    }

    /// The tables in order.
    pub fn tables(&self) -> &TypedVec<TableId, Table> {
        &self.by_id
    }

    /// The table that each feature looks up; features in table order.
    pub fn table_of(&self) -> &TypedVec<FeatureId, TableId> {
        &self.table_of
    }

    /// Names of all features, in the order of their ids.
    pub fn feature_names(&self) -> &[String] {
        &self.feature_names
    }

    /// Bytes of all weights, or `None` beyond 64 bits.
    pub fn weight_bytes(&self) -> Option<Bytes> {
        let mut tables = self.by_id.as_slice().iter();
        tables.try_fold(Bytes::default(), |sum, table| sum.checked_add(table.weight_bytes()))
    }
}

/// `None` beyond what an address can offset (2^63 bytes).
fn weight_bytes(rows: u64, dim: usize, element_bytes: u8) -> Option<Bytes> {
    let bytes = rows.checked_mul(dim as u64)?.checked_mul(u64::from(element_bytes))?;
    i64::try_from(bytes).is_ok().then_some(Bytes::new(bytes))
}

fn saturate(bytes: u128) -> Bytes {
    Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
}

fn fault(
    name: &str,
    rows: u64,
    dim: usize,
    element_bytes: u8,
    pooling_factor: f64,
    features: &[String],
) -> Option<String> {
    if name.is_empty() {
        return Some("a table needs a name".into());
    }
    if rows == 0 || dim == 0 {
        return Some(format!("{rows} rows of {dim} columns: both must be at least 1"));
    }
    if !matches!(element_bytes, 1 | 2 | 4) {
        return Some(format!("elements of {element_bytes} bytes: must be 1, 2 or 4"));
    }
    if !(pooling_factor.is_finite() && pooling_factor >= 0.0) {
        return Some(format!("pooling factor {pooling_factor}: must be finite and at least 0"));
    }
    if features.is_empty() || features.iter().any(String::is_empty) {
        return Some("needs at least one feature, each with a name".into());
    }
    None
}

fn no_duplicate(kind: &'static str, names: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(Error::DuplicateName { kind, name: name.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
