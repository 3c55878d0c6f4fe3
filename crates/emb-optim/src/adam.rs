//! Adam with lazy rows.

use crate::{BiasCorrection, Extent, RowRule, RowState, Slot, Statistic, limit_norm};

const SLOTS: &[Slot] = &[
    Slot { name: "exp_avg", extent: Extent::Element },
    Slot { name: "exp_avg_sq", extent: Extent::Element },
];

/// `m = beta1 * m + (1 - beta1) * h`, `v = beta2 * v + (1 - beta2) * h^2`,
/// `w -= lr * m' / (sqrt(v') + eps)` with `m' = m / (1 - beta1^t)`, `v' = v / (1 - beta2^t)`
/// (Kingma and Ba, arXiv 1412.6980, algorithm 1; FBGEMM `ADAM`).
///
/// `h = g + l2 * w` (`PyTorch` `Adam`); with decoupled decay `w` is first multiplied by
/// `keep = 1 - lr * decay` (`PyTorch` `AdamW`). Rows without a gradient keep weight and moments, and
/// `t` is the global step (`PyTorch` `SparseAdam`). Where the denominator is zero the element only
/// decays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// `lr / (1 - beta1^t)`.
    pub step_size: f32,
    /// `1 / sqrt(1 - beta2^t)`: turns `sqrt(v)` into `sqrt(v')`.
    pub root_scale: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// `1 - beta1`, rounded once.
    pub gain1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// `1 - beta2`, rounded once; times `1 / M` under
    /// [`ReplicaRule::Moment`](crate::ReplicaRule::Moment).
    pub gain2: f32,
    /// Added after the square root.
    pub eps: f32,
    /// L2 decay that joins the gradient; 0 without.
    pub l2: f32,
    /// Factor on the weight: 1, or `1 - lr * decay` (decoupled).
    pub keep: f32,
    /// Clamp of incoming gradients, see [`RowRule::max_gradient`].
    pub max_gradient: Option<f32>,
    /// Longest norm of a row after the step, see [`limit_norm`].
    pub max_norm: Option<f32>,
}

impl Adam {
    /// Plain Adam at learning rate `lr` and the corrections of one step: no decay, no limits.
    pub fn new(lr: f64, (beta1, beta2): (f64, f64), eps: f64, bias: BiasCorrection) -> Self {
        Self {
            step_size: (lr / bias.first) as f32,
            root_scale: (1.0 / bias.second.sqrt()) as f32,
            beta1: beta1 as f32,
            gain1: (1.0 - beta1) as f32,
            beta2: beta2 as f32,
            gain2: (1.0 - beta2) as f32,
            eps: eps as f32,
            l2: 0.0,
            keep: 1.0,
            max_gradient: None,
            max_norm: None,
        }
    }
}

impl RowRule for Adam {
    #[inline(always)]
    fn slots(&self) -> &'static [Slot] {
        SLOTS
    }

    #[inline(always)]
    fn uses_statistic(&self) -> bool {
        false
    }

    #[inline(always)]
    fn needs_whole_row(&self) -> bool {
        self.max_norm.is_some()
    }

    #[inline(always)]
    fn max_gradient(&self) -> Option<f32> {
        self.max_gradient
    }

    #[inline(always)]
    fn statistic(&self, _row: &[f32], _grad: &[f32]) -> f64 {
        0.0
    }

    #[inline(always)]
    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], _statistic: Statistic) {
        let (first, second) = state.element.split_at_mut(row.len());
        for (((w, &g), m), v) in row.iter_mut().zip(grad).zip(first).zip(second) {
            let gradient = g + self.l2 * *w;
            *m = self.beta1 * *m + self.gain1 * gradient;
            *v = self.beta2 * *v + self.gain2 * (gradient * gradient);
            let denominator = v.sqrt() * self.root_scale + self.eps;
            let quotient = self.step_size * *m / denominator;
            // NaN is not equal to zero and goes on to the weight, where it is seen.
            *w = self.keep * *w - if denominator == 0.0 { 0.0 } else { quotient };
        }
        limit_norm(row, self.max_norm);
    }
}
