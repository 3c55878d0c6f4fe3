//! The background thread that owns the source.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::digest;
use super::queue::{Order, Queue};
use crate::data::{Error, Result, Source};

/// Starts the thread, which obeys the queue's orders until all ranks are gone. Batches get a digest
/// where they are `compared` with those of others.
pub(super) fn spawn<S: Source + 'static>(
    source: S,
    limit: usize,
    compared: bool,
    queue: Arc<Queue>,
) -> Result<JoinHandle<()>> {
    let work = move || {
        // The source is not looked at after a panic: it goes down with the closure.
        let obeyed = catch_unwind(AssertUnwindSafe(|| obey(source, limit, compared, &queue)));
        if let Err(panic) = obeyed {
            queue.stop(panic_message(panic.as_ref()));
        }
    };
    thread::Builder::new()
        .name("emb-feed".to_owned())
        .spawn(work)
        .map_err(|error| Error::Stopped { reason: error.to_string() })
}

fn obey<S: Source>(mut source: S, limit: usize, compared: bool, queue: &Queue) {
    while let Some(order) = queue.order() {
        match order {
            Order::Fill(mut batch) => {
                let room = Arc::get_mut(&mut batch)
                    .expect("invariant: ranks drop a batch before they give it back");
                let read = source.next(limit, room);
                let digest = if compared && read.is_ok() { digest::of(room) } else { 0 };
                queue.filled(batch, read, source.skipped(), digest);
            }
            Order::Restart(row) => queue.restarted(source.restart_at(row)),
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
}
