//! Embedding operations: lookup, gradients of rows and per-sample weights, routing.

use crate::{FeatureMap, JaggedRef, Pooling, RowMapView};
use std::collections::BTreeMap;

/// A table as plain numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Columns.
    pub dim: usize,
    /// `[rows, dim]`.
    pub weights: Vec<f64>,
}

impl Table {
    /// Row `id`.
    pub fn row(&self, id: i64) -> &[f64] {
        &self.weights[id as usize * self.dim..][..self.dim]
    }
}

/// Gradient of every touched row of one table, by row.
pub type RowGradients = BTreeMap<u64, Vec<f64>>;

/// Pooled output `[batch, map.width()]`; columns before the first feature are 0.
pub fn pool(tables: &[Table], map: &FeatureMap, batch: JaggedRef<'_>) -> Vec<f64> {
    let mut out = vec![0.0; batch.batch * map.width()];
    for (f, feature) in map.features().iter().enumerate() {
        if feature.pooling == Pooling::None {
            continue;
        }
        let table = &tables[feature.table];
        for b in 0..batch.batch {
            let to = &mut out[b * map.width() + map.column(f)..][..table.dim];
            for (id, scale) in scaled(feature.pooling, batch, f, b) {
                for (to, w) in to.iter_mut().zip(table.row(id)) {
                    *to += scale * w;
                }
            }
        }
    }
    out
}

/// Rows of sequence feature `f`, `[values of the feature, dim]`.
pub fn gather(tables: &[Table], map: &FeatureMap, batch: JaggedRef<'_>, f: usize) -> Vec<f64> {
    let table = &tables[map.features()[f].table];
    let ids = &batch.values[batch.feature_range(f)];
    ids.iter().flat_map(|&id| table.row(id).iter().copied()).collect()
}

/// Summed gradients of the rows of every table.
///
/// `pooled` is `[batch, map.width()]`; `sequence(f, k)` is the upstream row of the `k`-th value of
/// sequence feature `f`; every element of a contribution is clamped to `[-clamp, clamp]`.
pub fn row_gradients<'a>(
    dims: &[usize],
    map: &FeatureMap,
    batch: JaggedRef<'_>,
    pooled: &'a [f64],
    sequence: impl Fn(usize, usize) -> &'a [f64],
    clamp: f64,
) -> Vec<RowGradients> {
    let mut sums = vec![RowGradients::new(); dims.len()];
    for (f, feature) in map.features().iter().enumerate() {
        let dim = dims[feature.table];
        for b in 0..batch.batch {
            let first = batch.bag_range(f, b).start - batch.feature_range(f).start;
            for (k, (id, scale)) in scaled(feature.pooling, batch, f, b).into_iter().enumerate() {
                let upstream = match feature.pooling {
                    Pooling::None => sequence(f, first + k),
                    _ => &pooled[b * map.width() + map.column(f)..][..dim],
                };
                let sum = sums[feature.table].entry(id as u64).or_insert_with(|| vec![0.0; dim]);
                for (sum, g) in sum.iter_mut().zip(upstream) {
                    *sum += (scale * g).clamp(-clamp, clamp);
                }
            }
        }
    }
    sums
}

/// Gradient of every per-sample weight, `[values]`: with `Sum` `<row, g>`, with `Mean`
/// `<row - pooled, g> / sum w`, 0 for sequences and where the weights sum to 0.
pub fn weight_gradients(
    tables: &[Table],
    map: &FeatureMap,
    batch: JaggedRef<'_>,
    pooled_gradient: &[f64],
) -> Vec<f64> {
    let pooled = pool(tables, map, batch);
    let mut out = vec![0.0; batch.values.len()];
    for (f, feature) in map.features().iter().enumerate() {
        let table = &tables[feature.table];
        for b in 0..batch.batch {
            let at = b * map.width() + map.column(f);
            for position in batch.bag_range(f, b) {
                let row = table.row(batch.values[position]);
                out[position] = match feature.pooling {
                    Pooling::None => 0.0,
                    Pooling::Sum => dot(row, &pooled_gradient[at..][..table.dim]),
                    Pooling::Mean => {
                        let total = total_weight(batch, f, b);
                        let mean = &pooled[at..][..table.dim];
                        let difference: Vec<f64> =
                            row.iter().zip(mean).map(|(w, p)| w - p).collect();
                        let product = dot(&difference, &pooled_gradient[at..][..table.dim]);
                        if total == 0.0 { 0.0 } else { product / total }
                    }
                };
            }
        }
    }
    out
}

/// Owner and local id of a global one; `None` where nobody has it.
pub fn owner(map: &RowMapView<'_>, id: i64) -> Option<(usize, i64)> {
    match *map {
        RowMapView::Range(starts) => starts
            .windows(2)
            .position(|range| (range[0]..range[1]).contains(&(id as u64)))
            .map(|owner| (owner, id - starts[owner] as i64)),
        RowMapView::Modulo { owners } => {
            (id >= 0).then(|| ((id % owners as i64) as usize, id / owners as i64))
        }
    }
}

/// `(lengths, ids, positions)` of a batch split by owner, see
/// [`Backend::bucketize`](crate::Backend::bucketize); every id has an owner.
///
/// # Panics
/// When an id has none.
pub fn bucketize(
    batch: JaggedRef<'_>,
    maps: &[RowMapView<'_>],
    owners: usize,
) -> (Vec<u64>, Vec<i64>, Vec<u64>) {
    let (mut lengths, mut ids, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    for o in 0..owners {
        for (f, map) in maps.iter().enumerate() {
            for b in 0..batch.batch {
                let before = ids.len();
                for position in batch.bag_range(f, b) {
                    let found = owner(map, batch.values[position]).expect("an owner for every id");
                    if found.0 == o {
                        ids.push(found.1);
                        positions.push(position as u64);
                    }
                }
                lengths.push((ids.len() - before) as u64);
            }
        }
    }
    (lengths, ids, positions)
}

/// `(distinct ids ascending, place of every id among them)`.
pub fn unique(ids: &[i64]) -> (Vec<i64>, Vec<u32>) {
    let mut distinct = ids.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let inverse = ids.iter().map(|id| distinct.partition_point(|other| other < id) as u32);
    let inverse = inverse.collect();
    (distinct, inverse)
}

/// Ids of a bag, each with the factor its row has in the output.
fn scaled(pooling: Pooling, batch: JaggedRef<'_>, f: usize, b: usize) -> Vec<(i64, f64)> {
    let total = total_weight(batch, f, b);
    let scale = |position: usize| match pooling {
        Pooling::None => 1.0,
        Pooling::Sum => weight(batch, position),
        Pooling::Mean if total == 0.0 => 0.0,
        Pooling::Mean => weight(batch, position) / total,
    };
    batch.bag_range(f, b).map(|position| (batch.values[position], scale(position))).collect()
}

fn weight(batch: JaggedRef<'_>, position: usize) -> f64 {
    batch.weights.map_or(1.0, |weights| f64::from(weights[position]))
}

fn total_weight(batch: JaggedRef<'_>, f: usize, b: usize) -> f64 {
    batch.bag_range(f, b).map(|position| weight(batch, position)).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
