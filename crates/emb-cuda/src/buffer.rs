//! Memory of a device with a home: [`Buffer`], [`View`], [`ViewMut`].

use crate::Stream;
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::Range;

/// Owned memory of a device: `len` elements. It is freed behind the work of its home stream.
#[derive(Debug)]
pub struct Buffer<T: Pod> {
    pub(crate) pointer: u64,
    len: usize,
    home: Stream,
    element: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Takes over memory of `len` elements that `home` allocated; `pointer` is 0 without elements.
    pub(crate) fn from_raw(pointer: u64, len: usize, home: Stream) -> Self {
        Self { pointer, len, home, element: PhantomData }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stream that it was made on.
    pub fn home(&self) -> &Stream {
        &self.home
    }

    /// A part, to be read.
    ///
    /// # Panics
    /// A range out of bounds.
    pub fn view(&self, range: Range<usize>) -> View<'_, T> {
        self.whole().slice(range)
    }

    /// All of it, to be read.
    pub fn whole(&self) -> View<'_, T> {
        View { pointer: self.pointer, len: self.len, home: &self.home, element: PhantomData }
    }

    /// A part, to be written.
    ///
    /// # Panics
    /// A range out of bounds.
    pub fn view_mut(&mut self, range: Range<usize>) -> ViewMut<'_, T> {
        self.whole_mut().into_slice(range)
    }

    /// All of it, to be written.
    pub fn whole_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut { pointer: self.pointer, len: self.len, home: &self.home, element: PhantomData }
    }
}

impl<T: Pod> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.home.free(self.pointer);
    }
}

/// Borrowed memory of a device, to be read.
#[derive(Debug)]
pub struct View<'a, T> {
    pointer: u64,
    len: usize,
    home: &'a Stream,
    element: PhantomData<&'a [T]>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<'a, T: Pod> View<'a, T> {
    /// Elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Address in the device.
    pub fn pointer(self) -> u64 {
        self.pointer
    }

    /// The stream that the memory was made on.
    pub fn home(self) -> &'a Stream {
        self.home
    }

    /// A part.
    ///
    /// # Panics
    /// A range out of bounds.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        inside(&range, self.len);
        let pointer = self.pointer + (range.start * size_of::<T>()) as u64;
        Self { pointer, len: range.len(), ..self }
    }

    /// The same bytes as elements of another type.
    ///
    /// # Panics
    /// A length or an address that does not fit.
    pub fn cast<U: Pod>(self) -> View<'a, U> {
        let len = cast_len::<T, U>(self.pointer, self.len);
        View { pointer: self.pointer, len, home: self.home, element: PhantomData }
    }
}

/// Borrowed memory of a device, to be read and written by nobody else.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    pointer: u64,
    len: usize,
    home: &'a Stream,
    element: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> ViewMut<'a, T> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address in the device.
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// The stream that the memory was made on.
    pub fn home(&self) -> &'a Stream {
        self.home
    }

    /// The same elements, borrowed again.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { pointer: self.pointer, len: self.len, home: self.home, element: PhantomData }
    }

    /// The same elements, to be read for as long as the result lives.
    pub fn as_view(&self) -> View<'_, T> {
        View { pointer: self.pointer, len: self.len, home: self.home, element: PhantomData }
    }

    /// A part, borrowed again.
    ///
    /// # Panics
    /// A range out of bounds.
    pub fn slice(&mut self, range: Range<usize>) -> ViewMut<'_, T> {
        self.reborrow().into_slice(range)
    }

    /// A part.
    ///
    /// # Panics
    /// A range out of bounds.
    #[must_use]
    pub fn into_slice(self, range: Range<usize>) -> Self {
        inside(&range, self.len);
        let pointer = self.pointer + (range.start * size_of::<T>()) as u64;
        Self { pointer, len: range.len(), ..self }
    }

    /// The elements before `at`, and the rest.
    ///
    /// # Panics
    /// An `at` beyond the length.
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let len = self.len;
        let head = Self { pointer: self.pointer, len, home: self.home, element: PhantomData };
        (head.into_slice(0..at), self.into_slice(at..len))
    }

    /// The same bytes as elements of another type.
    ///
    /// # Panics
    /// A length or an address that does not fit.
    pub fn cast<U: Pod>(self) -> ViewMut<'a, U> {
        let len = cast_len::<T, U>(self.pointer, self.len);
        ViewMut { pointer: self.pointer, len, home: self.home, element: PhantomData }
    }
}

fn inside(range: &Range<usize>, len: usize) {
    let (start, end) = (range.start, range.end);
    assert!(start <= end && end <= len, "elements {start}..{end} of a device memory of {len}");
}

fn cast_len<T, U>(pointer: u64, len: usize) -> usize {
    let bytes = len * size_of::<T>();
    let fits =
        bytes.is_multiple_of(size_of::<U>()) && pointer.is_multiple_of(align_of::<U>() as u64);
    assert!(fits, "{bytes} bytes at {pointer:#x} as elements of {} bytes", size_of::<U>());
    bytes / size_of::<U>()
}
