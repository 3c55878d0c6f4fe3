//! Adam with one second moment a row.

use crate::{
    BiasCorrection, Extent, RowRule, RowState, Slot, Statistic, limit_norm, sum_of_squares,
    sum_of_squares_decayed,
};

const SLOTS: &[Slot] = &[
    Slot { name: "exp_avg", extent: Extent::Element },
    Slot { name: "exp_avg_sq", extent: Extent::Row },
];

/// [`Adam`](crate::Adam) with `v = beta2 * v + (1 - beta2) * mean(h^2)` over the row (FBGEMM
/// `PARTIAL_ROWWISE_ADAM`): half the state of Adam plus one number a row.
///
/// The step of the row is `w = keep * w - scale * m` with
/// `scale = step_size / (sqrt(v) * root_scale + eps)`, and `scale = 0` where the denominator is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowWiseAdam {
    /// `lr / (1 - beta1^t)`.
    pub step_size: f32,
    /// `1 / sqrt(1 - beta2^t)`.
    pub root_scale: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// `1 - beta1`, rounded once.
    pub gain1: f32,
    /// Decay of the second moment.
    pub beta2: f64,
    /// `1 - beta2`; times `1 / M` under [`ReplicaRule::Moment`](crate::ReplicaRule::Moment).
    pub gain2: f64,
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

impl RowWiseAdam {
    /// The plain rule at learning rate `lr` and the corrections of one step: no decay, no limits.
    pub fn new(lr: f64, (beta1, beta2): (f64, f64), eps: f64, bias: BiasCorrection) -> Self {
        Self {
            step_size: (lr / bias.first) as f32,
            root_scale: (1.0 / bias.second.sqrt()) as f32,
            beta1: beta1 as f32,
            gain1: (1.0 - beta1) as f32,
            beta2,
            gain2: 1.0 - beta2,
            eps: eps as f32,
            l2: 0.0,
            keep: 1.0,
            max_gradient: None,
            max_norm: None,
        }
    }
}

impl RowRule for RowWiseAdam {
    #[inline(always)]
    fn slots(&self) -> &'static [Slot] {
        SLOTS
    }

    #[inline(always)]
    fn uses_statistic(&self) -> bool {
        true
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
    fn statistic(&self, row: &[f32], grad: &[f32]) -> f64 {
        if self.l2 == 0.0 {
            sum_of_squares(grad)
        } else {
            sum_of_squares_decayed(row, grad, self.l2)
        }
    }

    #[inline(always)]
    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], statistic: Statistic) {
        let v = self.beta2 * f64::from(state.row[0]) + self.gain2 * statistic.mean();
        state.row[0] = v as f32;
        let denominator = state.row[0].sqrt() * self.root_scale + self.eps;
        let scale = if denominator == 0.0 { 0.0 } else { self.step_size / denominator };
        for ((w, &g), m) in row.iter_mut().zip(grad).zip(state.element) {
            *m = self.beta1 * *m + self.gain1 * (g + self.l2 * *w);
            *w = self.keep * *w - scale * *m;
        }
        limit_norm(row, self.max_norm);
    }
}
