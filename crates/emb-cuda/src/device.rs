//! A GPU: its context, what it is, and the kernels that were loaded into it.

use crate::error::Named;
use crate::kernel::{Kernel, Module};
use crate::{Error, Result, Stream, image, library};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute, CUmemPool_attribute};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// One GPU. Clones are the same.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    ordinal: usize,
    device: CUdevice,
    context: CUcontext,
    name: String,
    /// The image of the project's kernels, loaded when the first is asked for.
    module: Mutex<Option<Module>>,
    kernels: Mutex<HashMap<&'static str, Kernel>>,
    /// Bit `n`: memory of device `n` can be read and written from here.
    reaches: Mutex<u64>,
}

// SAFETY: handles of the driver, which may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// Devices that are open: one context each, however often they are asked for.
static OPEN: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl Device {
    /// How many there are; 0 where the driver is there and no device is.
    ///
    /// # Errors
    /// [`Error::NoLibrary`] where there is no driver.
    pub fn count() -> Result<usize> {
        library::driver()?;
        match result::init() {
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => return Ok(0),
            done => done.named("cuInit")?,
        }
        result::device::get_count().named("cuDeviceGetCount").map(|count| count as usize)
    }

    /// Opens device `ordinal`.
    ///
    /// # Errors
    /// No driver, no such device.
    pub fn open(ordinal: usize) -> Result<Self> {
        let devices = Self::count()?;
        if ordinal >= devices {
            return Err(Error::NoDevice { ordinal, devices });
        }
        let mut open = lock(&OPEN);
        open.retain(|device| device.strong_count() > 0);
        let same = |device: &Arc<Inner>| device.ordinal == ordinal;
        if let Some(device) = open.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(Self(device));
        }
        let device = Arc::new(Inner::open(ordinal)?);
        open.push(Arc::downgrade(&device));
        let device = Self(device);
        device.keep_freed_memory()?;
        Ok(device)
    }

    /// Number of the device among those of the machine.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its multiprocessors.
    ///
    /// # Errors
    /// The driver fails.
    pub fn multiprocessors(&self) -> Result<u32> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    /// Major and minor compute capability.
    ///
    /// # Errors
    /// The driver fails.
    pub fn compute_capability(&self) -> Result<(u32, u32)> {
        let major = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        let minor = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
        Ok((self.attribute(major)?, self.attribute(minor)?))
    }

    /// Bytes that are free, and all.
    ///
    /// # Errors
    /// The driver fails.
    pub fn memory(&self) -> Result<(u64, u64)> {
        self.bind()?;
        let (free, total) = result::mem_get_info().named("cuMemGetInfo")?;
        Ok((free as u64, total as u64))
    }

    /// A new queue of work.
    ///
    /// # Errors
    /// The driver fails.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// A kernel of the project's image.
    ///
    /// # Errors
    /// No image, or one without this kernel.
    pub fn kernel(&self, name: &'static str) -> Result<Kernel> {
        if let Some(&kernel) = lock(&self.0.kernels).get(name) {
            return Ok(kernel);
        }
        self.bind()?;
        let mut module = lock(&self.0.module);
        let kernel = match &*module {
            Some(module) => module.kernel(name)?,
            None => module.insert(self.load(&image::image()?)?).kernel(name)?,
        };
        lock(&self.0.kernels).insert(name, kernel);
        Ok(kernel)
    }

    /// Loads an image of kernels: a fat binary, a cubin, or the text of PTX.
    ///
    /// # Errors
    /// An image that the driver does not take.
    pub fn load(&self, image: &[u8]) -> Result<Module> {
        Module::new(self, image)
    }

    /// Makes this device's context that of the calling thread, for calls that are not of this crate.
    ///
    /// # Errors
    /// The driver fails.
    pub fn bind(&self) -> Result<()> {
        // SAFETY: the context lives as long as this.
        unsafe { result::ctx::set_current(self.0.context) }.named("cuCtxSetCurrent")
    }

    /// The context's handle.
    pub fn context(&self) -> CUcontext {
        self.0.context
    }

    /// Makes the memory of `other` readable and writable from here.
    ///
    /// # Errors
    /// Devices without a link between them.
    pub fn reach(&self, other: &Self) -> Result<()> {
        let bit = 1_u64 << (other.ordinal() % 64);
        let mut reaches = lock(&self.0.reaches);
        if self.ordinal() == other.ordinal() || *reaches & bit != 0 {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: a context of the driver.
        let enabled = unsafe { sys::cuCtxEnablePeerAccess(other.0.context, 0) };
        if enabled != sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED {
            enabled.result().named("cuCtxEnablePeerAccess")?;
        }
        other.open_pool_to(self)?;
        *reaches |= bit;
        Ok(())
    }

    /// Memory of a pool, which all buffers are, is opened to other devices apart.
    fn open_pool_to(&self, other: &Self) -> Result<()> {
        // SAFETY: a device of the driver.
        let pool = unsafe { result::device::get_default_mem_pool(self.0.device) };
        let pool = pool.named("cuDeviceGetDefaultMemPool")?;
        let location = sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: other.0.device,
        };
        let flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let access = sys::CUmemAccessDesc { location, flags };
        // SAFETY: a pool of the driver and one description.
        let opened = unsafe { sys::cuMemPoolSetAccess(pool, &raw const access, 1) };
        opened.result().named("cuMemPoolSetAccess")
    }

    fn attribute(&self, attribute: CUdevice_attribute) -> Result<u32> {
        // SAFETY: a device of the driver.
        let value = unsafe { result::device::get_attribute(self.0.device, attribute) };
        value.named("cuDeviceGetAttribute").map(|value| value as u32)
    }

    /// Keeps freed memory with the process: a step that frees and asks again pays nothing.
    fn keep_freed_memory(&self) -> Result<()> {
        // SAFETY: a device of the driver.
        let pool = unsafe { result::device::get_default_mem_pool(self.0.device) };
        let pool = pool.named("cuDeviceGetDefaultMemPool")?;
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let mut all = u64::MAX;
        // SAFETY: this attribute is a 64-bit number.
        unsafe { result::mem_pool::set_attribute(pool, threshold, (&raw mut all).cast()) }
            .named("cuMemPoolSetAttribute")
    }
}

impl Inner {
    fn open(ordinal: usize) -> Result<Self> {
        let device = result::device::get(ordinal as i32).named("cuDeviceGet")?;
        // SAFETY: a device of the driver.
        let context = unsafe { result::primary_ctx::retain(device) };
        let context = context.named("cuDevicePrimaryCtxRetain")?;
        let name = result::device::get_name(device).named("cuDeviceGetName")?;
        let (module, kernels) = (Mutex::new(None), Mutex::default());
        Ok(Self { ordinal, device, context, name, module, kernels, reaches: Mutex::new(0) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: retained once, in `open`. At the end of a process the driver may be gone already.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.ordinal() == other.ordinal()
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.0.ordinal)
            .field("name", &self.0.name)
            .finish()
    }
}

/// A lock that a panic elsewhere does not take away: what it guards is changed in one go.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
