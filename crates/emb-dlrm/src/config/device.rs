//! What computes a run and what carries between its ranks, decided: [`Device`].

use super::Options;
use super::words::{DeviceKind, PrecisionKind, TransportKind};
use crate::{Error, Result, device};

/// The device and the transport of a run, on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// What computes; never [`DeviceKind::Auto`].
    pub kind: DeviceKind,
    /// GPUs of this machine, to which ranks are dealt in turn; 0 where the processor computes.
    pub count: usize,
    /// What matrix products multiply.
    pub precision: PrecisionKind,
    /// What carries between ranks.
    pub transport: TransportKind,
    /// Why [`DeviceKind::Auto`] took this one; `None` where the device was named.
    pub reason: Option<String>,
}

impl Device {
    /// Reads the options of devices, and looks for a GPU where they ask for one. `local` are the
    /// ranks of this host where they are processes.
    ///
    /// # Errors
    /// Options that contradict each other or have no effect; a GPU, driver or library that is asked
    /// for and not there; more ranks than GPUs over NCCL.
    pub(super) fn from_options(options: &Options, local: Option<usize>) -> Result<Self> {
        let transport = options.transport.unwrap_or(TransportKind::Local);
        let precision = options.precision.unwrap_or(PrecisionKind::F32);
        if transport == TransportKind::Mpi {
            find_mpi()?;
        }
        let found =
            Self { precision, transport, ..chosen(options.device.unwrap_or(DeviceKind::Cpu))? };
        if found.kind == DeviceKind::Cpu {
            return found.on_the_processor(options);
        }
        let threads = [
            ("threads", options.threads.is_some()),
            ("threads-per-rank", options.threads_per_rank.is_some()),
        ];
        if let Some((name, _)) = threads.iter().find(|(_, given)| *given)
            && found.reason.is_none()
        {
            return Err(Error::Config(format!("--{name} has no effect where a GPU computes")));
        }
        if transport == TransportKind::Nccl {
            let world = options.world.unwrap_or(1) as usize;
            found.check_nccl(local.unwrap_or(world), local.is_some())?;
        }
        Ok(found)
    }

    fn on_the_processor(self, options: &Options) -> Result<Self> {
        let auto = self.reason.as_ref().map_or(String::new(), |reason| format!("; {reason}"));
        if self.transport == TransportKind::Nccl {
            return Err(Error::Config(format!(
                "--transport nccl carries between GPUs: give --device cuda{auto}"
            )));
        }
        let on_cpu = Self { precision: PrecisionKind::F32, ..self };
        let asked = options.precision.filter(|&precision| precision != PrecisionKind::F32);
        match (asked, on_cpu.reason.clone()) {
            (None, _) => Ok(on_cpu),
            (Some(precision), Some(reason)) => {
                let reason = Some(format!("{reason}; --precision {precision} has no effect"));
                Ok(Self { reason, ..on_cpu })
            }
            (Some(precision), None) => Err(Error::Config(format!(
                "--precision {precision} has no effect on the processor: give --device cuda"
            ))),
        }
    }

    fn check_nccl(&self, ranks: usize, processes: bool) -> Result<()> {
        if ranks > self.count {
            let devices = if self.count == 1 { "device" } else { "devices" };
            let (asked, remedy) = if processes {
                (format!("this host has {ranks} ranks and"), "start fewer, or on more hosts")
            } else {
                (
                    format!("--world is {ranks}, this machine has"),
                    "--transport local puts several ranks on one",
                )
            };
            return Err(Error::Config(format!(
                "--transport nccl takes one rank a device: {asked} {} {devices}; {remedy}",
                self.count
            )));
        }
        device::find_nccl()
    }
}

/// Whether there is MPI in this build.
#[cfg(feature = "data")]
fn find_mpi() -> Result<()> {
    device::find_mpi()
}

/// Only what reads data trains over processes.
#[cfg(not(feature = "data"))]
fn find_mpi() -> Result<()> {
    Err(Error::NotBuilt("data"))
}

/// The device that a word means here.
fn chosen(kind: DeviceKind) -> Result<Device> {
    let none = Device {
        kind: DeviceKind::Cpu,
        count: 0,
        precision: PrecisionKind::F32,
        transport: TransportKind::Local,
        reason: None,
    };
    if kind == DeviceKind::Cpu {
        return Ok(none);
    }
    let found = device::count();
    let cuda = |count, reason| Device { kind: DeviceKind::Cuda, count, reason, ..none.clone() };
    match (kind, found) {
        (DeviceKind::Auto, Ok(count)) => {
            Ok(cuda(count, Some("auto took cuda: driver and device are there".to_owned())))
        }
        (DeviceKind::Auto, Err(error)) => {
            Ok(Device { reason: Some(format!("auto took cpu: {error}")), ..none })
        }
        (_, found) => Ok(cuda(found?, None)),
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, count, precision, .. } = self;
        write!(f, "{kind}")?;
        if *kind == DeviceKind::Cuda {
            let s = if *count == 1 { "" } else { "s" };
            write!(f, ", {count} device{s}, products of {precision}")?;
        }
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}
