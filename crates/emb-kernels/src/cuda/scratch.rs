//! Memory of a device that is kept between calls: [`Kept`].

use crate::Result;
use bytemuck::Pod;
use emb_cuda::{Buffer, Stream};

/// A buffer that grows by doubling and never shrinks: once it has seen the largest call, nothing is
/// allocated.
#[derive(Debug)]
pub(super) struct Kept<T: Pod>(Option<Buffer<T>>);

impl<T: Pod> Default for Kept<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> Kept<T> {
    /// At least `len` elements of any value.
    ///
    /// # Errors
    /// The device is out of memory.
    pub(super) fn room(&mut self, stream: &Stream, len: usize) -> Result<&mut Buffer<T>> {
        if let Some(kept) = self.0.take_if(|kept| kept.len() < len) {
            // Freed first: both at once may not fit.
            drop(kept);
        }
        match &mut self.0 {
            Some(kept) => Ok(kept),
            none => Ok(none.insert(stream.uninit(len.next_power_of_two())?)),
        }
    }

    /// Where it is now: another place after it has grown.
    pub(super) fn place(&self) -> u64 {
        self.0.as_ref().map_or(0, |kept| kept.whole().pointer())
    }
}
