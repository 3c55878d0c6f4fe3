//! What processes said of themselves, as their keepers read it: [`read`].

use super::status::DIGITS;
use std::io;
use std::path::Path;

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
pub(super) fn create(path: &Path) -> io::Result<()> {
    std::fs::write(path, [b'0'; DIGITS])
}

/// Reads a status; what can't be read says nothing.
pub(super) fn read(path: &Path) -> Said {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let step = text.get(..DIGITS).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let names = text.get(DIGITS..).unwrap_or("").split_whitespace();
    Said { step, missing: names.filter_map(|name| name.parse().ok()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Status;
    use std::fs::OpenOptions;

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
