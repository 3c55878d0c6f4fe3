//! Devices and transports as types: [`Machine`], [`with_machine`].

use super::{gpus, nccl};
use crate::config::{Config, DeviceKind, TransportKind};
use crate::{Error, Result};
use emb_comm::{Collective, Local};
use emb_kernels::{Backend, Cpu, CpuOptions};

/// What the ranks of a run are made of.
pub(crate) trait Machine: Sync {
    /// What computes.
    type Backend: Backend + std::fmt::Debug;
    /// What carries between ranks.
    type Ranks: Collective + 'static;

    /// What rank `rank` computes on.
    fn backend(&self, rank: usize) -> Result<Self::Backend>;

    /// The ranks, as the one sees them whose thread this is. `threads` are all of them, who call it
    /// together; `backend` is its own.
    fn connect(&self, threads: &mut Local, backend: &Self::Backend) -> Result<Self::Ranks>;
}

/// Something to be done on a machine, whichever it is.
pub(crate) trait Work {
    type Output;

    fn on<M: Machine>(self, machine: &M) -> Result<Self::Output>;
}

/// Does `work` on the device and over the transport of a configuration.
///
/// # Errors
/// A device that can't be had; what the work returns.
pub(crate) fn with_machine<W: Work>(config: &Config, work: W) -> Result<W::Output> {
    match (config.device.kind, config.device.transport) {
        (DeviceKind::Cpu | DeviceKind::Auto, _) => work.on(&Processor { threads: config.threads }),
        (DeviceKind::Cuda, TransportKind::Local) => gpus::with_local(config, work),
        (DeviceKind::Cuda, TransportKind::Nccl) => nccl::with_nccl(config, work),
    }
}

/// Ranks that compute on this machine's processor.
struct Processor {
    /// Of each rank.
    threads: usize,
}

impl Machine for Processor {
    type Backend = Cpu;
    type Ranks = Local;

    fn backend(&self, _rank: usize) -> Result<Cpu> {
        Ok(Cpu::new(CpuOptions { threads: self.threads })?)
    }

    fn connect(&self, threads: &mut Local, _backend: &Cpu) -> Result<Local> {
        all(threads)
    }
}

/// Ranks of a configuration, at least 1.
#[cfg(feature = "cuda")]
pub(super) fn world(config: &Config) -> usize {
    config.ranks.as_ref().map_or(1, crate::config::Ranks::world)
}

/// All ranks once more.
pub(super) fn all(threads: &mut Local) -> Result<Local> {
    let rank = threads.rank();
    let all = threads.split(Some(0), rank)?;
    all.ok_or_else(|| Error::Config("the transport made no set of ranks".into()))
}
