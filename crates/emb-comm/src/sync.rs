//! Atomics and waiting: the standard library's, or those of a model checker under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// How a thread waits: it spins for about a microsecond, then lets others run, then sleeps.
///
/// Ranks may outnumber cores, so spinning is short. Sleeping starts after a few milliseconds, when
/// a peer computes and the time of waking up no longer counts.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    turns: u32,
}

#[cfg(not(loom))]
impl Backoff {
    const SPINS: u32 = 64;
    const YIELDS: u32 = 4096;

    /// Waits a little, longer each time.
    pub(crate) fn pause(&mut self) {
        if self.turns < Self::SPINS {
            std::hint::spin_loop();
        } else if self.turns < Self::SPINS + Self::YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        self.turns = self.turns.saturating_add(1);
    }

    /// Whether the spinning is over, so that looking at the clock costs nothing that matters.
    pub(crate) fn is_slow(&self) -> bool {
        self.turns > Self::SPINS
    }
}

#[cfg(loom)]
impl Backoff {
    /// Looks in vain after which an order of steps is not followed further: more of them lead to
    /// nothing new, and there is no end to them.
    const LOOKS: u32 = 1;

    /// Lets the model run another thread.
    pub(crate) fn pause(&mut self) {
        self.turns = self.turns.saturating_add(1);
        if self.turns > Self::LOOKS {
            loom::skip_branch();
        }
        loom::thread::yield_now();
    }

    /// There is no clock in a model.
    pub(crate) fn is_slow(&self) -> bool {
        true
    }
}
