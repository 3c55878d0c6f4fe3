//! Element-wise part of a cross layer.
use crate::{Mat, Result};

pub(crate) fn cross(
    _threads: usize,
    x0: Mat<&[f32]>,
    u: Mat<&[f32]>,
    bias: &[f32],
    x: Mat<&[f32]>,
    out: Mat<&mut [f32]>,
) -> Result<()> {
    for i in 0..x.rows {
        for (j, b) in bias.iter().enumerate() {
            let a = x0.data[i * x0.stride + j] * (u.data[i * u.stride + j] + b);
            out.data[i * out.stride + j] = a + x.data[i * x.stride + j];
        }
    }
    Ok(())
}

pub(crate) fn cross_backward(
    _threads: usize,
    x0: Mat<&[f32]>,
    u: Mat<&[f32]>,
    bias: &[f32],
    gradient: Mat<&[f32]>,
    u_gradient: Mat<&mut [f32]>,
    x0_gradient: Mat<&mut [f32]>,
    bias_gradient: &mut [f32],
) -> Result<()> {
    bias_gradient.fill(0.0);
    for i in 0..gradient.rows {
        for (j, b) in bias.iter().enumerate() {
            let g = gradient.data[i * gradient.stride + j];
            let du = g * x0.data[i * x0.stride + j];
            u_gradient.data[i * u_gradient.stride + j] = du;
            x0_gradient.data[i * x0_gradient.stride + j] += g * (u.data[i * u.stride + j] + b);
            bias_gradient[j] += du;
        }
    }
    Ok(())
}
