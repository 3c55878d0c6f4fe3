//! Row-wise AdaGrad: one accumulator for a whole row.

use crate::{Extent, RowRule, RowState, Slot, Statistic};

/// `v += mean(g^2)`, `w -= lr * g / (sqrt(v) + eps)` (FBGEMM `EXACT_ROWWISE_ADAGRAD`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowWiseAdaGrad {
    /// Learning rate of this step.
    pub lr: f32,
    /// Added after the square root.
    pub eps: f32,
    /// Clamp of incoming gradients, see [`RowRule::max_gradient`].
    pub max_gradient: Option<f32>,
}

impl RowRule for RowWiseAdaGrad {
    #[inline(always)]
    fn slots(&self) -> &'static [Slot] {
        &[Slot { name: "sum", extent: Extent::Row }]
    }

    #[inline(always)]
    fn uses_statistic(&self) -> bool {
        true
    }

    #[inline(always)]
    fn max_gradient(&self) -> Option<f32> {
        self.max_gradient
    }

    #[inline(always)]
    fn statistic(&self, _row: &[f32], grad: &[f32]) -> f64 {
        grad.iter().map(|&g| f64::from(g) * f64::from(g)).sum()
    }

    #[inline(always)]
    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], statistic: Statistic) {
        let sum = f64::from(state.row[0]) + statistic.mean();
        state.row[0] = sum as f32;
        let scale = self.lr / (state.row[0].sqrt() + self.eps);
        for (w, &g) in row.iter_mut().zip(grad) {
            *w -= scale * g;
        }
    }
}
