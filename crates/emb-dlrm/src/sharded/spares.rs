//! Memory that comes back by itself: [`Lent`].

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values that are lent and come back when dropped: as many as were ever out at once.
#[derive(Debug)]
pub(super) struct Spares<T>(Arc<Mutex<Vec<T>>>);

/// A value out on loan, wherever it is dropped.
pub(super) struct Lent<T: Default> {
    value: T,
    home: Arc<Mutex<Vec<T>>>,
}

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Default> Spares<T> {
    /// The value that came back last, as it was then; a new one if all are out.
    pub(super) fn lend(&self) -> Lent<T> {
        let value = lock(&self.0).pop().unwrap_or_default();
        Lent { value, home: Arc::clone(&self.0) }
    }
}

impl<T: Default> Drop for Lent<T> {
    fn drop(&mut self) {
        lock(&self.home).push(std::mem::take(&mut self.value));
    }
}

impl<T: Default> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Default + std::fmt::Debug> std::fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}

/// A list that a panic elsewhere leaves whole: values are pushed and popped in one go.
fn lock<T>(values: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_lent_again_and_two_may_be_out_at_once() {
        let spares = Spares::<Vec<i32>>::default();
        let mut first = spares.lend();
        first.push(1);
        let second = spares.lend();
        assert!(second.is_empty());
        drop(first);
        drop(second);
        assert!(spares.lend().is_empty());
        let (again, other) = (spares.lend(), spares.lend());
        assert_eq!((again.len(), &other[..]), (0, &[1][..]));
        assert_eq!(lock(&spares.0).len(), 0);
    }
}
