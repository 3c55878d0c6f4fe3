//! Element-wise `AdaGrad`.

use crate::{Extent, RowRule, RowState, Slot, Statistic, limit_norm};

const SUM: Slot = Slot { name: "sum", extent: Extent::Element };
const SUM_LOCAL: Slot = Slot { name: "sum_local", extent: Extent::Element };

/// `v += h^2`, `w -= lr * h / (sqrt(v) + eps)` with `h = g + l2 * w` (FBGEMM `EXACT_ADAGRAD` and
/// `PyTorch` `Adagrad`; Duchi, Hazan and Singer 2011).
///
/// With decoupled decay `w` is first multiplied by `keep = 1 - lr * decay`. Where the denominator is
/// zero (`eps = 0` and no gradient so far) the element stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGrad {
    /// Learning rate of this step.
    pub lr: f32,
    /// Added after the square root.
    pub eps: f32,
    /// L2 decay that joins the gradient; 0 without.
    pub l2: f32,
    /// Factor on the weight: 1, or `1 - lr * decay` (decoupled).
    pub keep: f32,
    /// Factor on `h^2` before it is accumulated: 1, or what the replica rule asks for.
    pub square_scale: f32,
    /// Whether squares of this replica go to a slot of their own until the next sync
    /// ([`ReplicaRule::History`](crate::ReplicaRule::History)).
    pub history: bool,
    /// Clamp of incoming gradients, see [`RowRule::max_gradient`].
    pub max_gradient: Option<f32>,
    /// Longest norm of a row after the step, see [`limit_norm`].
    pub max_norm: Option<f32>,
}

impl RowRule for AdaGrad {
    #[inline(always)]
    fn slots(&self) -> &'static [Slot] {
        if self.history { &[SUM, SUM_LOCAL] } else { &[SUM] }
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
        let columns = row.len();
        if self.history {
            let (sum, local) = state.element.split_at_mut(columns);
            for (((w, &g), &mut h), a) in row.iter_mut().zip(grad).zip(sum).zip(local) {
                let gradient = g + self.l2 * *w;
                *a += gradient * gradient * self.square_scale;
                *w = self.keep * *w - self.move_by(gradient, h + *a);
            }
        } else {
            for ((w, &g), v) in row.iter_mut().zip(grad).zip(state.element) {
                let gradient = g + self.l2 * *w;
                *v += gradient * gradient * self.square_scale;
                *w = self.keep * *w - self.move_by(gradient, *v);
            }
        }
        limit_norm(row, self.max_norm);
    }
}

impl AdaGrad {
    /// `lr * gradient / (sqrt(v) + eps)`, and 0 where the denominator is 0; NaN stays NaN.
    #[inline(always)]
    fn move_by(&self, gradient: f32, v: f32) -> f32 {
        let denominator = v.sqrt() + self.eps;
        let quotient = self.lr * gradient / denominator;
        if denominator == 0.0 { 0.0 } else { quotient }
    }
}
