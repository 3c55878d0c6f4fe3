//! Stochastic gradient descent.

use crate::{RowRule, RowState, Slot, Statistic};

/// `w -= lr * g` (FBGEMM `EXACT_SGD`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate of this step.
    pub lr: f32,
    /// Clamp of incoming gradients, see [`RowRule::max_gradient`].
    pub max_gradient: Option<f32>,
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
            *w -= self.lr * g;
        }
    }
}
