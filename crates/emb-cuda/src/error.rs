//! The one error type of this crate.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the names and values a person needs to find it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library that is not on this machine, or not where it is looked for.
    #[error("{library} cannot be loaded: tried {tried} (search path {path})")]
    NoLibrary {
        /// What it is, in words.
        library: &'static str,
        /// Names and paths tried, in order.
        tried: String,
        /// Where the loader looks besides its own folders.
        path: String,
    },
    /// A driver without devices, or fewer than asked for.
    #[error("no CUDA device {ordinal}: the driver has {devices}")]
    NoDevice {
        /// The device asked for.
        ordinal: usize,
        /// Devices that there are.
        devices: usize,
    },
    /// Memory that a device does not have.
    #[error("device {ordinal}: no room for {bytes} bytes; {free} of {total} bytes are free")]
    OutOfMemory {
        /// The device.
        ordinal: usize,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes free at that moment.
        free: u64,
        /// Bytes of the device.
        total: u64,
    },
    /// A call that failed.
    #[error("{call}: {name}: {text}")]
    Call {
        /// The call.
        call: &'static str,
        /// Name of the code.
        name: String,
        /// What the driver says about it.
        text: String,
    },
    /// A kernel that the image does not have.
    #[error("the kernel image has no {kernel:?}: it was built from other sources")]
    NoKernel {
        /// Name of the kernel.
        kernel: String,
    },
    /// No image of the kernels.
    #[error("no kernel image: {0}; `cargo xtask kernels` builds it")]
    NoImage(String),
    /// Source that does not compile.
    #[error("{name}:\n{log}")]
    Compile {
        /// Name given to the source.
        name: String,
        /// The compiler's words.
        log: String,
    },
    /// Two memories, or a memory and a slice, of different lengths.
    #[error("{operation}: {to} elements to be made from {from}")]
    Length {
        /// The operation.
        operation: &'static str,
        /// Elements of the destination.
        to: usize,
        /// Elements of the source.
        from: usize,
    },
}

impl Error {
    /// The failure of a driver's call.
    pub(crate) fn of(call: &'static str, error: DriverError) -> Self {
        let text = |text: std::result::Result<&std::ffi::CStr, DriverError>| {
            text.map_or_else(
                |_| format!("{:?}", error.0),
                |text| text.to_string_lossy().into_owned(),
            )
        };
        Self::Call { call, name: text(error.error_name()), text: text(error.error_string()) }
    }
}

/// Whether the driver ran out of memory.
pub(crate) fn is_out_of_memory(error: DriverError) -> bool {
    error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY
}

/// A driver's result as one of this crate, with the name of the call.
pub(crate) trait Named<T> {
    /// Names the call.
    fn named(self, call: &'static str) -> Result<T>;
}

impl<T> Named<T> for std::result::Result<T, DriverError> {
    fn named(self, call: &'static str) -> Result<T> {
        self.map_err(|error| Error::of(call, error))
    }
}
