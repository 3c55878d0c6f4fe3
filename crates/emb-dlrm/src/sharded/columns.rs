//! Columns between where samples are and where rows are: pooled sums, and gradients.

use super::Class;
use super::error::Result;
use emb_comm::Collective;
use emb_kernels::Backend;

/// Which way columns go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From `[samples of the group, columns of this owner]` to `[batch, its columns]` of each owner.
    ToSamples,
    /// The other way.
    ToOwners,
}

impl<B: Backend, C: Collective> Class<B, C> {
    /// Brings the `sums` of every rank of the group, cut by whom they are for, into `received`;
    /// `samples` are those of each rank, `batch` this rank's.
    pub(super) fn exchange_columns(
        &mut self,
        batch: usize,
        samples: &[usize],
        direction: Direction,
    ) -> Result<()> {
        let Self { layout, group, sums, received, sample_counts, owner_counts, .. } = self;
        let Some(group) = group else {
            std::mem::swap(sums, received);
            return Ok(());
        };
        let width = layout.own().width;
        sample_counts.clear();
        sample_counts.extend(samples.iter().map(|samples| samples * width));
        owner_counts.clear();
        owner_counts.extend(layout.owned.iter().map(|owned| batch * owned.width));
        let (send, recv) = match direction {
            Direction::ToSamples => (sample_counts, owner_counts),
            Direction::ToOwners => (owner_counts, sample_counts),
        };
        received.resize(recv.iter().sum(), 0.0);
        Ok(group.all_to_all_v::<f32>(sums, send, received, recv)?)
    }
}
