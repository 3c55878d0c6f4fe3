//! How the processes of a world are started: [`Start`].

use super::hosts::Hosts;
use super::keeper::{KEEPER, VARIABLE};
use super::leash::leashed;
use super::{Error, look_at_folder, mpirun};
use rustix::process::Signal;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Who starts the processes.
#[derive(Clone, Debug)]
pub enum Start {
    /// This process, all on this host, with torchrun's variables.
    Here,
    /// `mpirun`.
    MpiRun(MpiRun),
}

/// How to call `mpirun`.
#[derive(Clone, Debug, Default)]
pub struct MpiRun {
    /// The program; looked for where it is not said.
    pub path: Option<PathBuf>,
    /// More arguments for it.
    pub arguments: Vec<String>,
    /// Hosts; none for this one.
    pub hosts: Option<Hosts>,
}

/// What is started: keepers, as many as ranks.
pub(super) struct Keepers<'a> {
    /// This executable.
    pub(super) emb: &'a std::path::Path,
    /// What each keeper runs.
    pub(super) program: &'a [OsString],
    pub(super) world: usize,
    /// What they are told by [`VARIABLE`].
    pub(super) contact: String,
}

impl Start {
    /// Starts everything; the children of this process.
    ///
    /// # Errors
    /// `mpirun` is not found, or a process can't be started.
    pub(super) fn begin(&self, keepers: &Keepers<'_>) -> Result<Vec<Child>, Error> {
        let failed = |error: std::io::Error| {
            Error::Start(format!("starting {}: {error}", keepers.emb.display()))
        };
        match self {
            Self::MpiRun(run) => {
                let program = mpirun::find(run.path.as_deref())?;
                look_at_folder(&run.arguments)?;
                let mut command = leashed(keepers.emb, Signal::TERM, program.as_os_str());
                command.args(mpirun::arguments(run, keepers.world));
                let command = keeper(&mut command, keepers);
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                Ok(vec![command.spawn().map_err(failed)?])
            }
            Self::Here => {
                let port = free_port()?.to_string();
                let world = keepers.world.to_string();
                let one = |rank: usize| {
                    let rank = rank.to_string();
                    let mut command = leashed(keepers.emb, Signal::TERM, keepers.emb.as_os_str());
                    for (name, value) in [
                        ("RANK", &rank),
                        ("LOCAL_RANK", &rank),
                        ("WORLD_SIZE", &world),
                        ("LOCAL_WORLD_SIZE", &world),
                        ("MASTER_PORT", &port),
                    ] {
                        command.env(name, value);
                    }
                    // The rank is what torchrun would say, whoever started the launcher.
                    command.env("MASTER_ADDR", "127.0.0.1");
                    command.env("TORCHELASTIC_RUN_ID", format!("emb-{port}"));
                    command.arg(KEEPER).arg("--").args(keepers.program);
                    command.env(VARIABLE, &keepers.contact).stdin(Stdio::null());
                    command.process_group(0).spawn().map_err(failed)
                };
                (0..keepers.world).map(one).collect()
            }
        }
    }
}

/// Adds the keeper and what it runs to a command of `mpirun`.
fn keeper<'c>(command: &'c mut Command, keepers: &Keepers<'_>) -> &'c mut Command {
    command.arg(keepers.emb).arg(KEEPER).arg("--").args(keepers.program);
    command.env(VARIABLE, &keepers.contact)
}

/// A port that is free now, and so is the next, where ranks meet.
fn free_port() -> Result<u16, Error> {
    for _ in 0..100 {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { continue };
        let Ok(address) = listener.local_addr() else { continue };
        let next = address.port().checked_add(1);
        if next.is_some_and(|next| TcpListener::bind(("127.0.0.1", next)).is_ok()) {
            return Ok(address.port());
        }
    }
    Err(Error::Start("no two free ports of this host side by side".to_owned()))
}
