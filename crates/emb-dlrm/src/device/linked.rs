//! The machines of GPUs whose ranks meet by NCCL: [`Linked`] in one process, [`OneOf`] in many.

use super::gpus::Gpus;
use super::machine::{Devices, Machine, world};
use super::met::Met;
use super::process::one;
use super::threads::{all, run};
use crate::Result;
use crate::config::{Config, Ranks};
use emb_comm::{Collective, Nccl, NcclOptions, Staged, UniqueId};
use emb_kernels::Cuda;

/// A GPU for every rank, all of this process.
pub(super) struct Linked {
    gpus: Gpus,
}

impl Linked {
    /// Opens as many GPUs as there are ranks.
    ///
    /// # Errors
    /// The driver fails.
    pub(super) fn open(config: &Config) -> Result<Self> {
        let world = world(config);
        let gpus = Gpus::open(&config.device, 0..world)?;
        for (rank, other) in (0..world).flat_map(|rank| (0..world).map(move |other| (rank, other)))
        {
            // Where there is no link between two, the library goes through the host.
            let _ = gpus.of(rank).reach(gpus.of(other));
        }
        Ok(Self { gpus })
    }
}

fn options(ranks: &Ranks) -> NcclOptions {
    let node = ranks.ranks_per_node as usize;
    NcclOptions::default().with_timeout(ranks.timeout).with_ranks_per_node(node)
}

/// The ranks as callers with host memory see them.
fn staged(ranks: Nccl, backend: &Cuda) -> Result<Staged<Nccl>> {
    let stream = backend.stream().device().stream().map_err(emb_kernels::Error::from)?;
    Ok(Staged::new(ranks, &stream))
}

impl Machine for Linked {
    type Backend = Cuda;
    type Ranks = Staged<Nccl>;

    fn backend(&self) -> Result<Cuda> {
        self.gpus.backend(0)
    }

    fn run<T: Send>(
        &self,
        ranks: &Ranks,
        work: impl Fn(Staged<Nccl>, Cuda) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        run(ranks, |threads| {
            let backend = self.gpus.backend(threads.rank())?;
            let device = backend.stream().device();
            let linked = Nccl::over(all(threads)?, device, &options(ranks))?;
            work(staged(linked, &backend)?, backend)
        })
    }
}

/// A GPU for the one rank of this process.
pub(super) struct OneOf {
    gpus: Gpus,
    met: Met,
}

impl OneOf {
    /// Opens the GPU of the rank.
    ///
    /// # Errors
    /// The driver fails.
    pub(super) fn open(config: &Config, met: Met) -> Result<Self> {
        match Gpus::open(&config.device, met.local_rank..met.local_rank + 1) {
            Ok(gpus) => Ok(Self { gpus, met }),
            Err(error) => {
                met.abort(&error.to_string());
                Err(error)
            }
        }
    }
}

impl Machine for OneOf {
    type Backend = Cuda;
    type Ranks = Staged<Nccl>;

    fn backend(&self) -> Result<Cuda> {
        self.gpus.backend(0)
    }

    fn run<T: Send>(
        &self,
        ranks: &Ranks,
        work: impl Fn(Staged<Nccl>, Cuda) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let backend = self.backend().inspect_err(|error| self.met.abort(&error.to_string()))?;
        let id = UniqueId::from_bytes(self.met.id);
        let (rank, world) = (self.met.rank, self.met.hosts.len());
        let (device, options) = (backend.stream().device(), &options(ranks));
        let linked = match &self.met.control {
            Some(control) => Nccl::from_id_with(device, id, control, options)?,
            None => Nccl::from_id(device, id, rank, world, options)?,
        };
        let (linked, done) = one(staged(linked, &backend)?, |ranks| work(ranks, backend))?;
        linked.into_inner().close()?;
        Ok(vec![done])
    }
}
