//! `emb launch`.

mod decide;
mod restart;

use crate::args::LaunchArgs;
use crate::output;
use decide::decide;
use emb_dlrm::launch::{
    Chorus, KEEPER, LEASH, Outcome, Requests, Start, Voice, become_leashed, keep, mpirun,
};
use emb_dlrm::{Error, Result};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// What this executable is to itself: a process on a leash, or the keeper of a rank. `None` where a
/// person calls it.
pub(crate) fn hidden() -> Option<Result<()>> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    if first == LEASH {
        let number = |word: Option<OsString>| word?.to_str()?.parse::<i64>().ok();
        let parent = number(arguments.next()).and_then(|number| u32::try_from(number).ok());
        let signal = number(arguments.next()).and_then(|number| i32::try_from(number).ok());
        let program: Vec<OsString> = arguments.collect();
        let (parent, signal) = (parent.unwrap_or(0), signal.unwrap_or(0));
        return Some(Err(become_leashed(parent, signal, &program).into()));
    }
    if first == KEEPER {
        let program: Vec<OsString> = arguments.skip(1).collect();
        return Some(this_executable().and_then(|emb| Ok(keep(&emb, &program)?)));
    }
    None
}

fn this_executable() -> Result<PathBuf> {
    std::env::current_exe().map_err(|source| Error::Io {
        action: "finding",
        path: "this executable".into(),
        source,
    })
}

/// Lines by rank on standard error, standard output of rank 0 as it is.
#[derive(Default)]
struct Terminal {
    /// Standard output could not be written, for example to a disk that is full.
    lost: AtomicBool,
    /// Errors that ranks have in common.
    chorus: Mutex<Chorus>,
}

impl Terminal {
    fn chorus<T>(&self, of: impl FnOnce(&mut Chorus) -> T) -> T {
        of(&mut self.chorus.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Voice for Terminal {
    fn out(&self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        // No reason to stop a run; a reader that left is none to fail it either.
        let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) else { return };
        let first = !self.lost.load(Relaxed);
        if first && error.kind() != io::ErrorKind::BrokenPipe {
            self.lost.store(true, Relaxed);
            output::note(&format!("error: standard output: writing: {error}"));
        }
    }

    fn line(&self, rank: usize, line: &[u8]) {
        if !self.chorus(|chorus| chorus.is_new(rank, line)) {
            return;
        }
        let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
        let whole = [format!("[{rank}] ").as_bytes(), line, end].concat();
        drop(io::stderr().lock().write_all(&whole));
    }

    fn aside(&self, line: &str) {
        output::note(line);
    }

    fn note(&self, line: &str) {
        output::note(&format!("launch: {line}"));
    }
}

pub(crate) fn run(args: LaunchArgs) -> Result<ExitCode> {
    let mut plan = decide(args)?;
    let terminal = Arc::new(Terminal::default());
    let voice: Arc<dyn Voice> = terminal.clone();
    if let Start::MpiRun(run) = &plan.launch.start {
        for line in mpirun::notes(run, plan.launch.world) {
            voice.note(&line);
        }
    }
    if plan.restarts.is_some() && plan.options.save_every.is_none() {
        voice.note(
            "without train --save-every N, a restart begins anew: nothing is saved before the end",
        );
    }
    let requests = Requests::listen()?;
    loop {
        let outcome = plan.launch.run(&requests, &voice);
        terminal.chorus(Chorus::counted).iter().for_each(|line| voice.note(line));
        match outcome? {
            Outcome::Well => return Ok(ExitCode::from(u8::from(terminal.lost.load(Relaxed)))),
            Outcome::Signal(signal) => {
                return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
            }
            Outcome::NotStarted(what, code) => {
                voice.note(&what);
                return Ok(ExitCode::from(code));
            }
            Outcome::Failed(verdict) => {
                if !plan.goes_on(&verdict, &*voice)? {
                    return Ok(ExitCode::from(verdict.code));
                }
            }
        }
    }
}
