//! Ranks that are processes and meet by MPI: [`Joined`], [`with_mpi`].

use super::Work;
use super::machine::{Devices, Machine};
use super::process::one;
use crate::config::Ranks;
use crate::{Error, Result};
use emb_comm::{Collective, Mpi, MpiOptions};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// This process in the world of MPI, before it is known what the ranks do.
pub(crate) struct Joined {
    world: Mpi,
    /// Its number among the ranks of this host.
    local_rank: usize,
}

impl Joined {
    /// Starts MPI, once a process.
    ///
    /// # Errors
    /// MPI can't be started; ranks of another version of this program.
    pub(super) fn start(timeout: Duration, ranks_per_node: Option<usize>) -> Result<Self> {
        Mpi::when_stuck(crate::launch::last_words);
        let mut options = MpiOptions::default().with_timeout(timeout);
        if let Some(ranks) = ranks_per_node {
            options = options.with_ranks_per_node(ranks);
        }
        let world = Mpi::start(&options)?;
        let (rank, hosts) = (world.rank(), world.hosts());
        let local_rank = hosts[..rank].iter().filter(|&host| *host == hosts[rank]).count();
        Ok(Self { world, local_rank })
    }

    /// This rank.
    pub(super) fn rank(&self) -> usize {
        self.world.rank()
    }

    /// The host of every rank.
    pub(super) fn hosts(&self) -> &[String] {
        self.world.hosts()
    }

    /// Ranks of each host, where all have equally many neighbours.
    pub(super) fn ranks_per_host(&self) -> Option<usize> {
        self.world.ranks_per_host()
    }

    /// Its number among the ranks of this host.
    #[cfg(feature = "cuda")]
    pub(super) fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Tells the other ranks that this one gives up.
    pub(super) fn abort(&self, reason: &str) {
        self.world.abort(reason);
    }
}

/// The library and its version, as it calls itself.
pub(super) fn library() -> String {
    Mpi::library()
}

/// Whether there is MPI in this build.
pub(super) const BUILT: bool = true;

/// Does `work` on these devices, with the ranks of MPI.
///
/// # Errors
/// What the work returns.
pub(super) fn with_mpi<D: Devices, W: Work>(
    joined: Joined,
    devices: D,
    work: W,
) -> Result<W::Output> {
    let Joined { world, local_rank } = joined;
    work.on(&Processes { devices, local_rank, world: Mutex::new(Some(world)) })
}

/// The machine of ranks of MPI.
struct Processes<D> {
    devices: D,
    local_rank: usize,
    /// Until the ranks run.
    world: Mutex<Option<Mpi>>,
}

impl<D: Devices> Machine for Processes<D> {
    type Backend = D::Backend;
    type Ranks = Mpi;

    fn backend(&self) -> Result<D::Backend> {
        self.devices.backend(self.local_rank)
    }

    fn run<T: Send>(
        &self,
        _ranks: &Ranks,
        work: impl Fn(Mpi, D::Backend) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner).take();
        let world =
            world.ok_or_else(|| Error::Config("the ranks of MPI have run before".into()))?;
        let (world, done) = one(world, |ranks| work(ranks, self.backend()?))?;
        world.close()?;
        Ok(vec![done])
    }
}
