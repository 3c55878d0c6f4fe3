//! The machine of GPUs whose ranks meet in the memory of this process: [`Gpus`].

use super::machine::{Machine, Work, all, world};
use crate::Result;
use crate::config::{Config, Device, PrecisionKind};
use emb_comm::Local;
use emb_kernels::{Cuda, CudaOptions, Precision};

/// GPUs to which ranks are dealt in turn.
pub(super) struct Gpus {
    devices: Vec<emb_cuda::Device>,
    options: CudaOptions,
}

impl Gpus {
    /// Opens the first `most` of the machine's GPUs, or all if there are fewer.
    ///
    /// # Errors
    /// The driver fails.
    pub(super) fn open(device: &Device, most: usize) -> Result<Self> {
        let precision = match device.precision {
            PrecisionKind::F32 => Precision::F32,
            PrecisionKind::Tf32 => Precision::Tf32,
            PrecisionKind::Bf16 => Precision::Bf16,
        };
        let open = |ordinal| emb_cuda::Device::open(ordinal);
        let devices: emb_cuda::Result<_> = (0..device.count.min(most)).map(open).collect();
        let devices = devices.map_err(emb_kernels::Error::from)?;
        Ok(Self { devices, options: CudaOptions::default().with_precision(precision) })
    }

    /// The GPU of a rank.
    pub(super) fn of(&self, rank: usize) -> &emb_cuda::Device {
        &self.devices[rank % self.devices.len()]
    }
}

/// Does `work` on GPUs, with ranks that meet in the memory of this process.
///
/// # Errors
/// The driver fails; what the work returns.
pub(super) fn with_local<W: Work>(config: &Config, work: W) -> Result<W::Output> {
    work.on(&Gpus::open(&config.device, world(config))?)
}

impl Machine for Gpus {
    type Backend = Cuda;
    type Ranks = Local;

    fn backend(&self, rank: usize) -> Result<Cuda> {
        Ok(Cuda::new(self.of(rank), self.options)?)
    }

    fn connect(&self, threads: &mut Local, _backend: &Cuda) -> Result<Local> {
        all(threads)
    }
}
