//! One batch in device memory.

use super::scratch::{Operand, Place};
use crate::Result;
use emb_kernels::{Backend, JaggedRef, JaggedView, Mat, Scalar};

/// A batch on the device; its buffers grow to the largest batch seen and are then reused.
#[derive(Debug)]
pub struct DeviceBatch<B: Backend> {
    names: Vec<String>,
    rows: usize,
    dense_columns: usize,
    values_len: usize,
    has_weights: bool,
    dense: B::Buffer<f32>,
    labels: B::Buffer<f32>,
    offsets: B::Buffer<u64>,
    values: B::Buffer<i64>,
    weights: B::Buffer<f32>,
}

impl<B: Backend> DeviceBatch<B> {
    /// An empty batch with room for nothing yet; `dense_columns` is the width of dense features.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(backend: &mut B, dense_columns: usize) -> Result<Self> {
        Ok(Self {
            names: Vec::new(),
            rows: 0,
            dense_columns,
            values_len: 0,
            has_weights: false,
            dense: backend.zeros(0)?,
            labels: backend.zeros(0)?,
            offsets: backend.zeros(0)?,
            values: backend.zeros(0)?,
            weights: backend.zeros(0)?,
        })
    }

    /// Copies a batch to the device: `dense` is `[rows, dense columns]`, `labels` `[rows]`, or
    /// empty where there are none (prediction); [`labels`](Self::labels) is then 0.
    ///
    /// # Errors
    /// Lengths that contradict each other; the device failed.
    pub fn upload(
        &mut self,
        backend: &mut B,
        dense: &[f32],
        labels: &[f32],
        sparse: JaggedRef<'_>,
    ) -> Result<()> {
        let rows = sparse.batch;
        check("dense features", rows * self.dense_columns, dense.len())?;
        copy(backend, dense, &mut self.dense)?;
        if labels.is_empty() {
            if B::len(&self.labels) < rows {
                self.labels = backend.zeros(rows)?;
            }
            let place = Mat::new(B::view_mut(&mut self.labels, 0..rows), rows, 1);
            backend.fill(place, 0.0)?;
        } else {
            check("labels", rows, labels.len())?;
            copy(backend, labels, &mut self.labels)?;
        }
        copy(backend, sparse.offsets, &mut self.offsets)?;
        copy(backend, sparse.values, &mut self.values)?;
        if let Some(weights) = sparse.weights {
            copy(backend, weights, &mut self.weights)?;
        }
        if self.names != sparse.names {
            self.names = sparse.names.to_vec();
        }
        self.has_weights = sparse.weights.is_some();
        self.values_len = sparse.values.len();
        self.rows = rows;
        Ok(())
    }

    /// Samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// `[rows, dense columns]`.
    pub(crate) fn dense(&self) -> Operand<'_, B> {
        Operand::new(&self.dense, Place::dense(self.rows, self.dense_columns))
    }

    /// `[rows]`.
    pub fn labels(&self) -> B::View<'_, f32> {
        B::view(&self.labels, 0..self.rows)
    }

    /// The jagged ids.
    pub fn sparse(&self) -> JaggedView<'_, B> {
        JaggedView {
            names: &self.names,
            batch: self.rows,
            len: self.values_len,
            offsets: B::view(&self.offsets, 0..self.names.len() * self.rows + 1),
            values: B::view(&self.values, 0..self.values_len),
            weights: self.has_weights.then(|| B::view(&self.weights, 0..self.values_len)),
        }
    }
}

fn check(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(emb_kernels::Error::Shape { operation: "batch upload", what, expected, got }.into())
}

fn copy<B: Backend, T: Scalar>(backend: &mut B, from: &[T], to: &mut B::Buffer<T>) -> Result<()> {
    if B::len(to) < from.len() {
        *to = backend.zeros(from.len())?;
    }
    backend.upload(from, B::view_mut(to, 0..from.len()))?;
    Ok(())
}
