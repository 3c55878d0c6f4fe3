//! Hands one borrowed closure at a time to a waiting thread, without allocating.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the waiting thread is to do.
#[derive(Debug, Default)]
enum Order {
    #[default]
    Wait,
    Run(Job),
    Done,
    Stop,
}

/// A type-erased pointer to a [`Task`].
#[derive(Clone, Copy, Debug)]
struct Job {
    task: *mut (),
    /// # Safety
    /// `task` must point to the live task that the function was made for.
    run: unsafe fn(*mut ()),
}

// SAFETY: a job is made only by `Slot::submit`, from a task whose closure and result are `Send`,
// and the submitting thread waits while another one runs it.
unsafe impl Send for Job {}

/// The meeting place of one caller and one waiting thread.
#[derive(Debug, Default)]
pub(super) struct Slot {
    order: Mutex<Order>,
    changed: Condvar,
}

/// A closure and the place of its result, on the caller's stack.
pub(super) struct Task<F, R> {
    work: Option<F>,
    outcome: Option<Result<R, Box<dyn Any + Send>>>,
}

impl<R: Send, F: FnOnce() -> R + Send> Task<F, R> {
    pub(super) fn new(work: F) -> Self {
        Self { work: Some(work), outcome: None }
    }

    /// The result of a submitted task; a panic of it goes on here.
    pub(super) fn finish(self) -> R {
        self.outcome
            .expect("invariant: `submit` returns after the task has run")
            .unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// # Safety
    /// `task` points to a live `Self` that nobody else uses meanwhile.
    unsafe fn run(task: *mut ()) {
        // SAFETY: the caller promises a live task, borrowed by nobody else.
        let task = unsafe { &mut *task.cast::<Self>() };
        if let Some(work) = task.work.take() {
            task.outcome = Some(catch_unwind(AssertUnwindSafe(work)));
        }
    }
}

impl Slot {
    /// Has the waiting thread run `task`, and returns when it has.
    pub(super) fn submit<R: Send, F: FnOnce() -> R + Send>(&self, task: &mut Task<F, R>) {
        let job = Job { task: std::ptr::from_mut(task).cast(), run: Task::<F, R>::run };
        let mut order = self.lock();
        *order = Order::Run(job);
        self.changed.notify_all();
        while !matches!(*order, Order::Done) {
            order = self.wait(order);
        }
        *order = Order::Wait;
    }

    /// Runs submitted tasks until [`stop`](Self::stop).
    pub(super) fn serve(&self) {
        let mut order = self.lock();
        loop {
            match *order {
                Order::Stop => return,
                Order::Run(job) => {
                    drop(order);
                    // SAFETY: `submit` keeps the task alive and does not touch it before `Done`.
                    unsafe { (job.run)(job.task) };
                    order = self.lock();
                    *order = Order::Done;
                    self.changed.notify_all();
                }
                Order::Wait | Order::Done => order = self.wait(order),
            }
        }
    }

    /// Makes [`serve`](Self::serve) return.
    pub(super) fn stop(&self) {
        *self.lock() = Order::Stop;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Order> {
        // No code that can panic runs under the lock.
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, order: MutexGuard<'a, Order>) -> MutexGuard<'a, Order> {
        self.changed.wait(order).unwrap_or_else(PoisonError::into_inner)
    }
}
