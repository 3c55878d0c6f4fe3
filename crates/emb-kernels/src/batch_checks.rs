//! What a lookup asks of its batch, whatever the backend.

use crate::shape::same;
use crate::{Error, FeatureMap, Result, TableSpec};

/// Lengths of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    /// Names of features.
    pub(crate) names: usize,
    /// Samples.
    pub(crate) batch: usize,
    /// Values, as the batch says.
    pub(crate) len: usize,
    /// Offsets.
    pub(crate) offsets: usize,
    /// Values.
    pub(crate) values: usize,
    /// The last offset, where it is known.
    pub(crate) last: Option<u64>,
    /// Per-sample weights, where there are any.
    pub(crate) weights: Option<usize>,
}

/// Checks that a batch, a map and tables belong together.
pub(crate) fn check_batch(
    operation: &'static str,
    specs: &[TableSpec],
    map: &FeatureMap,
    lengths: Lengths,
) -> Result<()> {
    let features = map.features().len();
    same(operation, "features of the batch", features, lengths.names)?;
    same(operation, "offsets", features * lengths.batch + 1, lengths.offsets)?;
    same(operation, "values", lengths.len, lengths.values)?;
    if let Some(last) = lengths.last {
        same(operation, "last offset", lengths.len, last as usize)?;
    }
    if let Some(weights) = lengths.weights {
        same(operation, "per-sample weights", lengths.len, weights)?;
    }
    for (f, feature) in map.features().iter().enumerate() {
        let Some(spec) = specs.get(feature.table) else {
            return Err(Error::UnknownTable {
                feature: feature.name.clone(),
                table: feature.table,
                tables: specs.len(),
            });
        };
        same(operation, "dim of a feature's table", map.dim(f), spec.dim)?;
    }
    Ok(())
}

/// Names everything about the bad id at `position` of the values.
pub(crate) fn out_of_range(
    specs: &[TableSpec],
    map: &FeatureMap,
    batch: usize,
    offsets: &[u64],
    position: usize,
    id: i64,
) -> Error {
    let bag = offsets.partition_point(|&offset| offset as usize <= position) - 1;
    let feature = &map.features()[bag / batch];
    let spec = &specs[feature.table];
    Error::IdOutOfRange {
        table: spec.name.clone(),
        feature: feature.name.clone(),
        sample: bag % batch,
        position: position - offsets[bag] as usize,
        id,
        rows: spec.rows,
    }
}
