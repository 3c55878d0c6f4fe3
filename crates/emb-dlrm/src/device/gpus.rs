//! GPUs that ranks compute on: [`Gpus`], and the machines of those whose ranks meet in host memory.

use super::machine::{Devices, Work, world};
use super::mpi::{self, Joined};
use super::threads::Threads;
use crate::Result;
use crate::config::{Config, Device, PrecisionKind};
use emb_kernels::{Cuda, CudaOptions, Precision};
use std::ops::Range;

/// GPUs to which ranks are dealt in turn.
pub(super) struct Gpus {
    devices: Vec<emb_cuda::Device>,
    options: CudaOptions,
}

impl Gpus {
    /// Opens those of the machine's GPUs that are dealt to ranks with these numbers on this host.
    ///
    /// # Errors
    /// The driver fails.
    pub(super) fn open(device: &Device, ranks: Range<usize>) -> Result<Self> {
        let precision = match device.precision {
            PrecisionKind::F32 => Precision::F32,
            PrecisionKind::Tf32 => Precision::Tf32,
            PrecisionKind::Bf16 => Precision::Bf16,
        };
        let count = device.count.max(1);
        let open = |rank: usize| emb_cuda::Device::open(rank % count);
        let devices: emb_cuda::Result<_> = ranks.take(count).map(open).collect();
        let devices = devices.map_err(emb_kernels::Error::from)?;
        Ok(Self { devices, options: CudaOptions::default().with_precision(precision) })
    }

    /// The GPU of a rank, counted from the first they were opened for.
    pub(super) fn of(&self, rank: usize) -> &emb_cuda::Device {
        &self.devices[rank % self.devices.len()]
    }
}

impl Devices for Gpus {
    type Backend = Cuda;

    fn backend(&self, rank: usize) -> Result<Cuda> {
        Ok(Cuda::new(self.of(rank), self.options)?)
    }
}

/// Does `work` on GPUs, with ranks that meet in the memory of this process.
///
/// # Errors
/// The driver fails; what the work returns.
pub(super) fn with_local<W: Work>(config: &Config, work: W) -> Result<W::Output> {
    work.on(&Threads(Gpus::open(&config.device, 0..world(config))?))
}

/// Does `work` on a GPU, with ranks that are processes and meet by MPI.
///
/// # Errors
/// The driver fails; what the work returns.
pub(super) fn with_mpi<W: Work>(config: &Config, joined: Joined, work: W) -> Result<W::Output> {
    let first = joined.local_rank();
    match Gpus::open(&config.device, first..first + 1) {
        Ok(gpus) => mpi::with_mpi(joined, gpus, work),
        Err(error) => {
            joined.abort(&error.to_string());
            Err(error)
        }
    }
}
