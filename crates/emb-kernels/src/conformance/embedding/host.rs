//! Between host vectors and a backend's memory.

use crate::{Backend, Jagged, JaggedView, Scalar};

/// A batch in the backend's memory.
#[derive(Debug)]
pub(super) struct DeviceBatch<B: Backend> {
    names: Vec<String>,
    batch: usize,
    len: usize,
    offsets: B::Buffer<u64>,
    values: B::Buffer<i64>,
    weights: Option<B::Buffer<f32>>,
}

impl<B: Backend> DeviceBatch<B> {
    pub(super) fn new(backend: &mut B, batch: &Jagged) -> Self {
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

    pub(super) fn view(&self) -> JaggedView<'_, B> {
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

pub(super) fn upload<B: Backend, T: Scalar>(backend: &mut B, from: &[T]) -> B::Buffer<T> {
    let mut buffer = backend.zeros::<T>(from.len()).expect("memory");
    backend.upload(from, B::view_mut(&mut buffer, 0..from.len())).expect("copy");
    buffer
}

pub(super) fn download<B: Backend, T: Scalar>(backend: &mut B, from: &B::Buffer<T>) -> Vec<T> {
    let mut to = vec![T::zeroed(); B::len(from)];
    backend.download(B::view(from, 0..B::len(from)), &mut to).expect("copy");
    to
}
