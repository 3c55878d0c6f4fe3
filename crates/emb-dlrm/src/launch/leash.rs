//! Processes that do not outlive who started them: [`leashed`] and [`become_leashed`].
//!
//! A signal at the parent's death is a property that only the process itself can ask for. So the
//! program is not started at once: this executable is, as `emb launch-leash`, asks for the signal,
//! and becomes the program. (The kernel sends it when the *thread* that started the process ends:
//! only main threads start processes here.)

use super::Error;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The subcommand of this executable that [`become_leashed`] answers.
pub const LEASH: &str = "launch-leash";

/// A command that runs `program` on a leash: it gets `signal` when this process dies. `emb` is this
/// executable.
pub(super) fn leashed(emb: &Path, signal: Signal, program: &OsStr) -> Command {
    let mut command = Command::new(emb);
    let me = std::process::id().to_string();
    command.arg(LEASH).arg(me).arg(signal.as_raw().to_string()).arg(program);
    command
}

/// Asks for `signal` at the death of `parent`, and becomes the program.
///
/// # Errors
/// Returns only where it failed: the parent is dead already, or the program can't be run.
pub fn become_leashed(parent: u32, signal: i32, program: &[std::ffi::OsString]) -> Error {
    let failed = |what: String| Error::Start(what);
    let Some((name, arguments)) = program.split_first() else {
        return failed("no program".to_owned());
    };
    let signal = if signal == Signal::KILL.as_raw() { Signal::KILL } else { Signal::TERM };
    if let Err(error) = set_parent_process_death_signal(Some(signal)) {
        return failed(format!("asking for a signal at the parent's death: {error}"));
    }
    // Who died before the line above sends nothing any more.
    if getppid().map(Pid::as_raw_pid) != i32::try_from(parent).ok() {
        return failed("who started this process is gone".to_owned());
    }
    let error = Command::new(name).args(arguments).exec();
    failed(format!("starting {}: {error}", name.display()))
}
