//! The machine of GPUs whose ranks meet by NCCL: [`Linked`].

use super::gpus::Gpus;
use super::machine::{Machine, all, world};
use crate::Result;
use crate::config::Config;
use emb_comm::{Local, Nccl, NcclOptions, Staged};
use emb_kernels::Cuda;

/// A GPU for every rank.
pub(super) struct Linked {
    gpus: Gpus,
    options: NcclOptions,
}

impl Linked {
    /// Opens as many GPUs as there are ranks.
    ///
    /// # Errors
    /// The driver fails.
    pub(super) fn open(config: &Config) -> Result<Self> {
        let world = world(config);
        let gpus = Gpus::open(&config.device, world)?;
        for (rank, other) in (0..world).flat_map(|rank| (0..world).map(move |other| (rank, other)))
        {
            // Where there is no link between two, the library goes through the host.
            let _ = gpus.of(rank).reach(gpus.of(other));
        }
        let mut options = NcclOptions::default();
        if let Some(ranks) = &config.ranks {
            let node = ranks.ranks_per_node as usize;
            options = options.with_timeout(ranks.timeout).with_ranks_per_node(node);
        }
        Ok(Self { gpus, options })
    }
}

impl Machine for Linked {
    type Backend = Cuda;
    type Ranks = Staged<Nccl>;

    fn backend(&self, rank: usize) -> Result<Cuda> {
        self.gpus.backend(rank)
    }

    fn connect(&self, threads: &mut Local, backend: &Cuda) -> Result<Staged<Nccl>> {
        let device = backend.stream().device();
        let ranks = Nccl::over(all(threads)?, device, &self.options)?;
        let stream = device.stream().map_err(emb_kernels::Error::from)?;
        Ok(Staged::new(ranks, &stream))
    }
}
