//! Which feature looks up which table, how its bags are pooled, and where its output goes.

use crate::{Error, Result, TableSpec};
use std::collections::HashSet;

/// How the rows of one bag become output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// `sum_i w_i * row(id_i)`, with `w = 1` without per-sample weights.
    Sum,
    /// `sum_i w_i * row(id_i) / sum_i w_i`; 0 for an empty bag and where the weights sum to 0.
    Mean,
    /// No pooling: one output row per id (sequence features); per-sample weights do not apply.
    None,
}

/// One feature of a jagged batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Name, unique within a map; used in errors.
    pub name: String,
    /// Position of its table in the group of tables; several features may share one.
    pub table: usize,
    /// How its bags are pooled.
    pub pooling: Pooling,
}

/// The features of a batch, in order, each with its table and its columns in the pooled output.
///
/// Pooled features occupy consecutive columns in feature order, `dim` of their table each,
/// beginning at `first_column`; features with [`Pooling::None`] have no columns.
#[derive(Clone, Debug)]
pub struct FeatureMap {
    features: Vec<Feature>,
    columns: Vec<usize>,
    dims: Vec<usize>,
    width: usize,
}

impl FeatureMap {
    /// Checks the features against the tables of a group.
    ///
    /// `first_column` leaves room for other data at the start of each output row (DLRM puts the
    /// bottom MLP's output there).
    ///
    /// # Errors
    /// A table position that does not exist; two features of one name.
    pub fn new(features: Vec<Feature>, tables: &[TableSpec], first_column: usize) -> Result<Self> {
        let mut columns = Vec::with_capacity(features.len());
        let mut dims = Vec::with_capacity(features.len());
        let mut width = first_column;
        let mut names = HashSet::with_capacity(features.len());
        for feature in &features {
            let Some(table) = tables.get(feature.table) else {
                return Err(Error::UnknownTable {
                    feature: feature.name.clone(),
                    table: feature.table,
                    tables: tables.len(),
                });
            };
            if !names.insert(&feature.name) {
                return Err(Error::DuplicateName { kind: "feature", name: feature.name.clone() });
            }
            columns.push(width);
            dims.push(table.dim);
            if feature.pooling != Pooling::None {
                width += table.dim;
            }
        }
        Ok(Self { features, columns, dims, width })
    }

    /// The features in batch order.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// First output column of feature `f`.
    pub fn column(&self, f: usize) -> usize {
        self.columns[f]
    }

    /// Columns of feature `f`: the `dim` of its table.
    pub fn dim(&self, f: usize) -> usize {
        self.dims[f]
    }

    /// Columns of the pooled output, `first_column` included.
    pub fn width(&self) -> usize {
        self.width
    }
}

/// Features whose bags are pooled.
pub(crate) fn pooled_features(map: &FeatureMap) -> impl Iterator<Item = usize> + '_ {
    map.features()
        .iter()
        .enumerate()
        .filter(|(_, feature)| feature.pooling != Pooling::None)
        .map(|(f, _)| f)
}
