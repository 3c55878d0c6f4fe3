//! Values handed from one thread to another without allocation: [`queue`].
//!
//! The channels of the standard library allocate when a thread first waits, which may be in any
//! step; a lock and a condition do not.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A queue with room for `room` values, at least 1: an end to give, an end to take.
pub(crate) fn queue<T>(room: usize) -> (Giver<T>, Taker<T>) {
    let state = State { values: VecDeque::with_capacity(room), closed: false };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), room });
    (Giver(Arc::clone(&shared)), Taker(shared))
}

/// The end that gives; dropped, the other end takes what is left and then nothing.
#[derive(Debug)]
pub(crate) struct Giver<T>(Arc<Shared<T>>);

/// The end that takes; dropped, nothing more can be given.
#[derive(Debug)]
pub(crate) struct Taker<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    room: usize,
}

#[derive(Debug)]
struct State<T> {
    values: VecDeque<T>,
    closed: bool,
}

impl<T> Giver<T> {
    /// Waits for room; gives the value back where nobody takes any more.
    pub(crate) fn give(&self, value: T) -> Result<(), T> {
        let mut state = self.0.wait_while(|state| state.values.len() == self.0.room);
        if state.closed {
            return Err(value);
        }
        state.values.push_back(value);
        self.0.changed.notify_all();
        Ok(())
    }
}

impl<T> Taker<T> {
    /// Waits for a value; `None` where none will come.
    pub(crate) fn take(&self) -> Option<T> {
        let mut state = self.0.wait_while(|state| state.values.is_empty());
        let value = state.values.pop_front();
        self.0.changed.notify_all();
        value
    }
}

impl<T> Shared<T> {
    fn wait_while(&self, full: impl Fn(&State<T>) -> bool) -> MutexGuard<'_, State<T>> {
        // Values are whole under the lock, whatever happened to a thread that held it.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |state: &mut State<T>| !state.closed && full(state);
        self.changed.wait_while(state, wait).unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.changed.notify_all();
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::queue;
    use std::thread;

    #[test]
    fn values_arrive_in_order_through_a_small_room() {
        let (giver, taker) = queue(2);
        let giving = thread::spawn(move || (0..1000).try_for_each(|value| giver.give(value)));
        let taken: Vec<i32> = std::iter::from_fn(|| taker.take()).collect();
        assert_eq!(giving.join().expect("no panic"), Ok(()));
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_given_is_taken_after_the_giver_is_gone() {
        let (giver, taker) = queue(4);
        giver.give(1).expect("room");
        drop(giver);
        assert_eq!((taker.take(), taker.take()), (Some(1), None));
    }

    #[test]
    fn a_giver_that_waits_for_room_learns_that_nobody_takes() {
        let (giver, taker) = queue(1);
        giver.give(1).expect("room");
        let giving = thread::spawn(move || giver.give(2));
        drop(taker);
        assert_eq!(giving.join().expect("no panic"), Err(2));
    }
}
