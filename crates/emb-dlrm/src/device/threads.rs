//! The machine whose ranks are threads of this process: [`Threads`].

use super::machine::{Devices, Machine};
use crate::config::Ranks;
use crate::{Error, Result};
use emb_comm::{Collective, Local, Options};

/// Ranks that meet in the memory of this process.
pub(super) struct Threads<D>(pub(super) D);

impl<D: Devices> Machine for Threads<D> {
    type Backend = D::Backend;
    type Ranks = Local;

    fn backend(&self) -> Result<D::Backend> {
        self.0.backend(0)
    }

    fn run<T: Send>(
        &self,
        ranks: &Ranks,
        work: impl Fn(Local, D::Backend) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        run(ranks, |threads| {
            let backend = self.0.backend(threads.rank())?;
            work(all(threads)?, backend)
        })
    }
}

/// Does `work` on a thread for every rank.
///
/// # Errors
/// What failed first: which rank, in which step, and why.
pub(super) fn run<T: Send>(
    ranks: &Ranks,
    work: impl Fn(&mut Local) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let options = Options::default()
        .with_timeout(ranks.timeout)
        .with_ranks_per_node(ranks.ranks_per_node as usize);
    Ok(emb_comm::run(ranks.world(), &options, work)?)
}

/// All ranks once more.
pub(super) fn all<C: Collective>(ranks: &mut C) -> Result<C> {
    let rank = ranks.rank();
    let all = ranks.split(Some(0), rank)?;
    all.ok_or_else(|| Error::Config("the transport made no set of ranks".into()))
}
