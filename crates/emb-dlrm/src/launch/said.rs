//! What processes said of themselves, as their keepers read it: [`Slate`].

use super::status::DIGITS;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The most that is read of a status: a step, and the names of a world of ranks.
const MOST: usize = 1 << 16;

/// What a process said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The step it was in; 0 before the first.
    pub(super) step: u64,
    /// Whom it missed.
    pub(super) missing: Vec<usize>,
}

/// A file for a status. It lies in memory and has no name in any folder, so that nothing is left of it,
/// whoever is killed when, and a full disk does not matter.
#[derive(Debug)]
pub(super) struct Slate(File);

impl Slate {
    /// An empty one.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("emb-status", MemfdFlags::CLOEXEC)?);
        file.write_all_at(&[b'0'; DIGITS], 0)?;
        Ok(Self(file))
    }

    /// Where other processes of this user find it, while this one lives.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// What was written; what can't be read says nothing.
    pub(super) fn read(&self) -> Said {
        let length = self.0.metadata().map_or(0, |data| data.len());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(MOST).min(MOST)];
        if self.0.read_exact_at(&mut bytes, 0).is_err() {
            return Said::default();
        }
        let text = String::from_utf8_lossy(&bytes);
        let step = text.get(..DIGITS).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let names = text.get(DIGITS..).unwrap_or("").split_whitespace();
        Said { step, missing: names.filter_map(|name| name.parse().ok()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Status;
    use std::fs::OpenOptions;

    #[test]
    fn what_is_said_is_read() -> io::Result<()> {
        let slate = Slate::new()?;
        assert_eq!(slate.read(), Said::default());
        let status = Status(OpenOptions::new().write(true).open(slate.path())?);
        status.step(37);
        status.missing(&[2, 11]);
        status.step(38);
        assert_eq!(slate.read(), Said { step: 38, missing: vec![2, 11] });
        status.step(u64::MAX);
        assert_eq!(slate.read().step, u64::MAX);
        status.0.set_len(0)?;
        assert_eq!(slate.read(), Said::default());
        Ok(())
    }
}
