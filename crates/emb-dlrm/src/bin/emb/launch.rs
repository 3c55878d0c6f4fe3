//! `emb launch`.

use crate::args::{Cli, Command, LaunchArgs, LaunchTransport, TrainArgs};
use crate::output;
use clap::Parser;
use emb_dlrm::checkpoint::Manifest;
use emb_dlrm::config::{DeviceKind, Options};
use emb_dlrm::launch::{
    Hosts, KEEPER, LEASH, Launch, MpiRun, Outcome, Requests, Start, Verdict, Voice, become_leashed,
    gpus, keep, mpirun, smaller,
};
use emb_dlrm::{Error, Result};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

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
struct Terminal;

impl Voice for Terminal {
    fn out(&self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        // A reader that left is no reason to stop a run.
        drop(out.write_all(bytes).and_then(|()| out.flush()));
    }

    fn line(&self, rank: usize, line: &[u8]) {
        let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
        let whole = [format!("[{rank}] ").as_bytes(), line, end].concat();
        drop(io::stderr().lock().write_all(&whole));
    }

    fn note(&self, line: &str) {
        output::note(&format!("launch: {line}"));
    }
}

/// What `emb launch` has decided to do.
struct Plan {
    launch: Launch,
    train: TrainArgs,
    /// What was resolved of file and flags.
    options: Options,
    transport: LaunchTransport,
    /// Restarts that are left; `None` where none was asked for.
    restarts: Option<u32>,
    /// The checkpoint that was there before, which is not of this run.
    before: Option<Vec<u8>>,
}

pub(crate) fn run(args: LaunchArgs) -> Result<ExitCode> {
    let mut plan = decide(args)?;
    let voice: Arc<dyn Voice> = Arc::new(Terminal);
    if let Start::MpiRun(run) = &plan.launch.start {
        for line in mpirun::notes(run, plan.launch.world) {
            voice.note(&line);
        }
    }
    let requests = Requests::listen()?;
    loop {
        match plan.launch.run(&requests, &voice)? {
            Outcome::Well => return Ok(ExitCode::SUCCESS),
            Outcome::Signal(signal) => {
                return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
            }
            Outcome::NotStarted(what, code) => {
                voice.note(&what);
                return Ok(ExitCode::from(code));
            }
            Outcome::Failed(verdict) => {
                if !plan.goes_on(&verdict, &*voice)? {
                    return Ok(ExitCode::from(verdict.cause.exit_code()));
                }
            }
        }
    }
}

fn decide(args: LaunchArgs) -> Result<Plan> {
    let refuse = |what: String| Err(Error::Config(what));
    let train = train_args(&args.command)?;
    let options = match &train.config {
        Some(path) => train.options.clone().over(Options::from_file(path)?),
        None => train.options.clone(),
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
        (Some(text), _) => Some(Hosts::parse(text)?),
        (None, Some(path)) => Some(Hosts::read(path)?),
        (None, None) => None,
    };
    let world = world(&args, transport, hosts.as_ref(), &options)?;
    let hosts = hosts.map(|hosts| hosts.for_ranks(world)).transpose()?;
    let start = start(&args, transport, hosts, &options)?;
    if !(0.0..=1e6).contains(&args.timeout_to_end) {
        return refuse(format!("--timeout-to-end is {}, valid: 0 to 1e6", args.timeout_to_end));
    }
    if args.restart.is_some() {
        refuse_restart(&options)?;
    }
    let emb = this_executable()?;
    let program = args.program.as_ref().unwrap_or(&emb);
    let mut all = vec![program.clone().into_os_string()];
    all.extend(args.command.iter().map(OsString::from));
    all.extend(additions(&options, transport, world).into_iter().map(OsString::from));
    let before = options.save.as_deref().and_then(manifest);
    let grace = Duration::from_secs_f64(args.timeout_to_end);
    let launch = Launch { emb, start, world, program: all, grace };
    Ok(Plan { launch, train, options, transport, restarts: args.restart, before })
}

/// The command line of `emb train`, checked before anything starts.
fn train_args(command: &[String]) -> Result<TrainArgs> {
    let whole = std::iter::once("emb".to_owned()).chain(command.iter().cloned());
    match Cli::try_parse_from(whole) {
        Ok(Cli { command: Command::Train(train) }) => Ok(*train),
        Ok(_) => Err(Error::Config(format!(
            "emb launch starts emb train on many ranks; emb {} is for one process",
            command[0]
        ))),
        Err(error) => error.exit(),
    }
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
        if options.device.is_some_and(|kind| kind != DeviceKind::Cpu) {
            return refuse("--transport mpi carries between processors: leave --device out");
        }
        let (path, arguments) = (args.mpirun.clone(), args.mpirun_arg.clone());
        mpirun::find(path.as_deref())?;
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
fn additions(options: &Options, transport: LaunchTransport, world: usize) -> Vec<String> {
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
fn manifest(dir: &Path) -> Option<Vec<u8>> {
    std::fs::read(dir.join("manifest.json")).ok()
}

impl Plan {
    /// Prepares the next start after a failure; `false` where there is to be none.
    fn goes_on(&mut self, verdict: &Verdict, voice: &dyn Voice) -> Result<bool> {
        let Some(left) = self.restarts else { return Ok(false) };
        if verdict.lost.is_empty() {
            voice.note("not starting again: it would fail again");
            return Ok(false);
        }
        if left == 0 {
            voice.note("not starting again: it was started as often as --restart says");
            return Ok(false);
        }
        let Some(dir) = self.options.save.clone() else { return Ok(false) };
        self.restarts = Some(left - 1);
        let world = self.launch.world.saturating_sub(verdict.lost.len()).max(1);
        let found = manifest(&dir);
        let of_this_run = self.options.resume == Some(true) || found != self.before;
        let from =
            match (found.is_some() && of_this_run).then(|| Manifest::read(&dir)).transpose()? {
                Some(manifest) => format!("going on from the checkpoint of step {}", manifest.step),
                None => "there is no checkpoint yet: beginning anew".to_owned(),
            };
        let ranks = if world == 1 { "rank" } else { "ranks" };
        voice.note(&format!("{}; {from} on {world} {ranks}", lost(verdict)));
        let less = smaller(&self.options, world);
        for line in &less.notes {
            voice.note(line);
        }
        let resume = (found.is_some() && of_this_run).then_some(true);
        self.options = Options { resume, ..less.options };
        self.before = self.before.take().filter(|_| resume.is_none());
        self.launch.program.truncate(1);
        self.launch.program.extend(self.command_line(&dir)?);
        self.launch.world = world;
        if let Start::MpiRun(run) = &mut self.launch.start {
            run.hosts = run.hosts.take().map(|hosts| hosts.without(&verdict.lost));
        }
        Ok(true)
    }

    /// The command line of the next start. Its options are in a file beside the checkpoint, which all
    /// hosts see.
    fn command_line(&self, dir: &Path) -> Result<Vec<OsString>> {
        let text = toml::to_string(&self.options)
            .map_err(|error| Error::Config(format!("--restart: {error}")))?;
        let mut path = dir.as_os_str().to_owned();
        path.push(".restart.toml");
        output::write_file(Path::new(&path), &text)?;
        let mut line: Vec<OsString> = vec!["train".into(), "--config".into(), path];
        if self.train.json {
            line.push("--json".into());
        }
        let world = self.options.world.map_or(1, |world| world as usize);
        line.extend(
            additions(&self.options, self.transport, world).into_iter().map(OsString::from),
        );
        Ok(line)
    }
}

/// "rank 2 was lost in step 37".
fn lost(verdict: &Verdict) -> String {
    let names: Vec<String> = verdict.lost.iter().map(ToString::to_string).collect();
    let who = match &names[..] {
        [one] => format!("rank {one} was"),
        [rest @ .., last] => format!("ranks {} and {last} were", rest.join(", ")),
        [] => "no rank was".to_owned(),
    };
    match verdict.cause.step {
        0 => format!("{who} lost"),
        step => format!("{who} lost in step {step}"),
    }
}
