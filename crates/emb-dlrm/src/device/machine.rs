//! Devices and transports as types: [`Machine`], [`with_machine`].

use super::peers::{Link, Peers};
use super::threads::Threads;
use super::{gpus, mpi, nccl};
use crate::config::{Config, DeviceKind, Ranks, TransportKind};
use crate::{Error, Result};
use emb_comm::Collective;
use emb_kernels::{Backend, Cpu, CpuOptions};

/// What ranks compute on.
pub(crate) trait Devices: Sync {
    /// What computes.
    type Backend: Backend + std::fmt::Debug;

    /// That of the rank with this number on this host.
    fn backend(&self, local_rank: usize) -> Result<Self::Backend>;
}

/// What the ranks of a run are made of, and how those that live in this process are run.
///
/// In one process all ranks are threads of it; where ranks are processes, it has one.
pub(crate) trait Machine: Sync {
    /// What computes.
    type Backend: Backend + std::fmt::Debug;
    /// What carries between ranks.
    type Ranks: Collective + 'static;

    /// What the only rank of a run computes on.
    fn backend(&self) -> Result<Self::Backend>;

    /// Does `work` on every rank that lives in this process, with its end of all ranks and its
    /// backend, and returns what it returned, in rank order. What fails on one rank, here or
    /// elsewhere, fails all.
    fn run<T: Send>(
        &self,
        ranks: &Ranks,
        work: impl Fn(Self::Ranks, Self::Backend) -> Result<T> + Sync,
    ) -> Result<Vec<T>>;
}

/// Something to be done on a machine, whichever it is.
pub(crate) trait Work {
    type Output;

    fn on<M: Machine>(self, machine: &M) -> Result<Self::Output>;
}

/// Does `work` on the device and over the transport of a configuration, with `peers` where ranks are
/// processes.
///
/// # Errors
/// A device that can't be had; a transport between processes without them; what the work returns.
pub(crate) fn with_machine<W: Work>(config: &Config, peers: Peers, work: W) -> Result<W::Output> {
    let processor = Processor { threads: config.threads };
    match (peers.link, config.device.kind, config.device.transport) {
        (Link::Mpi(world), DeviceKind::Cuda, _) => gpus::with_mpi(config, *world, work),
        (Link::Mpi(world), ..) => mpi::with_mpi(*world, processor, work),
        (Link::Nccl(met), ..) => nccl::with_processes(config, met, work),
        (Link::None, _, TransportKind::Mpi) => Err(Error::Config(
            "--transport mpi: the ranks are processes, and this one has not joined the others: see \
             train::Peers"
                .into(),
        )),
        (Link::None, DeviceKind::Cpu | DeviceKind::Auto, _) => work.on(&Threads(processor)),
        (Link::None, DeviceKind::Cuda, TransportKind::Local) => gpus::with_local(config, work),
        (Link::None, DeviceKind::Cuda, TransportKind::Nccl) => nccl::with_nccl(config, work),
    }
}

/// This machine's processor.
pub(super) struct Processor {
    /// Of each rank.
    threads: usize,
}

impl Devices for Processor {
    type Backend = Cpu;

    fn backend(&self, _local_rank: usize) -> Result<Cpu> {
        Ok(Cpu::new(CpuOptions { threads: self.threads })?)
    }
}

/// Ranks of a configuration, at least 1.
#[cfg(feature = "cuda")]
pub(super) fn world(config: &Config) -> usize {
    config.ranks.as_ref().map_or(1, Ranks::world)
}
