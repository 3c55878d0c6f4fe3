//! Bias and activation.
use crate::{Activation, Mat, Result};

pub(crate) fn bias_activation(
    _threads: usize,
    x: Mat<&mut [f32]>,
    bias: &[f32],
    activation: Activation,
) -> Result<()> {
    for i in 0..x.rows {
        for (x, b) in x.data[i * x.stride..][..x.cols].iter_mut().zip(bias) {
            *x += b;
            if activation == Activation::Relu {
                *x = x.max(0.0);
            }
        }
    }
    Ok(())
}

pub(crate) fn bias_activation_backward(
    _threads: usize,
    y: Mat<&[f32]>,
    activation: Activation,
    gradient: Mat<&mut [f32]>,
    bias_gradient: &mut [f32],
) -> Result<()> {
    bias_gradient.fill(0.0);
    for i in 0..gradient.rows {
        for (j, sum) in bias_gradient.iter_mut().enumerate() {
            let g = &mut gradient.data[i * gradient.stride + j];
            if activation == Activation::Relu && y.data[i * y.stride + j] <= 0.0 {
                *g = 0.0;
            }
            *sum += *g;
        }
    }
    Ok(())
}

/// Sets every element of a matrix.
pub(crate) fn fill(x: Mat<&mut [f32]>, value: f32) -> Result<()> {
    for row in x.data.chunks_mut(x.stride.max(1)).take(x.rows) {
        row[..x.cols].fill(value);
    }
    Ok(())
}

/// `out += x`, element by element.
pub(crate) fn add(_threads: usize, x: Mat<&[f32]>, out: Mat<&mut [f32]>) -> Result<()> {
    for (row, x_row) in out.data.chunks_mut(out.stride.max(1)).zip(x.data.chunks(x.stride.max(1))).take(out.rows) {
        for (value, x) in row[..out.cols].iter_mut().zip(x_row) {
            *value += x;
        }
    }
    Ok(())
}
