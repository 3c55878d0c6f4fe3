//! Signals to this process as messages: [`forward_signals`], [`Requests`].

use super::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Hands every interrupt, hang-up and request to end to `to`, instead of ending this process.
///
/// # Errors
/// The system refuses.
pub(super) fn forward_signals(to: impl Fn(i32) + Send + 'static) -> Result<(), Error> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| Error::Start(format!("listening to signals: {error}")))?;
    std::thread::spawn(move || {
        for signal in &mut signals {
            to(signal);
        }
    });
    Ok(())
}

/// Signals to this process, for all worlds that it starts.
#[derive(Clone, Debug)]
pub struct Requests {
    signal: Arc<AtomicI32>,
    times: Arc<AtomicUsize>,
}

impl Requests {
    /// The last one; 0 where none came.
    pub(super) fn signal(&self) -> i32 {
        self.signal.load(Ordering::Relaxed)
    }

    /// How many came.
    pub(super) fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }

    /// Listens to signals from now on.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen() -> Result<Self, Error> {
        let requests = Self { signal: Arc::default(), times: Arc::default() };
        let to = requests.clone();
        forward_signals(move |signal| {
            to.signal.store(signal, Ordering::Relaxed);
            to.times.fetch_add(1, Ordering::Relaxed);
        })?;
        Ok(requests)
    }
}
