//! Images of kernels in a device, and the shape of a launch.

use crate::error::Named;
use crate::{Device, Error, Result};
use cudarc::driver::result;
use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule};
use std::ffi::CString;
use std::sync::Arc;

/// A function of an image, in one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub(crate) function: CUfunction,
}

// SAFETY: a handle of the driver, which may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Lets a launch have up to `bytes` of shared memory that it asks for; 48 KiB need no asking.
    ///
    /// # Errors
    /// More than the device has.
    pub fn allow_shared(self, bytes: u32) -> Result<Self> {
        let what = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a function of an image that is loaded.
        unsafe { result::function::set_function_attribute(self.function, what, bytes as i32) }
            .named("cuFuncSetAttribute")?;
        Ok(self)
    }
}

/// An image in a device. It stays loaded as long as a clone of this is kept.
#[derive(Clone, Debug)]
pub struct Module(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    module: CUmodule,
}

// SAFETY: a handle of the driver, which may be used from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    pub(crate) fn new(device: &Device, image: &[u8]) -> Result<Self> {
        device.bind()?;
        // Text must end in a zero; a fat binary knows its own length.
        let image: Vec<u8> = image.iter().copied().chain([0]).collect();
        // SAFETY: an image, ended by a zero.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) };
        Ok(Self(Arc::new(Loaded { module: module.named("cuModuleLoadData")? })))
    }

    /// A kernel of this image; it may be launched as long as the image is loaded.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let missing = || Error::NoKernel { kernel: name.to_owned() };
        let symbol = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the image is loaded.
        let function = unsafe { result::module::get_function(self.0.module, symbol) };
        function.map(|function| Kernel { function }).map_err(|_| missing())
    }
}

/// How many threads a launch has: blocks, threads of a block, and the bytes of shared memory that a
/// block gets beside those that the kernel declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks in each direction.
    pub grid: [u32; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// Bytes.
    pub shared: u32,
}

impl Shape {
    /// `blocks` blocks of `threads` threads in a row.
    pub fn new(blocks: u32, threads: u32) -> Self {
        Self { grid: [blocks, 1, 1], block: [threads, 1, 1], shared: 0 }
    }

    /// As many blocks of `threads` threads as `items` threads need, at most `most`: kernels walk
    /// on in strides of the grid.
    pub fn covering(items: u64, threads: u32, most: u32) -> Self {
        Self::new(items.div_ceil(u64::from(threads)).min(u64::from(most)).max(1) as u32, threads)
    }

    /// The same with `bytes` of shared memory for each block.
    #[must_use]
    pub fn with_shared(self, bytes: u32) -> Self {
        Self { shared: bytes, ..self }
    }
}
