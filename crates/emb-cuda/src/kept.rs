//! Memory of a device that is kept between calls: [`Kept`].

use crate::{Buffer, Result, Stream, ViewMut};
use bytemuck::Pod;

/// A buffer that grows by doubling and never shrinks: once it has seen the largest call, nothing is
/// allocated.
#[derive(Debug)]
pub struct Kept<T: Pod>(Option<Buffer<T>>);

impl<T: Pod> Default for Kept<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> Kept<T> {
    /// At least `len` elements. They hold what was written before, unless more are asked for than
    /// ever: then any value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); what was kept is then gone.
    pub fn room(&mut self, stream: &Stream, len: usize) -> Result<&mut Buffer<T>> {
        if let Some(kept) = self.0.take_if(|kept| kept.len() < len) {
            // Freed first: both at once may not fit.
            drop(kept);
        }
        match &mut self.0 {
            Some(kept) => Ok(kept),
            none => Ok(none.insert(stream.uninit(len.next_power_of_two())?)),
        }
    }

    /// Where it is now, 0 for nowhere: another place after it has grown.
    pub fn place(&self) -> u64 {
        self.0.as_ref().map_or(0, |kept| kept.whole().pointer())
    }
}

impl Kept<u8> {
    /// [`room`](Self::room) for exactly `len` elements of any type.
    ///
    /// # Errors
    /// As there.
    pub fn room_of<U: Pod>(&mut self, stream: &Stream, len: usize) -> Result<ViewMut<'_, U>> {
        let bytes = len * size_of::<U>();
        Ok(self.room(stream, bytes)?.view_mut(0..bytes).cast())
    }
}
