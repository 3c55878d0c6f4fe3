//! What `emb launch` is asked to start: [`decide`].

use super::this_executable;
use crate::args::{
    CalibrateArgs, Cli, Command, DoctorArgs, LaunchArgs, LaunchTransport, TrainArgs,
};
use clap::Parser;
use emb_dlrm::config::{DeviceKind, Options};
use emb_dlrm::launch::{
    Hosts, Launch, MpiRun, Place, Start, gpus, has_mpi, look_at_folder, mpirun,
};
use emb_dlrm::{Error, Result};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// What `emb launch` has decided to do.
pub(super) struct Plan {
    pub(super) launch: Launch,
    /// Whether train prints JSON.
    pub(super) json: bool,
    /// What was resolved of file and flags.
    pub(super) options: Options,
    pub(super) transport: LaunchTransport,
    /// Restarts that are left; `None` where none was asked for.
    pub(super) restarts: Option<u32>,
    /// The checkpoint that was there before, which is not of this run.
    pub(super) before: Option<Vec<u8>>,
}

/// Reads the command line, and that of `emb train` in it.
///
/// # Errors
/// What contradicts itself or can't be started, by flag.
pub(super) fn decide(args: LaunchArgs) -> Result<Plan> {
    let refuse = |what: String| Err(Error::Config(what));
    alone()?;
    let train = train_args(&args.command)?;
    let json = train.as_ref().is_some_and(|train| train.json);
    let measures = train.is_none();
    let options = match train {
        Some(TrainArgs { config: Some(path), options, .. }) => {
            options.over(Options::from_file(&path)?)
        }
        Some(train) => train.options,
        None => Options::default(),
    };
    let asked = options.transport.map(|kind| kind.to_string());
    let gpu = options.device == Some(DeviceKind::Cuda);
    let transport = match (args.transport, asked.as_deref()) {
        (Some(LaunchTransport::Mpi), None | Some("mpi")) | (None, Some("mpi")) => {
            LaunchTransport::Mpi
        }
        (Some(LaunchTransport::Nccl), None | Some("nccl")) | (None, Some("nccl")) => {
            LaunchTransport::Nccl
        }
        (None, None) if gpu => LaunchTransport::Nccl,
        (None, None) => LaunchTransport::Mpi,
        (_, Some(kind)) => {
            return refuse(format!(
                "train --transport {kind} does not join the processes that emb launch starts: \
                 leave it out, or give one --transport mpi or nccl"
            ));
        }
    };
    let hosts = match (&args.hosts, &args.hostfile) {
        (Some(text), _) => Some(Hosts::parse(text).map_err(usage)?),
        (None, Some(path)) => Some(Hosts::read(path).map_err(usage)?),
        (None, None) => None,
    };
    let world = world(&args, transport, hosts.as_ref(), &options)?;
    let hosts = hosts.map(|hosts| hosts.for_ranks(world)).transpose().map_err(usage)?;
    if !(0.0..=1e6).contains(&args.timeout_to_end) {
        return refuse(format!("--timeout-to-end is {}, valid: 0 to 1e6", args.timeout_to_end));
    }
    if measures && (args.restart.is_some() || transport == LaunchTransport::Nccl) {
        return refuse(format!(
            "emb {} measures what MPI carries: --restart and --transport nccl are for emb train",
            args.command[0]
        ));
    }
    if args.restart.is_some() {
        refuse_restart(&options)?;
    }
    let start = start(&args, transport, hosts, &options)?;
    let emb = this_executable()?;
    let program = args.program.as_ref().unwrap_or(&emb);
    let mut all = vec![program.clone().into_os_string()];
    all.extend(args.command.iter().map(OsString::from));
    if !measures {
        all.extend(additions(&options, transport, world).into_iter().map(OsString::from));
    }
    let before = options.save.as_deref().and_then(manifest);
    let grace = Duration::from_secs_f64(args.timeout_to_end);
    let launch = Launch { emb, start, world, program: all, grace };
    Ok(Plan { launch, json, options, transport, restarts: args.restart, before })
}

/// Refuses to be one of several: each would start all ranks.
fn alone() -> Result<()> {
    // Variables that make no sense are no launcher's.
    match Place::from_environment() {
        Ok(Some(Place { rank, world, launcher, .. })) if world > 1 => {
            let program = launcher.program();
            Err(Error::Config(format!(
                "rank {rank} of {world} by {program}: emb launch starts the ranks itself, and {world} \
                 would each start all: start it once, without {program}, or start emb train by \
                 {program}"
            )))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The command line of `emb train`, checked before anything starts; `None` for a command that takes the
/// processes that are there for its ranks, without being told.
fn train_args(command: &[String]) -> Result<Option<TrainArgs>> {
    let whole = std::iter::once("emb".to_owned()).chain(command.iter().cloned());
    match Cli::try_parse_from(whole) {
        Ok(Cli { command: Command::Train(train) }) => Ok(Some(*train)),
        Ok(Cli {
            command:
                Command::Doctor(DoctorArgs { world, .. })
                | Command::Calibrate(CalibrateArgs { world, .. }),
        }) => match world {
            None => Ok(None),
            Some(world) => Err(Error::Config(format!(
                "emb {} --world {world} is of threads in one process: leave it out, the processes that \
                 emb launch starts are the ranks",
                command[0]
            ))),
        },
        Ok(_) => Err(Error::Config(format!(
            "emb launch starts train, doctor or calibrate on many ranks; emb {} is for one process",
            command[0]
        ))),
        Err(error) => error.exit(),
    }
}

/// What is said of a flag is a matter of the command line.
fn usage(error: emb_dlrm::launch::Error) -> Error {
    Error::Config(error.to_string())
}

/// How many ranks there are to be.
fn world(
    args: &LaunchArgs,
    transport: LaunchTransport,
    hosts: Option<&Hosts>,
    options: &Options,
) -> Result<usize> {
    let world = match (args.ranks, hosts, transport) {
        (Some(ranks), _, _) => ranks as usize,
        (None, Some(hosts), _) => hosts.ranks(),
        (None, None, LaunchTransport::Nccl) => match options.world {
            Some(world) => world as usize,
            None => gpus()?,
        },
        (None, None, LaunchTransport::Mpi) => match options.world {
            Some(world) => world as usize,
            None => return Err(Error::Config("how many ranks? give -n N".into())),
        },
    };
    match options.world {
        Some(asked) if asked as usize != world => Err(Error::Config(format!(
            "train --world is {asked}, but {world} ranks are to start: leave --world out"
        ))),
        _ => Ok(world),
    }
}

fn start(
    args: &LaunchArgs,
    transport: LaunchTransport,
    hosts: Option<Hosts>,
    options: &Options,
) -> Result<Start> {
    let refuse = |what: &str| Err(Error::Config(what.into()));
    if transport == LaunchTransport::Mpi {
        if args.program.is_none() {
            has_mpi()?;
        }
        let (path, arguments) = (args.mpirun.clone(), args.mpirun_arg.clone());
        mpirun::find(path.as_deref()).map_err(usage)?;
        look_at_folder(&arguments).map_err(usage)?;
        return Ok(Start::MpiRun(MpiRun { path, arguments, hosts }));
    }
    if hosts.is_some() {
        return refuse(
            "--hosts is for --transport mpi: over NCCL, emb launch starts the GPUs of this host; on \
             several hosts start emb train --transport nccl by srun, mpirun or torchrun",
        );
    }
    if args.mpirun.is_some() || !args.mpirun_arg.is_empty() {
        return refuse("--mpirun and --mpirun-arg have no effect with --transport nccl");
    }
    if options.device == Some(DeviceKind::Cpu) {
        return refuse("--transport nccl carries between GPUs: leave --device cpu out");
    }
    Ok(Start::Here)
}

/// What the command line of `emb train` leaves open.
pub(super) fn additions(
    options: &Options,
    transport: LaunchTransport,
    world: usize,
) -> Vec<String> {
    let mut more = Vec::new();
    if transport == LaunchTransport::Nccl && options.device.is_none() {
        more.push("--device=cuda".to_owned());
    }
    if world > 1 && options.transport.is_none() {
        let word = match transport {
            LaunchTransport::Mpi => "mpi",
            LaunchTransport::Nccl => "nccl",
        };
        more.push(format!("--transport={word}"));
    }
    if world > 1 && options.world.is_none() {
        more.push(format!("--world={world}"));
    }
    more
}

fn refuse_restart(options: &Options) -> Result<()> {
    let refuse = |what: &str| Err(Error::Config(what.into()));
    if options.save.is_none() {
        return refuse(
            "--restart goes on from the last checkpoint: give train --save DIR, and --save-every N",
        );
    }
    if options.load.is_some() {
        return refuse(
            "--restart goes on from the folder of --save, --load says another: copy the checkpoint \
             there and give train --resume",
        );
    }
    if options.topology.is_some() {
        return refuse(
            "--restart plans anew for fewer ranks, --topology is of all of them: leave it out",
        );
    }
    Ok(())
}

/// The manifest of a checkpoint as it lies there.
pub(super) fn manifest(dir: &Path) -> Option<Vec<u8>> {
    std::fs::read(dir.join("manifest.json")).ok()
}
