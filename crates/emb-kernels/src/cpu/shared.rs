//! A mutable slice that several threads write in disjoint parts.

use std::marker::PhantomData;

/// A mutable slice lent to several threads, each of which writes parts that no other touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedMut<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: the value is a `&mut [T]` taken apart; sending its parts to other threads is sound for
// `T: Send` as long as the parts are disjoint, which `part` requires of its callers.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}

impl<'a, T> SharedMut<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// Elements `first..first + len`.
    ///
    /// # Panics
    /// When the range is out of bounds.
    ///
    /// # Safety
    /// No other live part overlaps this one.
    #[inline(always)]
    pub(crate) unsafe fn part(&self, first: usize, len: usize) -> &'a mut [T] {
        assert!(first <= self.len && len <= self.len - first, "part {first}+{len} of {}", self.len);
        // SAFETY: inside the slice, by the assertion.
        let start = unsafe { self.start.add(first) };
        // SAFETY: part of a borrowed slice; the caller promises that no other part overlaps.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}
