//! Host memory that a device copies from and to by itself: [`Pinned`].

use crate::error::Named;
use crate::{Device, Result};
use bytemuck::Pod;
use cudarc::driver::result;
use std::ops::{Deref, DerefMut};

/// Page-locked host memory. It is read and written like a slice; whoever queues a copy from or to it
/// sees to it that the copy is done before it is used again.
#[derive(Debug)]
pub struct Pinned<T: Pod> {
    pointer: *mut T,
    len: usize,
    device: Device,
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
        device.bind()?;
        let bytes = (len * size_of::<T>()).max(1);
        // Flags 0: memory that the processor also reads fast, not write-combined.
        // SAFETY: what is returned is written below before it is read.
        let pointer = unsafe { result::malloc_host(bytes, 0) }.named("cuMemHostAlloc")?;
        // SAFETY: just allocated, of this many bytes.
        unsafe { pointer.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self { pointer: pointer.cast(), len, device: device.clone() })
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
        if self.device.bind().is_ok() {
            // SAFETY: allocated once, in `zeros`.
            let _ = unsafe { result::free_host(self.pointer.cast()) };
        }
    }
}
