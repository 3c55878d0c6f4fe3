//! Between host vectors and a backend's memory.

use super::Case;
use crate::{Backend, Jagged, JaggedView, Mat, Scalar};

/// A batch in the backend's memory.
#[derive(Debug)]
pub struct DeviceBatch<B: Backend> {
    names: Vec<String>,
    batch: usize,
    len: usize,
    offsets: B::Buffer<u64>,
    values: B::Buffer<i64>,
    weights: Option<B::Buffer<f32>>,
}

impl<B: Backend> DeviceBatch<B> {
    /// A copy of a batch.
    ///
    /// # Panics
    /// When the backend has no memory for it.
    pub fn new(backend: &mut B, batch: &Jagged) -> Self {
        let host = batch.as_ref();
        Self {
            names: host.names.to_vec(),
            batch: host.batch,
            len: host.values.len(),
            offsets: upload(backend, host.offsets),
            values: upload(backend, host.values),
            weights: host.weights.map(|weights| upload(backend, weights)),
        }
    }

    /// Puts another batch of the same size in its place.
    pub(super) fn overwrite(&mut self, backend: &mut B, batch: &Jagged) {
        let host = batch.as_ref();
        let len = B::len(&self.offsets);
        backend.upload(host.offsets, B::view_mut(&mut self.offsets, 0..len)).expect("memory");
        backend.upload(host.values, B::view_mut(&mut self.values, 0..self.len)).expect("memory");
        if let (Some(own), Some(weights)) = (&mut self.weights, host.weights) {
            backend.upload(weights, B::view_mut(own, 0..self.len)).expect("memory");
        }
    }

    /// As operations take it.
    pub fn view(&self) -> JaggedView<'_, B> {
        JaggedView {
            names: &self.names,
            batch: self.batch,
            len: self.len,
            offsets: B::view(&self.offsets, 0..B::len(&self.offsets)),
            values: B::view(&self.values, 0..self.len),
            weights: self.weights.as_ref().map(|weights| B::view(weights, 0..self.len)),
        }
    }
}

/// The upstream gradients of a case in the backend's memory.
#[derive(Debug)]
pub struct DeviceGradients<B: Backend> {
    batch: usize,
    width: usize,
    pooled: B::Buffer<f32>,
    /// `(feature, rows, dim, gradients)`.
    sequences: Vec<(usize, usize, usize, B::Buffer<f32>)>,
}

impl<B: Backend> DeviceGradients<B> {
    /// A copy of a case's.
    ///
    /// # Panics
    /// When the backend has no memory for them.
    pub fn new(backend: &mut B, case: &Case) -> Self {
        let sequences = case.sequences().into_iter().zip(&case.sequence_gradients);
        let sequences = sequences
            .map(|((f, rows, dim), (_, gradient))| (f, rows, dim, upload(backend, gradient)))
            .collect();
        let (batch, width) = (case.batch.batch(), case.map().width());
        Self { batch, width, pooled: upload(backend, &case.pooled_gradient), sequences }
    }

    /// Of the pooled output, and of each sequence feature.
    pub fn views(&self) -> (MatOf<'_, B>, Vec<(usize, MatOf<'_, B>)>) {
        let view = |buffer, rows, cols| Mat::new(B::view(buffer, 0..rows * cols), rows, cols);
        let sequences = self.sequences.iter();
        let sequences =
            sequences.map(|(f, rows, dim, buffer)| (*f, view(buffer, *rows, *dim))).collect();
        (view(&self.pooled, self.batch, self.width), sequences)
    }
}

/// A matrix in a backend's memory.
pub type MatOf<'a, B> = Mat<<B as Backend>::View<'a, f32>>;

pub(super) fn upload<B: Backend, T: Scalar>(backend: &mut B, from: &[T]) -> B::Buffer<T> {
    let mut buffer = backend.zeros::<T>(from.len()).expect("memory");
    backend.upload(from, B::view_mut(&mut buffer, 0..from.len())).expect("copy");
    buffer
}

/// All values of a buffer.
///
/// # Panics
/// When the backend cannot copy.
pub fn download<B: Backend, T: Scalar>(backend: &mut B, from: &B::Buffer<T>) -> Vec<T> {
    let mut to = vec![T::zeroed(); B::len(from)];
    backend.download(B::view(from, 0..B::len(from)), &mut to).expect("copy");
    to
}
