//! The rule: row-wise `AdaGrad` (FBGEMM's `EXACT_ROWWISE_ADAGRAD`) with a cap on what a weight
//! moves by in a step.

use emb_kernels::cuda::CudaRule;
use emb_optim::{Extent, RowRule, RowState, Slot, Statistic, sum_of_squares};

/// `v += mean(g^2)` over the row, `w -= clamp(lr * g / (sqrt(v) + eps), -cap, cap)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CappedAdaGrad {
    pub(crate) lr: f32,
    pub(crate) eps: f32,
    pub(crate) cap: f32,
}

impl RowRule for CappedAdaGrad {
    // The state of row-wise AdaGrad: tables are made for that optimizer.
    fn slots(&self) -> &'static [Slot] {
        &[Slot { name: "sum", extent: Extent::Row }]
    }

    #[inline(always)]
    fn uses_statistic(&self) -> bool {
        true
    }

    fn max_gradient(&self) -> Option<f32> {
        None
    }

    #[inline(always)]
    fn statistic(&self, _row: &[f32], grad: &[f32]) -> f64 {
        sum_of_squares(grad)
    }

    #[inline(always)]
    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], statistic: Statistic) {
        let sum = (f64::from(state.row[0]) + statistic.mean()) as f32;
        state.row[0] = sum;
        let scale = self.lr / (sum.sqrt() + self.eps);
        for (w, g) in row.iter_mut().zip(grad) {
            *w -= (scale * g).clamp(-self.cap, self.cap);
        }
    }
}

impl CudaRule for CappedAdaGrad {
    type Parameters = [f32; 3];
    const NAME: &'static str = "CappedAdaGrad";
    const SOURCE: &'static str = include_str!("capped.cuh");

    fn parameters(&self) -> [f32; 3] {
        [self.lr, self.eps, self.cap]
    }
}
