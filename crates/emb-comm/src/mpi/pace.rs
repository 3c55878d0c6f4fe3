//! How a rank waits: [`Pace`].

use std::time::{Duration, Instant};

/// Turns before the clock is looked at: a microsecond or a few, each moves messages on.
const QUICK: u32 = 64;

/// How long a rank yields to others before it sleeps: until the waiting is so long that the time
/// of waking up no longer counts.
const YIELDS: Duration = Duration::from_millis(5);

/// Bytes in a second of a slow exchange. As long as they may still take at that speed they are
/// likely on their way, and move only while the library is asked.
const SLOW: u64 = 1_000_000_000;

/// How long a rank sleeps then.
const SLEEP: Duration = Duration::from_micros(100);

/// Waits a little, longer each time: spins, then lets others run, then sleeps.
pub(super) struct Pace {
    turns: u32,
    spins: Duration,
    yields: Duration,
    began: Option<Instant>,
}

impl Pace {
    /// One that spins for about so long, while so many bytes are on their way.
    pub(super) fn new(spins: Duration, bytes: u64) -> Self {
        let yields = YIELDS + Duration::from_micros(bytes / (SLOW / 1_000_000));
        Self { turns: 0, spins, yields, began: None }
    }

    /// How long to spin where so many ranks share this host: not at all where they outnumber its
    /// cores, because the rank that is waited for may be the one that cannot run. Else about as
    /// long as waking up a thread takes.
    pub(super) fn spins(ranks_here: usize) -> Duration {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if ranks_here > cores { Duration::ZERO } else { Duration::from_micros(50) }
    }

    /// Whether to look at other things too.
    pub(super) fn is_slow(&self) -> bool {
        self.turns > QUICK
    }

    /// Waits a little.
    pub(super) fn pause(&mut self) {
        self.turns = self.turns.saturating_add(1);
        if self.turns <= QUICK {
            return std::hint::spin_loop();
        }
        let waited = self.began.get_or_insert_with(Instant::now).elapsed();
        if waited < self.spins {
            std::hint::spin_loop();
        } else if waited < self.spins + self.yields {
            std::thread::yield_now();
        } else {
            std::thread::sleep(SLEEP);
        }
    }
}
