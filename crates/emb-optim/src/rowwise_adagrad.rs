//! Row-wise `AdaGrad`: one accumulator for a whole row.

use crate::{
    Extent, RowRule, RowState, Slot, Statistic, limit_norm, sum_of_squares, sum_of_squares_decayed,
};

const SUM: Slot = Slot { name: "sum", extent: Extent::Row };
const SUM_LOCAL: Slot = Slot { name: "sum_local", extent: Extent::Row };

/// `v += mean(h^2)` over the row, `w -= lr * h / (sqrt(v) + eps)` with `h = g + l2 * w` (FBGEMM
/// `EXACT_ROWWISE_ADAGRAD`).
///
/// The step is computed as `w = (keep - scale * l2) * w - scale * g` with
/// `scale = lr / (sqrt(v) + eps)`; `keep = 1 - lr * decay` with decoupled decay, else 1. A row whose
/// denominator is zero (`eps = 0` and no gradient so far) only decays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowWiseAdaGrad {
    /// Learning rate of this step.
    pub lr: f32,
    /// Added after the square root.
    pub eps: f32,
    /// L2 decay that joins the gradient; 0 without.
    pub l2: f32,
    /// Factor on the weight: 1, or `1 - lr * decay` (decoupled).
    pub keep: f32,
    /// Factor on `mean(h^2)` before it is accumulated: 1, or what the replica rule asks for.
    pub square_scale: f64,
    /// Whether squares of this replica go to a slot of their own until the next sync
    /// ([`ReplicaRule::History`](crate::ReplicaRule::History)).
    pub history: bool,
    /// Clamp of incoming gradients, see [`RowRule::max_gradient`].
    pub max_gradient: Option<f32>,
    /// Longest norm of a row after the step, see [`limit_norm`].
    pub max_norm: Option<f32>,
}

impl RowRule for RowWiseAdaGrad {
    #[inline(always)]
    fn slots(&self) -> &'static [Slot] {
        if self.history { &[SUM, SUM_LOCAL] } else { &[SUM] }
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
        // Without decay the row is not read: phase one then moves half the bytes.
        if self.l2 == 0.0 {
            sum_of_squares(grad)
        } else {
            sum_of_squares_decayed(row, grad, self.l2)
        }
    }

    #[inline(always)]
    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], statistic: Statistic) {
        let increment = statistic.mean() * self.square_scale;
        let v = if self.history {
            state.row[1] = (f64::from(state.row[1]) + increment) as f32;
            state.row[0] + state.row[1]
        } else {
            state.row[0] = (f64::from(state.row[0]) + increment) as f32;
            state.row[0]
        };
        let denominator = v.sqrt() + self.eps;
        let scale = if denominator == 0.0 { 0.0 } else { self.lr / denominator };
        let keep = self.keep - scale * self.l2;
        for (w, &g) in row.iter_mut().zip(grad) {
            *w = keep * *w - scale * g;
        }
        limit_norm(row, self.max_norm);
    }
}
