//! Memory kept from step to step: [`Grown`] on a device, [`ListMemory`] for lists of borrows.

use super::error::Result;
use emb_kernels::{Backend, Scalar};

/// A backend's memory that only grows; what is used is its beginning.
pub(super) struct Grown<B: Backend, T: Scalar> {
    buffer: Option<B::Buffer<T>>,
}

impl<B: Backend, T: Scalar> Default for Grown<B, T> {
    fn default() -> Self {
        Self { buffer: None }
    }
}

impl<B: Backend, T: Scalar> std::fmt::Debug for Grown<B, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let len = self.buffer.as_ref().map_or(0, B::len);
        f.debug_struct("Grown").field("len", &len).finish()
    }
}

impl<B: Backend, T: Scalar> Grown<B, T> {
    /// Room for `len` elements, whatever they are.
    pub(super) fn room(&mut self, backend: &mut B, len: usize) -> Result<B::ViewMut<'_, T>> {
        let have = self.buffer.as_ref().map_or(0, B::len);
        if self.buffer.is_none() || have < len {
            // The old memory goes before the new one comes. Half more than before: batches differ.
            self.buffer = None;
            self.buffer = Some(backend.zeros(len.max(have + have / 2))?);
        }
        let buffer = self.buffer.as_mut().expect("invariant: made above");
        Ok(B::view_mut(buffer, 0..len))
    }

    /// Becomes a copy of host memory.
    pub(super) fn fill(&mut self, backend: &mut B, from: &[T]) -> Result<()> {
        let room = self.room(backend, from.len())?;
        Ok(backend.upload(from, room)?)
    }

    /// The elements of a range that there was room for.
    pub(super) fn view(&self, range: std::ops::Range<usize>) -> B::View<'_, T> {
        let buffer = self.buffer.as_ref().expect("invariant: room was made before");
        B::view(buffer, range)
    }
}

/// The memory of a list whose elements borrow, kept while there are none.
pub(super) struct ListMemory<T>(Vec<T>);

impl<T> Default for ListMemory<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> std::fmt::Debug for ListMemory<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListMemory").field("capacity", &self.0.capacity()).finish()
    }
}

impl<T> ListMemory<T> {
    /// An empty list of the same elements with another lifetime, in this memory.
    pub(super) fn take<U>(&mut self) -> Vec<U> {
        emptied(std::mem::take(&mut self.0))
    }

    /// Keeps the memory of a list.
    pub(super) fn put<U>(&mut self, list: Vec<U>) {
        self.0 = emptied(list);
    }
}

/// Collecting a list from the elements of another of the same layout reuses its memory: the
/// standard library does so today, and the test of allocations says when it no longer does.
fn emptied<T, U>(mut list: Vec<T>) -> Vec<U> {
    list.clear();
    list.into_iter().map(|_| unreachable!("invariant: the list was cleared")).collect()
}
