//! Files that are being written: [`Unfinished`], and what a full disk means: [`no_room`].

use crate::{Error, Result};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file that means nothing yet: removed again, whatever fails, unless it is [`done`](Self::done).
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    done: bool,
}

impl Unfinished {
    /// Creates the file, or empties it.
    pub(super) fn create(path: PathBuf) -> Result<(Self, File)> {
        let file = File::create(&path).map_err(Error::io("creating", &path))?;
        Ok((Self { path, done: false }, file))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file another name, which means nothing yet either.
    pub(super) fn rename(&mut self, to: PathBuf) -> Result<()> {
        std::fs::rename(&self.path, &to).map_err(Error::io("renaming", &self.path))?;
        self.path = to;
        Ok(())
    }

    /// Something counts on the file from now on.
    pub(super) fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.done {
            // What can't be removed now is removed by the next save.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Says of an error how much room a checkpoint of `needed` bytes lacks in `dir`, if that is what it is
/// about. To be called when what was written of it is gone again.
pub(super) fn no_room(error: Error, dir: &Path, needed: u64) -> Error {
    match error {
        Error::Io { action, path, source }
            if matches!(
                source.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
            ) =>
        {
            let free = free(dir).map_or(String::new(), |free| format!(", {free} are free"));
            let remedy = match source.kind() {
                ErrorKind::FileTooLarge => "allow longer files (ulimit -f unlimited)",
                ErrorKind::QuotaExceeded => "make room within your quota",
                _ => "make room",
            };
            let dir = dir.display();
            let room = format!(
                "the new checkpoint takes {needed} bytes in {dir}{free}; the one before it, if any, is \
                 whole: {remedy}, or give --save a folder on another disk"
            );
            Error::NoRoom { action, path, source, room }
        }
        other => other,
    }
}

/// Bytes that this user may still write to the file system of a folder, where that can be asked.
#[cfg(feature = "cli")]
fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail * found.f_frsize)
}

/// This build can't ask.
#[cfg(not(feature = "cli"))]
fn free(_folder: &Path) -> Option<u64> {
    None
}
