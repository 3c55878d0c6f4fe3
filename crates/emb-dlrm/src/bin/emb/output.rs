//! The only place that writes to the terminal.

use emb_dlrm::Result;
use std::error::Error as _;
use std::io::{self, Write};
use std::path::Path;

/// Prints the error and its causes, once, to standard error.
pub(crate) fn error(error: &emb_dlrm::Error) {
    let mut text = format!("error: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    note(&text);
}

/// Prints a line for a person to standard error.
pub(crate) fn note(line: &str) {
    // A closed terminal is no reason to stop a run.
    // In one piece: processes of a run may share it.
    drop(io::stderr().lock().write_all(format!("{line}\n").as_bytes()));
}

/// Prints text to standard output.
///
/// # Errors
/// Standard output is closed or full; a closed pipe ends the program quietly.
pub(crate) fn out(text: &str) -> Result<()> {
    finish(writeln!(io::stdout().lock(), "{text}"))
}

/// Prints one JSON object to standard output.
///
/// # Errors
/// As [`out`].
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|error| emb_dlrm::Error::Config(format!("JSON: {error}")))?;
    out(&text)
}

/// Writes a file whole.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|source| emb_dlrm::Error::Io {
        action: "writing",
        path: path.to_owned(),
        source,
    })
}

/// Refuses a file that can't be written because of its folder, or because it is one.
///
/// # Errors
/// The path is a folder, or in a folder that is not there.
pub(crate) fn refuse_unwritable(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let what = if path.is_dir() {
        format!("--out {}: is a folder, not a file", path.display())
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        format!("--out {}: there is no folder {}", path.display(), folder.display())
    } else {
        return Ok(());
    };
    Err(emb_dlrm::Error::Config(what))
}

/// Turns a failed write to standard output into an error; a reader that left ends the program.
pub(crate) fn finish(written: io::Result<()>) -> Result<()> {
    match written {
        Ok(()) => Ok(()),
        Err(source) if source.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(source) => {
            Err(emb_dlrm::Error::Io { action: "writing", path: "standard output".into(), source })
        }
    }
}
