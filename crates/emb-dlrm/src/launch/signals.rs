//! Signals to this process as messages: [`forward_signals`].

use super::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

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
