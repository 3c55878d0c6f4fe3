//! What a process says of itself while it runs, for who started it: [`Status`].

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Names the file that a process keeps its status in.
pub(super) const VARIABLE: &str = "EMB_STATUS";
/// Exit code of a process that found nothing wrong with itself, but lost a peer: it may be started
/// again (`EX_TEMPFAIL` of sysexits.h).
pub const PEER_FAILED: u8 = 75;

/// Digits of a step in the file.
const DIGITS: usize = 20;

/// The status of this process, as `emb launch` asks for it: the step that it is in, and who is
/// missing. A file of its host, because a process that is killed can say nothing more, and a file
/// stays.
#[derive(Debug)]
pub struct Status(File);

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

/// What a process said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The step it was in; 0 before the first.
    pub(super) step: u64,
    /// Whom it missed.
    pub(super) missing: Vec<usize>,
}

/// Makes an empty file for a status.
///
/// # Errors
/// It can't be made.
#[cfg(feature = "cli")]
pub(super) fn create(path: &Path) -> io::Result<()> {
    std::fs::write(path, [b'0'; DIGITS])
}

/// Reads a status; what can't be read says nothing.
#[cfg(feature = "cli")]
pub(super) fn read(path: &Path) -> Said {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let step = text.get(..DIGITS).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let names = text.get(DIGITS..).unwrap_or("").split_whitespace();
    Said { step, missing: names.filter_map(|name| name.parse().ok()).collect() }
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("emb-status-{}", std::process::id()));
        create(&path)?;
        assert_eq!(read(&path), Said::default());
        let status = Status(OpenOptions::new().write(true).open(&path)?);
        status.step(37);
        status.missing(&[2, 11]);
        status.step(38);
        assert_eq!(read(&path), Said { step: 38, missing: vec![2, 11] });
        status.step(u64::MAX);
        assert_eq!(read(&path).step, u64::MAX);
        std::fs::remove_file(&path)?;
        assert_eq!(read(&path), Said::default());
        Ok(())
    }
}
