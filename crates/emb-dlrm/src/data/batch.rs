//! One batch of samples in memory, refilled in place.

use std::ops::Range;

use emb_kernels::Jagged;

use super::{DENSE, Result};

/// A batch of samples.
///
/// A source refills it in place: after the first batches of a run no memory is allocated.
/// A default value fits any source, which gives `sparse` its own features.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// `[rows, 13]` dense values, row-major.
    pub dense: Vec<f32>,
    /// `[rows]` labels; empty where the source was told to do without.
    pub labels: Vec<f32>,
    /// Ids of the features, feature-major, batch `rows`.
    pub sparse: Jagged,
    /// Samples.
    pub rows: usize,
    lengths: Vec<i64>,
}

/// The bags of one feature while a batch is being filled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bags {
    pub(crate) lengths: Vec<i64>,
    pub(crate) values: Vec<i64>,
    pub(crate) weights: Vec<f32>,
}

impl Bags {
    pub(crate) fn clear(&mut self) {
        self.lengths.clear();
        self.values.clear();
        self.weights.clear();
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            dense: Vec::new(),
            labels: Vec::new(),
            sparse: Jagged::empty::<&str>(&[]),
            rows: 0,
            lengths: Vec::new(),
        }
    }
}

impl Batch {
    /// Copies the samples `rows` into `out`, in place: a rank's share of a global batch.
    ///
    /// # Errors
    /// None for a batch that a source filled; labels or dense values of another count than
    /// `rows` make an inconsistent batch.
    ///
    /// # Panics
    /// If the range does not lie within the batch.
    pub fn copy_rows(&self, rows: Range<usize>, out: &mut Self) -> Result<()> {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "{rows:?} of {}", self.rows);
        out.dense.clear();
        out.dense.extend_from_slice(&self.dense[rows.start * DENSE..rows.end * DENSE]);
        out.labels.clear();
        if !self.labels.is_empty() {
            out.labels.extend_from_slice(&self.labels[rows.clone()]);
        }
        let from = self.sparse.as_ref();
        out.adopt(from.names, from.weights.is_some());
        out.rows = rows.len();
        out.sparse.refill(rows.len(), &mut out.lengths, |lengths, values, mut weights| {
            for f in 0..from.features() {
                let first = f * from.batch;
                let offsets = &from.offsets[first + rows.start..=first + rows.end];
                lengths.extend(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as i64));
                let span = offsets[0] as usize..offsets[rows.len()] as usize;
                values.extend_from_slice(&from.values[span.clone()]);
                if let (Some(weights), Some(source)) = (weights.as_mut(), from.weights) {
                    weights.extend_from_slice(&source[span]);
                }
            }
        })?;
        Ok(())
    }

    /// Empties the batch.
    ///
    /// # Panics
    /// Never: no bags of any features are consistent.
    pub fn clear(&mut self) {
        self.dense.clear();
        self.labels.clear();
        self.rows = 0;
        self.sparse
            .refill(0, &mut self.lengths, |_, _, _| {})
            .expect("invariant: 0 bags of any features are consistent");
    }

    /// Refills ids from the bags of each feature.
    pub(crate) fn refill(
        &mut self,
        rows: usize,
        names: &[String],
        bags: &[Bags],
        weighted: bool,
    ) -> Result<()> {
        self.adopt(names, weighted);
        self.rows = rows;
        self.sparse.refill(rows, &mut self.lengths, |lengths, values, mut weights| {
            for feature in bags {
                lengths.extend_from_slice(&feature.lengths);
                values.extend_from_slice(&feature.values);
                if let Some(weights) = weights.as_mut() {
                    weights.extend_from_slice(&feature.weights);
                }
            }
        })?;
        Ok(())
    }

    /// Makes `sparse` a batch of these features; a no-op after the first call.
    fn adopt(&mut self, names: &[String], weighted: bool) {
        if self.sparse.names() != names || self.sparse.as_ref().weights.is_some() != weighted {
            self.sparse = Jagged::empty(names);
            if weighted {
                self.sparse = std::mem::replace(&mut self.sparse, Jagged::empty::<&str>(&[]))
                    .with_unit_weights();
            }
        }
    }
}
