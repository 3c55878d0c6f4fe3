//! A queue of work of one device: [`Stream`].

use crate::device::lock;
use crate::error::{Named, is_out_of_memory};
use crate::staging::{PART, Staging};
use crate::{Args, Buffer, Device, Error, Event, Kernel, Result, Shape, View, ViewMut};
use bytemuck::Pod;
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUstream};
use std::sync::{Arc, Mutex};

/// Work of one device, done in the order in which it is queued. Clones are the same queue.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    device: Device,
    raw: CUstream,
    /// What other streams wait for; recorded anew each time.
    joint: Mutex<Event>,
    staging: Mutex<Staging>,
}

// SAFETY: handles of the driver, which may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Stream {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let joint = Mutex::new(Event::new(device, false)?);
        // It does not wait for the driver's own stream, which nobody here uses.
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking)
            .named("cuStreamCreate")?;
        Ok(Self(Arc::new(Inner { device: device.clone(), raw, joint, staging: Mutex::default() })))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUstream {
        self.0.raw
    }

    /// Whether both are the same queue.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// `len` zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeros<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.uninit(len)?;
        self.clear(buffer.whole_mut())?;
        Ok(buffer)
    }

    /// `len` elements of whatever bits were there: for memory that is written before it is read.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn uninit<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let bytes = len as u128 * size_of::<T>() as u128;
        if bytes == 0 {
            return Ok(Buffer::from_raw(0, len, self.clone()));
        }
        let full = || {
            let (free, total) = self.device().memory().unwrap_or_default();
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            Error::OutOfMemory { ordinal: self.device().ordinal(), bytes, free, total }
        };
        let bytes = usize::try_from(bytes).map_err(|_| full())?;
        self.device().bind()?;
        // SAFETY: a stream that lives; any bits are a `T`.
        match unsafe { result::malloc_async(self.raw(), bytes) } {
            Ok(pointer) => Ok(Buffer::from_raw(pointer, len, self.clone())),
            Err(error) if is_out_of_memory(error) => Err(full()),
            Err(error) => Err(Error::of("cuMemAllocAsync", error)),
        }
    }

    /// Frees memory behind all work queued so far.
    pub(crate) fn free(&self, pointer: u64) {
        if pointer != 0 && self.device().bind().is_ok() {
            // SAFETY: memory of this stream that nobody uses in later work.
            let _ = unsafe { result::free_async(pointer, self.raw()) };
        }
    }

    /// Sets all bits to 0.
    ///
    /// # Errors
    /// The driver fails.
    pub fn clear<T: Pod>(&self, to: ViewMut<'_, T>) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        self.around(&[to.home()], || {
            // SAFETY: borrowed memory of this many bytes.
            unsafe {
                result::memset_d8_async(to.pointer(), 0, to.len() * size_of::<T>(), self.raw())
            }
            .named("cuMemsetD8Async")
        })
    }

    /// Copies host memory to the device. The slice may be changed once this returns.
    ///
    /// # Errors
    /// Other lengths; the driver fails.
    pub fn upload<T: Pod>(&self, from: &[T], to: ViewMut<'_, T>) -> Result<()> {
        same("upload", to.len(), from.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(from);
        self.around(&[to.home()], || {
            let mut staging = lock(&self.0.staging);
            for (part, from) in bytes.chunks(PART).enumerate() {
                let room = staging.room(self.device(), self.raw(), from.len())?;
                room.copy_from_slice(from);
                let to = to.pointer() + (part * PART) as u64;
                // SAFETY: pinned memory that is not written before this copy is done.
                unsafe { result::memcpy_htod_async(to, room, self.raw()) }
                    .named("cuMemcpyHtoDAsync")?;
            }
            Ok(())
        })
    }

    /// Copies device memory to the host, after all work before it; returns when it is there.
    ///
    /// # Errors
    /// Other lengths; work that failed.
    pub fn download<T: Pod>(&self, from: View<'_, T>, to: &mut [T]) -> Result<()> {
        same("download", to.len(), from.len())?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(to);
        self.around(&[from.home()], || {
            let mut staging = lock(&self.0.staging);
            for (part, to) in bytes.chunks_mut(PART).enumerate() {
                let landing = staging.landing(self.device(), to.len())?;
                let from = from.pointer() + (part * PART) as u64;
                // SAFETY: pinned memory that is not read before the copy is done.
                unsafe { result::memcpy_dtoh_async(landing, from, self.raw()) }
                    .named("cuMemcpyDtoHAsync")?;
                self.synchronize()?;
                to.copy_from_slice(landing);
            }
            Ok(())
        })
    }

    /// Copies memory of any device to memory of any device.
    ///
    /// # Errors
    /// Other lengths; the driver fails.
    pub fn copy<T: Pod>(&self, from: View<'_, T>, to: ViewMut<'_, T>) -> Result<()> {
        same("copy", to.len(), from.len())?;
        let bytes = to.len() * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        let homes = [from.home(), to.home()];
        let [source, target] = homes.map(Self::device);
        let (from, to) = (from.pointer(), to.pointer());
        if source == target {
            return self.around(&homes, || {
                // SAFETY: borrowed memory of this many bytes; the parts do not meet.
                unsafe { result::memcpy_dtod_async(to, from, bytes, self.raw()) }
                    .named("cuMemcpyDtoDAsync")
            });
        }
        // Such a copy needs no link between the devices.
        self.between(&homes, || {
            let (source, target) = (source.context(), target.context());
            // SAFETY: as above, in the devices of these contexts.
            unsafe { result::memcpy_peer_async(target, to, source, from, bytes, self.raw()) }
                .named("cuMemcpyPeerAsync")
        })
    }

    /// Starts a kernel.
    ///
    /// # Errors
    /// The driver refuses the launch.
    ///
    /// # Safety
    /// `args` are what the kernel takes, in number, order and type; what it reads and writes lies
    /// inside the memory it is given or is told of, and other memory that it is told of (by
    /// descriptors) is ordered before and after by [`after`](Self::after).
    pub unsafe fn launch(&self, kernel: Kernel, shape: Shape, args: impl Args) -> Result<()> {
        let mut homes: [Option<&Stream>; 20] = [None; 20];
        let mut foreign = 0;
        args.homes(&mut |home| {
            if !home.is(self) && !homes[..foreign].iter().flatten().any(|known| known.is(home)) {
                homes[foreign] = Some(home);
                foreign += 1;
            }
        });
        let homes = &homes[..foreign];
        for home in homes.iter().flatten() {
            self.reach(home)?;
        }
        self.device().bind()?;
        let [x, y, z] = shape.grid;
        let [threads, rows, layers] = shape.block;
        args.with(|values| {
            let (grid, block) = ((x, y, z), (threads, rows, layers));
            // SAFETY: the caller's promise.
            unsafe {
                result::launch_kernel(
                    kernel.function,
                    grid,
                    block,
                    shape.shared,
                    self.raw(),
                    values,
                )
            }
        })
        .named("cuLaunchKernel")?;
        homes.iter().flatten().try_for_each(|home| home.after(self))
    }

    /// Puts all later work of this stream behind all that `other` has queued so far.
    ///
    /// # Errors
    /// The driver fails.
    pub fn after(&self, other: &Self) -> Result<()> {
        if self.is(other) {
            return Ok(());
        }
        // The lock keeps another thread from recording between the two calls.
        let joint = lock(&other.0.joint);
        joint.record(other.raw())?;
        self.device().bind()?;
        joint.hold(self.raw())
    }

    /// [`after`](Self::after), for work that uses memory of `home` by its address: that of another
    /// device is made readable and writable first.
    ///
    /// # Errors
    /// Devices without a link between them.
    pub fn reach(&self, home: &Self) -> Result<()> {
        if home.device() != self.device() {
            self.device().reach(home.device())?;
        }
        self.after(home)
    }

    /// The work queued so far.
    ///
    /// # Errors
    /// The driver fails.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.device(), false)?;
        event.record(self.raw())?;
        Ok(event)
    }

    /// [`record`](Self::record), for a measurement.
    ///
    /// # Errors
    /// The driver fails.
    pub fn record_timed(&self) -> Result<Event> {
        let event = Event::new(self.device(), true)?;
        event.record(self.raw())?;
        Ok(event)
    }

    /// Puts later work behind that of `event`.
    ///
    /// # Errors
    /// The driver fails.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.device().bind()?;
        event.hold(self.raw())
    }

    /// Returns once all work is done.
    ///
    /// # Errors
    /// Work that failed.
    pub fn synchronize(&self) -> Result<()> {
        self.device().bind()?;
        // SAFETY: a stream that lives.
        unsafe { result::stream::synchronize(self.raw()) }.named("cuStreamSynchronize")
    }

    /// Whether all work is done.
    ///
    /// # Errors
    /// Work that failed.
    pub fn is_done(&self) -> Result<bool> {
        self.device().bind()?;
        // SAFETY: a stream that lives.
        match unsafe { sys::cuStreamQuery(self.raw()) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            done => done.result().named("cuStreamQuery").map(|()| true),
        }
    }

    /// [`between`](Self::between), for work that needs a link to the devices of `homes`.
    fn around(&self, homes: &[&Self], work: impl FnOnce() -> Result<()>) -> Result<()> {
        homes.iter().try_for_each(|home| self.device().reach(home.device()))?;
        self.between(homes, work)
    }

    /// Does `work` behind the work of `homes`, and their later work behind it.
    fn between(&self, homes: &[&Self], work: impl FnOnce() -> Result<()>) -> Result<()> {
        for home in homes {
            self.after(home)?;
        }
        self.device().bind()?;
        work()?;
        homes.iter().try_for_each(|home| home.after(self))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // Pinned memory is freed next: no copy may still read it.
            // SAFETY: a stream that lives.
            let _ = unsafe { result::stream::synchronize(self.raw) };
            // SAFETY: created once.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("device", self.device()).field("raw", &self.0.raw).finish()
    }
}

fn same(operation: &'static str, to: usize, from: usize) -> Result<()> {
    if to == from { Ok(()) } else { Err(Error::Length { operation, to, from }) }
}
