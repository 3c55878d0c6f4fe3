//! Specification of the dense operations: one loop per index, in `f64`, over dense row-major data.

use crate::{Activation, PairOrder};

/// `op(a) * op(b)` with `op(a)` `[m, k]` and `op(b)` `[k, n]`, given as element functions.
pub fn gemm(
    (m, n, k): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            out[i * n + j] = (0..k).map(|p| a(i, p) * b(p, j)).sum();
        }
    }
    out
}

/// `act(x + bias)` on rows of `bias.len()`.
pub fn bias_activation(x: &[f64], bias: &[f64], activation: Activation) -> Vec<f64> {
    let mut out = x.to_vec();
    for (k, out) in out.iter_mut().enumerate() {
        *out += bias[k % bias.len()];
        if activation == Activation::Relu {
            *out = out.max(0.0);
        }
    }
    out
}

/// The masked gradient, and its column sums, of a layer with output `y` (rows of `cols`).
pub fn bias_activation_backward(
    y: &[f64],
    cols: usize,
    activation: Activation,
    gradient: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let mut masked = gradient.to_vec();
    let mut sums = vec![0.0; cols];
    for (k, g) in masked.iter_mut().enumerate() {
        if activation == Activation::Relu && y[k] <= 0.0 {
            *g = 0.0;
        }
        sums[k % cols] += *g;
    }
    (masked, sums)
}

/// Pairs `(i, j)` in the order of the interaction's output.
pub fn pairs(features: usize, order: PairOrder) -> Vec<(usize, usize)> {
    let all = (0..features).flat_map(|i| (0..features).map(move |j| (i, j)));
    all.filter(|&(i, j)| match order {
        PairOrder::Lower => j < i,
        PairOrder::Upper => i < j,
    })
    .collect()
}

/// Columns of the interaction's output: `dim + features * (features - 1) / 2`.
pub fn interact_cols(features: usize, dim: usize) -> usize {
    if features == 0 { 0 } else { dim + features * (features - 1) / 2 }
}

/// The interaction of one sample: `x` is `[features, dim]`.
pub fn interact(x: &[f64], features: usize, order: PairOrder) -> Vec<f64> {
    let dim = x.len().checked_div(features).unwrap_or(0);
    let mut out = x[..dim].to_vec();
    for (i, j) in pairs(features, order) {
        out.push((0..dim).map(|d| x[i * dim + d] * x[j * dim + d]).sum());
    }
    out
}

/// Gradient of [`interact`] with respect to `x`.
pub fn interact_backward(
    x: &[f64],
    features: usize,
    gradient: &[f64],
    order: PairOrder,
) -> Vec<f64> {
    let dim = x.len().checked_div(features).unwrap_or(0);
    let mut out = vec![0.0; x.len()];
    out[..dim].copy_from_slice(&gradient[..dim]);
    for (p, (i, j)) in pairs(features, order).into_iter().enumerate() {
        for d in 0..dim {
            out[i * dim + d] += gradient[dim + p] * x[j * dim + d];
            out[j * dim + d] += gradient[dim + p] * x[i * dim + d];
        }
    }
    out
}

/// `x0 * (u + bias) + x`.
pub fn cross(x0: &[f64], u: &[f64], bias: &[f64], x: &[f64]) -> Vec<f64> {
    (0..x0.len()).map(|k| x0[k] * (u[k] + bias[k % bias.len()]) + x[k]).collect()
}

/// Gradients of [`cross`]: of `u`, of `x0` (what is to be added), of `bias`.
pub fn cross_backward(
    x0: &[f64],
    u: &[f64],
    bias: &[f64],
    gradient: &[f64],
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut sums = vec![0.0; bias.len()];
    let mut of_u = vec![0.0; u.len()];
    let mut of_x0 = vec![0.0; u.len()];
    for k in 0..u.len() {
        of_u[k] = gradient[k] * x0[k];
        of_x0[k] = gradient[k] * (u[k] + bias[k % bias.len()]);
        sums[k % bias.len()] += of_u[k];
    }
    (of_u, of_x0, sums)
}

/// `max(z, 0) - z*y + ln(1 + exp(-|z|))` of one sample.
pub fn bce(logit: f64, label: f64) -> f64 {
    logit.max(0.0) - logit * label + (-logit.abs()).exp().ln_1p()
}

/// `sigmoid(z) - y` of one sample.
pub fn bce_gradient(logit: f64, label: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp()) - label
}
