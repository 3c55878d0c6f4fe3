//! Row-major matrices as views: a borrowed slice (or device view) and its shape.

/// A row-major matrix over `data`: element `(i, j)` is at `i * stride + j`.
///
/// `data` is a backend's view (`&[f32]` and `&mut [f32]` on the CPU). The shape is checked once,
/// by whoever consumes the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Mat<V> {
    /// The elements; at least `(rows - 1) * stride + cols` of them when there are rows.
    pub data: V,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Distance between the starts of two rows, in elements; at least `cols`.
    pub stride: usize,
}

impl<V> Mat<V> {
    /// A dense matrix `[rows, cols]`: the stride is `cols`.
    pub fn new(data: V, rows: usize, cols: usize) -> Self {
        Self { data, rows, cols, stride: cols }
    }

    /// A matrix `[rows, cols]` whose rows start `stride` elements apart.
    pub fn with_stride(data: V, rows: usize, cols: usize, stride: usize) -> Self {
        Self { data, rows, cols, stride }
    }

    /// Elements that `data` must have.
    pub fn extent(&self) -> usize {
        if self.rows == 0 || self.cols == 0 { 0 } else { (self.rows - 1) * self.stride + self.cols }
    }
}

/// Whether a GEMM operand is used as it lies or transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transpose {
    /// The matrix as stored.
    No,
    /// The transpose of what is stored.
    Yes,
}
