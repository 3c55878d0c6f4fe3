//! Host memory that a device copies from and to by itself: [`Pinned`].

use crate::device::lock;
use crate::error::Named;
use crate::{Device, Result};
use bytemuck::Pod;
use cudarc::driver::result;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

/// Page-locked host memory. It is read and written like a slice; whoever queues a copy from or to it
/// sees to it that the copy is done before it is used again.
#[derive(Debug)]
pub struct Pinned<T: Pod> {
    pointer: *mut T,
    len: usize,
    bytes: usize,
    /// It lives as long as the context that it was made in.
    device: Device,
}

/// Memory that nobody uses: address, bytes, device that it was made for. It is kept, since the driver ends all work of the
/// device before it frees: a collective that waits for a rank which waits for this thread would
/// never end. All devices can use it.
static UNUSED: Mutex<Vec<(usize, usize, Device)>> = Mutex::new(Vec::new());

/// The smallest that is kept and large enough, unless far too large.
fn reused(bytes: usize) -> Option<(usize, usize, Device)> {
    let mut unused = lock(&UNUSED);
    let fits = |kept: usize| kept >= bytes && kept / 4 <= bytes;
    let fitting = unused.iter().enumerate().filter(|(_, kept)| fits(kept.1));
    let best = fitting.min_by_key(|(_, kept)| kept.1).map(|(at, _)| at);
    best.map(|at| unused.swap_remove(at))
}

// SAFETY: owned memory.
unsafe impl<T: Pod> Send for Pinned<T> {}
// SAFETY: shared references only read.
unsafe impl<T: Pod> Sync for Pinned<T> {}

impl<T: Pod> Pinned<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// The system has no memory left that it may lock.
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        let needed = (len * size_of::<T>()).max(1);
        let (address, bytes, device) = if let Some(kept) = reused(needed) {
            kept
        } else {
            device.bind()?;
            // Flags 0: memory that the processor also reads fast, not write-combined.
            // SAFETY: what is returned is written below before it is read.
            let new = unsafe { result::malloc_host(needed, 0) }.named("cuMemHostAlloc")?;
            (new as usize, needed, device.clone())
        };
        let pointer = address as *mut u8;
        // SAFETY: owned memory of at least this many bytes.
        unsafe { pointer.write_bytes(0, needed) };
        Ok(Self { pointer: pointer.cast(), len, bytes, device })
    }
}

impl<T: Pod> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: owned memory of `len` elements, written in `zeros`; any bits are a `T`.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }
}

impl<T: Pod> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl<T: Pod> Drop for Pinned<T> {
    fn drop(&mut self) {
        lock(&UNUSED).push((self.pointer as usize, self.bytes, self.device.clone()));
    }
}
