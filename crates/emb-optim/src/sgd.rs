//! Stochastic gradient descent.

use crate::{RowRule, RowState, Slot, Statistic, limit_norm};

/// `w = keep * w - lr * g` (FBGEMM `EXACT_SGD` for `keep = 1`).
///
/// Both kinds of weight decay come down to `keep = 1 - lr * decay`: `w - lr * (g + decay * w)` (L2)
/// and `(1 - lr * decay) * w - lr * g` (decoupled) are the same expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate of this step.
    pub lr: f32,
    /// Factor on the weight: 1, or `1 - lr * decay`.
    pub keep: f32,
    /// Clamp of incoming gradients, see [`RowRule::max_gradient`].
    pub max_gradient: Option<f32>,
    /// Longest norm of a row after the step, see [`limit_norm`].
    pub max_norm: Option<f32>,
}

impl RowRule for Sgd {
    #[inline(always)]
    fn slots(&self) -> &'static [Slot] {
        &[]
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
    fn step(&self, row: &mut [f32], _state: RowState<'_>, grad: &[f32], _statistic: Statistic) {
        for (w, &g) in row.iter_mut().zip(grad) {
            *w = self.keep * *w - self.lr * g;
        }
        limit_norm(row, self.max_norm);
    }
}
