//! Shape checks that every backend makes.

use crate::{Error, Mat, Result};

/// Something that has elements, on the host or on a device.
pub(crate) trait Length {
    /// How many.
    fn length(&self) -> usize;
}

impl<T> Length for &[T] {
    fn length(&self) -> usize {
        self.len()
    }
}

impl<T> Length for &mut [T] {
    fn length(&self) -> usize {
        self.len()
    }
}

#[cfg(feature = "cuda")]
impl<T: bytemuck::Pod> Length for emb_cuda::View<'_, T> {
    fn length(&self) -> usize {
        self.len()
    }
}

#[cfg(feature = "cuda")]
impl<T: bytemuck::Pod> Length for emb_cuda::ViewMut<'_, T> {
    fn length(&self) -> usize {
        self.len()
    }
}

/// Refuses `got` where `expected` is needed.
pub(crate) fn same(
    operation: &'static str,
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { operation, what, expected, got }) }
}

/// Names of the parts of one matrix, for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// Rows of the operand.
    pub(crate) rows: &'static str,
    /// Columns of the operand.
    pub(crate) cols: &'static str,
    /// Distance of its rows.
    pub(crate) stride: &'static str,
    /// Its elements.
    pub(crate) len: &'static str,
}

/// The [`Names`] of an operand.
macro_rules! names {
    ($operand:literal) => {
        $crate::shape::Names {
            rows: concat!("rows of ", $operand),
            cols: concat!("columns of ", $operand),
            stride: concat!("stride of ", $operand, " at least"),
            len: concat!("elements of ", $operand, " at least"),
        }
    };
}
pub(crate) use names;

/// Checks that a matrix lies inside its data.
pub(crate) fn inside<V: Length>(operation: &'static str, names: Names, mat: &Mat<V>) -> Result<()> {
    if mat.rows > 1 && mat.stride < mat.cols {
        same(operation, names.stride, mat.cols, mat.stride)?;
    }
    let extent = mat.extent();
    let len = mat.data.length();
    if len < extent { same(operation, names.len, extent, len) } else { Ok(()) }
}

/// Checks that a matrix is `[rows, cols]` and lies inside its data.
pub(crate) fn mat<V: Length>(
    operation: &'static str,
    names: Names,
    mat: &Mat<V>,
    rows: usize,
    cols: usize,
) -> Result<()> {
    same(operation, names.rows, rows, mat.rows)?;
    same(operation, names.cols, cols, mat.cols)?;
    inside(operation, names, mat)
}
