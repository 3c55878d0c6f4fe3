//! What a process says of itself while it runs, for who started it: [`Status`].

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

/// Names the file that a process keeps its status in.
pub(super) const VARIABLE: &str = "EMB_STATUS";
/// Exit code of a process that found nothing wrong with itself, but lost a peer: it may be started
/// again (`EX_TEMPFAIL` of sysexits.h).
pub const PEER_FAILED: u8 = 75;

/// Exit code of a process whose messages over MPI did not end, so that it had MPI end the whole job,
/// because of a peer that does not take them (`EX_SOFTWARE` of sysexits.h).
#[cfg(any(feature = "cli", feature = "mpi", test))]
pub(super) const JOB_ENDED: u8 = 70;

/// Digits of a step in the file.
pub(super) const DIGITS: usize = 20;

/// The status of this process, as `emb launch` asks for it: the step that it is in, and who is
/// missing. A file that its keeper has in memory, because a process that is killed can say nothing more,
/// and its keeper still reads.
#[derive(Debug)]
pub struct Status(pub(super) File);

impl Status {
    /// Opens the file that the environment names; `None` where nobody asks.
    pub fn from_environment() -> Option<Self> {
        let path = super::environment(VARIABLE)?;
        OpenOptions::new().write(true).open(path).ok().map(Self)
    }

    /// Says which step begins. Allocates nothing; a status that can't be written is no reason to
    /// stop.
    pub fn step(&self, step: u64) {
        let mut line = [b'0'; DIGITS];
        let mut left = step;
        for digit in line.iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        drop(self.0.write_all_at(&line, 0));
    }

    /// Says which ranks this one waited for in vain.
    pub fn missing(&self, ranks: &[usize]) {
        let names: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        drop(self.0.write_all_at(format!(" {}\n", names.join(" ")).as_bytes(), DIGITS as u64));
    }
}
