//! Lists of local rows in a backend's memory: [`Staged`].

use super::error::Result;
use super::memory::Grown;
use super::trip::Arrived;
use emb_kernels::{Backend, JaggedView};

/// What arrived at one owner, in its backend's memory.
pub(super) struct Staged<B: Backend> {
    offsets: Grown<B, u64>,
    ids: Grown<B, i64>,
    weights: Grown<B, f32>,
}

impl<B: Backend> Default for Staged<B> {
    fn default() -> Self {
        let (offsets, ids) = (Grown::default(), Grown::default());
        Self { offsets, ids, weights: Grown::default() }
    }
}

impl<B: Backend> std::fmt::Debug for Staged<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staged").field("ids", &self.ids).finish_non_exhaustive()
    }
}

impl<B: Backend> Staged<B> {
    pub(super) fn fill(&mut self, backend: &mut B, arrived: &Arrived) -> Result<()> {
        self.offsets.fill(backend, &arrived.offsets)?;
        self.ids.fill(backend, &arrived.ids)?;
        if arrived.weighted {
            self.weights.fill(backend, &arrived.weights)?;
        }
        Ok(())
    }

    /// The lists that it was filled with, of the features `names`.
    pub(super) fn view<'a>(&'a self, names: &'a [String], arrived: &Arrived) -> JaggedView<'a, B> {
        let len = arrived.ids.len();
        JaggedView {
            names,
            batch: arrived.total(),
            len,
            offsets: self.offsets.view(0..arrived.offsets.len()),
            values: self.ids.view(0..len),
            weights: arrived.weighted.then(|| self.weights.view(0..len)),
        }
    }
}
