//! Activation buffers that are kept between steps, and matrices placed inside them.

use crate::Result;
use emb_kernels::{Backend, Mat};

/// Where a row-major matrix lies inside a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Element of the buffer at row 0, column 0.
    pub(crate) start: usize,
    /// Rows.
    pub(crate) rows: usize,
    /// Columns.
    pub(crate) cols: usize,
    /// Elements between the starts of two rows.
    pub(crate) stride: usize,
}

impl Place {
    /// A dense matrix at the start of a buffer.
    pub(crate) fn dense(rows: usize, cols: usize) -> Self {
        Self { start: 0, rows, cols, stride: cols }
    }

    /// The first `cols` columns of a matrix whose rows are `stride` long.
    pub(crate) fn leading(rows: usize, cols: usize, stride: usize) -> Self {
        Self { start: 0, rows, cols, stride }
    }

    fn range(self) -> std::ops::Range<usize> {
        let extent = Mat::with_stride((), self.rows, self.cols, self.stride).extent();
        self.start..self.start + extent
    }

    /// The matrix, to be read.
    pub(crate) fn of<B: Backend>(self, buffer: &B::Buffer<f32>) -> Mat<B::View<'_, f32>> {
        Mat::with_stride(B::view(buffer, self.range()), self.rows, self.cols, self.stride)
    }

    /// The matrix, to be written.
    pub(crate) fn of_mut<B: Backend>(
        self,
        buffer: &mut B::Buffer<f32>,
    ) -> Mat<B::ViewMut<'_, f32>> {
        Mat::with_stride(B::view_mut(buffer, self.range()), self.rows, self.cols, self.stride)
    }
}

/// A matrix inside a borrowed buffer: what layers read. Views of a backend can't be shortened to
/// a common lifetime in generic code, plain references can.
#[derive(Debug)]
pub(crate) struct Operand<'a, B: Backend> {
    buffer: &'a B::Buffer<f32>,
    place: Place,
}

impl<B: Backend> Clone for Operand<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Operand<'_, B> {}

impl<'a, B: Backend> Operand<'a, B> {
    /// The matrix at `place` of `buffer`.
    pub(crate) fn new(buffer: &'a B::Buffer<f32>, place: Place) -> Self {
        Self { buffer, place }
    }

    /// Rows.
    pub(crate) fn rows(self) -> usize {
        self.place.rows
    }

    /// The backend's view of it.
    pub(crate) fn mat(self) -> Mat<B::View<'a, f32>> {
        self.place.of::<B>(self.buffer)
    }
}

/// A buffer that grows to the largest batch seen and is then reused: no allocation in the step.
#[derive(Debug)]
pub(crate) struct Scratch<B: Backend> {
    buffer: B::Buffer<f32>,
}

impl<B: Backend> Scratch<B> {
    /// An empty buffer.
    pub(crate) fn new(backend: &mut B) -> Result<Self> {
        Ok(Self { buffer: backend.zeros(0)? })
    }

    /// Makes room for `len` elements; contents are lost when it has to grow.
    pub(crate) fn reserve(&mut self, backend: &mut B, len: usize) -> Result<()> {
        if B::len(&self.buffer) < len {
            self.buffer = backend.zeros(len)?;
        }
        Ok(())
    }

    /// The buffer.
    pub(crate) fn buffer(&self) -> &B::Buffer<f32> {
        &self.buffer
    }

    /// The buffer, to be written.
    pub(crate) fn buffer_mut(&mut self) -> &mut B::Buffer<f32> {
        &mut self.buffer
    }
}
