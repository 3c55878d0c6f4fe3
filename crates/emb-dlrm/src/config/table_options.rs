//! What a file may say of single tables and features.

use super::words::{OptimizerKind, PlacementKind, PoolingKind, WeightType};
use serde::{Deserialize, Serialize};

/// One `[[table]]` of a file; what it leaves out comes from the options above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableOptions {
    /// Name, unique.
    pub name: String,
    /// Buckets for ids; one more row is kept for missing values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// Stored type of the weights.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub weight_type: Option<WeightType>,
    /// Initial weights: a number for all, or `[low, high]` for a uniform distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<InitOptions>,
    /// Update rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerKind>,
    /// Learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr: Option<f64>,
    /// Where it lives, whatever the plan of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementKind>,
    /// Replicas M of this table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
}

/// Initial weights of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "init is a number, or two: [low, high]")]
pub enum InitOptions {
    /// One value everywhere.
    Constant(f32),
    /// Uniform in `[low, high)`.
    Uniform([f32; 2]),
}

/// One `[[feature]]` of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FeatureOptions {
    /// Name, unique; `C1` to `C26` name the column they read.
    pub name: String,
    /// Table looked up; several features may share one. Left out: the table of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Column of the file (`C1` to `C26`), where the name is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// `sum` (default) or `mean`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooling: Option<PoolingKind>,
    /// Whether ids carry per-sample weights (synthetic data only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighted: Option<bool>,
    /// Mean ids of a bag (synthetic data only; files have one id a column).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bag: Option<f64>,
}
