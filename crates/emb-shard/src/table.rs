//! What a table is, before anything decides where it lives: [`Table`], [`Tables`].

use crate::{Bytes, Error, FeatureId, Result, TableId, TypedVec};
use std::collections::HashSet;

/// The choices of a [`Table`] that have an ordinary value.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// Bytes of one stored weight: 1, 2 or 4.
    pub element_bytes: u8,
    /// Mean number of ids in a bag of one of its features; finite, at least 0.
    pub pooling_factor: f64,
    /// The features that look rows up; `None` for one feature named like the table.
    pub features: Option<Vec<String>>,
}

impl Default for TableOptions {
    /// `f32` weights, one id a bag, one feature named like the table.
    fn default() -> Self {
        Self { element_bytes: 4, pooling_factor: 1.0, features: None }
    }
}

/// One embedding table: `rows x dim` weights that features look up.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    name: String,
    rows: u64,
    dim: usize,
    element_bytes: u8,
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
        let TableOptions { element_bytes, pooling_factor, features } = options;
        let features = features.unwrap_or_else(|| vec![name.clone()]);
        if let Some(what) = fault(&name, rows, dim, element_bytes, pooling_factor, &features) {
            return Err(Error::BadTable { table: name, what });
        }
        no_duplicate("feature", &features)?;
        let Some(weight_bytes) = weight_bytes(rows, dim, element_bytes) else {
            let what = format!("{rows} rows of {dim} x {element_bytes} bytes exceed 2^63 bytes");
            return Err(Error::BadTable { table: name, what });
        };
        Ok(Self { name, rows, dim, element_bytes, pooling_factor, features, weight_bytes })
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
mod tests {
    use super::*;

    fn refusal(rows: u64, dim: usize, options: TableOptions) -> String {
        Table::new("ads", rows, dim, options).expect_err("must be refused").to_string()
    }

    #[test]
    fn impossible_tables_are_refused_by_name() {
        let plain = TableOptions::default;
        assert_eq!(
            refusal(0, 8, plain()),
            r#"table "ads": 0 rows of 8 columns: both must be at least 1"#
        );
        let eight = TableOptions { element_bytes: 8, ..plain() };
        assert!(refusal(1, 8, eight).contains("elements of 8 bytes"));
        for factor in [f64::NAN, f64::INFINITY, -0.5] {
            let options = TableOptions { pooling_factor: factor, ..plain() };
            assert!(refusal(1, 1, options).contains("pooling factor"));
        }
        let nothing = TableOptions { features: Some(vec![]), ..plain() };
        assert!(refusal(1, 1, nothing).contains("at least one feature"));
        let twice = TableOptions { features: Some(vec!["x".into(), "x".into()]), ..plain() };
        assert_eq!(refusal(1, 1, twice), r#"two features are named "x""#);
        assert!(refusal(1 << 61, 1, plain()).contains("exceed 2^63 bytes"));
        assert!(refusal(u64::MAX, usize::MAX, plain()).contains("exceed 2^63 bytes"));
    }

    #[test]
    fn names_are_unique_over_all_tables_and_features_find_theirs() {
        let named = |name: &str, features: &[&str]| {
            let features = Some(features.iter().map(ToString::to_string).collect());
            let options = TableOptions { features, ..TableOptions::default() };
            Table::new(name, 10, 4, options).expect("valid table")
        };
        let tables = Tables::new(vec![named("a", &["x", "y"]), named("b", &["z"])]).expect("valid");
        assert_eq!(tables.feature_names(), ["x", "y", "z"]);
        assert_eq!(tables.table_of()[FeatureId::new(1)], TableId::new(0));
        assert_eq!(tables.table_of()[FeatureId::new(2)], TableId::new(1));
        assert_eq!(tables.weight_bytes(), Some(Bytes::new(320)));

        let error = Tables::new(vec![named("a", &["x"]), named("a", &["y"])]);
        assert_eq!(error.expect_err("twice").to_string(), r#"two tables are named "a""#);
        let error = Tables::new(vec![named("a", &["x"]), named("b", &["x"])]);
        assert_eq!(error.expect_err("twice").to_string(), r#"two features are named "x""#);
    }
}
