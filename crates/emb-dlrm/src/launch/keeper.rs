//! The keeper of one rank: starts its process, tells `emb launch` all of it, ends it when told:
//! [`keep`].
//!
//! `mpirun` starts keepers, not ranks. So what a rank prints comes line by line and by rank, how it
//! ended is known exactly, and `mpirun` does not end the others before they could say what they saw.

use super::ending::{End, How};
use super::frames::{FINISH, Frame, KILL, Keeper, MAGIC};
use super::leash::leashed;
use super::said::Slate;
use super::signals::forward_signals;
use super::{Error, Place, environment, status};
use rustix::process::{Pid, Signal, getppid, kill_process_group};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Names key and addresses of `emb launch`: `key address,address`.
pub(super) const VARIABLE: &str = "EMB_LAUNCH";
/// The subcommand of this executable that [`keep`] answers.
pub const KEEPER: &str = "launch-rank";

/// How long a keeper tries to reach `emb launch`, at each of its addresses.
const CONNECT: Duration = Duration::from_secs(5);
/// How often it says in which step its rank is.
const BEAT: Duration = Duration::from_secs(1);
/// How long a process that was told to end may take before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// How long output may still come after the process ended: others may hold its pipes.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a request to end may be behind the end that it caused: a signal goes to keeper and
/// rank at once where a terminal or `mpirun` sends it to both.
const BEHIND: Duration = Duration::from_millis(100);
/// Longest line that stays whole, in bytes.
const LINE: u64 = 1 << 20;

/// What a keeper waits for.
enum Event {
    Order(u8),
    /// The launcher is gone.
    Alone,
    Signal,
    Ended(io::Result<ExitStatus>),
    Drained,
}

/// What is shared of the connection: one frame at a time.
type Line = Arc<Mutex<TcpStream>>;

/// Runs `program` as a rank of `emb launch`, as its environment says. `emb` is this executable.
///
/// # Errors
/// This process was not started by `emb launch`, or can't reach it.
pub fn keep(emb: &Path, program: &[OsString]) -> Result<(), Error> {
    let failed = |what: String| Error::Start(what);
    let asked = environment(VARIABLE)
        .ok_or_else(|| failed(format!("{KEEPER} is for emb launch: {VARIABLE} is not set")))?;
    let parent = getppid();
    let (key, addresses) = asked.split_once(' ').unwrap_or((&asked, ""));
    let place = Place::from_environment()?.ok_or_else(|| {
        failed(format!("{KEEPER}: no launcher's variables say which rank this is"))
    })?;
    let stream = connect(&place, addresses)?;
    let orders = stream.try_clone().map_err(|error| failed(error.to_string()))?;
    let line = Arc::new(Mutex::new(stream));
    let (to, events) = channel();
    let on_signal = to.clone();
    forward_signals(move |_| drop(on_signal.send(Event::Signal)))?;
    std::thread::spawn({
        let to = to.clone();
        move || hear(orders, &to)
    });
    // A rank without a status is one of whose steps nothing is known.
    let slate = Slate::new().ok();
    let begun = Instant::now();
    let started = start(emb, program, slate.as_ref());
    let pid = started.as_ref().map_or(0, Child::id);
    let host = host_name();
    let (rank, world) = (place.rank, place.world);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = Keeper { version, key: key.to_owned(), rank, world, host: host.clone(), pid };
    say(&line, &Frame::Hello(hello));
    let Watched { how, told, alone } = match started {
        Ok(child) => watch(child, &line, &events, &to, slate.as_ref()),
        Err(why) => Watched { how: How::NotStarted(why), told: false, alone: false },
    };
    let said = slate.as_ref().map(Slate::read).unwrap_or_default();
    let seconds = begun.elapsed().as_secs_f64();
    let (step, missing) = (said.step, said.missing);
    // Who is an orphan has another parent than before.
    let orphaned = getppid() != parent;
    let end = End { rank, host, pid, how, seconds, step, missing, told, orphaned };
    say(&line, &Frame::Ended(end));
    // Whoever ends first makes mpirun end the others: all go when the launcher says so.
    let last = |event: &Event| matches!(event, Event::Order(FINISH) | Event::Alone | Event::Signal);
    if !alone {
        events.iter().find(last);
    }
    Ok(())
}

/// The name of this host, as it names itself.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn connect(place: &Place, addresses: &str) -> Result<TcpStream, Error> {
    let mut tried = Vec::new();
    for address in addresses.split(',') {
        let problem = match address.parse::<SocketAddr>() {
            Err(error) => error.to_string(),
            Ok(address) => match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(mut stream) => {
                    drop(stream.set_nodelay(true));
                    match stream.write_all(MAGIC) {
                        Ok(()) => return Ok(stream),
                        Err(error) => error.to_string(),
                    }
                }
                Err(error) => error.to_string(),
            },
        };
        tried.push(format!("{address}: {problem}"));
    }
    Err(Error::Start(format!(
        "rank {} of {} on {} cannot reach emb launch: {}",
        place.rank,
        place.world,
        host_name(),
        tried.join("; ")
    )))
}

fn start(emb: &Path, program: &[OsString], status: Option<&Slate>) -> Result<Child, String> {
    let (name, arguments) = program.split_first().ok_or("no program")?;
    leashed(emb, Signal::KILL, name)
        .args(arguments)
        .env_remove(VARIABLE)
        .env_remove(status::VARIABLE)
        .envs(status.map(|slate| (status::VARIABLE, slate.path())))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: it is ended by its keeper, and all it started with it.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("{}: {error}", emb.display()))
}

/// Says one thing. Where the launcher is gone, [`hear`] notices.
fn say(line: &Line, frame: &Frame) {
    let mut stream = line.lock().unwrap_or_else(PoisonError::into_inner);
    drop(frame.write(&mut *stream));
}

/// Reads orders.
fn hear(mut orders: TcpStream, to: &Sender<Event>) {
    let mut order = [0];
    while let Ok(1) = orders.read(&mut order) {
        if to.send(Event::Order(order[0])).is_err() {
            return;
        }
    }
    drop(to.send(Event::Alone));
}

/// Sends lines on until the pipe ends.
fn pump(from: impl Read, line: &Line, frame: fn(Vec<u8>) -> Frame) {
    let mut from = BufReader::with_capacity(1 << 16, from);
    loop {
        let mut bytes = Vec::new();
        match from.by_ref().take(LINE).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => say(line, &frame(bytes)),
        }
    }
}

/// Sends what the process prints on; each of the two ends with [`Event::Drained`].
fn pumps(child: &mut Child, line: &Line, to: &Sender<Event>) {
    fn begin<R: Read + Send + 'static>(
        pipe: Option<R>,
        line: &Line,
        to: &Sender<Event>,
        frame: fn(Vec<u8>) -> Frame,
    ) {
        let (line, to) = (line.clone(), to.clone());
        std::thread::spawn(move || {
            if let Some(pipe) = pipe {
                pump(pipe, &line, frame);
            }
            drop(to.send(Event::Drained));
        });
    }
    begin(child.stdout.take(), line, to, Frame::Out);
    begin(child.stderr.take(), line, to, Frame::Err);
}

/// A process that is watched.
struct Watch<'a> {
    group: Option<Pid>,
    line: &'a Line,
    status: Option<&'a Slate>,
    /// Whether it was told to end.
    told: bool,
    /// Whether the launcher is gone.
    alone: bool,
    kill_at: Option<Instant>,
    /// Pipes that ended.
    drained: usize,
    ended: Option<io::Result<ExitStatus>>,
    /// When to wait for its output no longer.
    until: Option<Instant>,
}

/// How a watched process ended.
struct Watched {
    how: How,
    told: bool,
    alone: bool,
}

/// Waits for the end of the process, and sees to it where it is asked for.
fn watch(
    mut child: Child,
    line: &Line,
    events: &Receiver<Event>,
    to: &Sender<Event>,
    status: Option<&Slate>,
) -> Watched {
    pumps(&mut child, line, to);
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    std::thread::spawn({
        let to = to.clone();
        move || drop(to.send(Event::Ended(child.wait())))
    });
    let (told, alone, drained) = (false, false, 0);
    let (kill_at, ended, until) = (None, None, None);
    let mut watch = Watch { group, line, status, told, alone, kill_at, drained, ended, until };
    while !watch.is_over() {
        let now = Instant::now();
        if watch.kill_at.is_some_and(|at| now >= at) {
            watch.kill(Signal::KILL);
            watch.kill_at = None;
        }
        let next = [watch.kill_at, watch.until].into_iter().flatten().min();
        let wait = next.map_or(BEAT, |at| at.saturating_duration_since(now).min(BEAT));
        match events.recv_timeout(wait) {
            Ok(event) => watch.take(event),
            Err(RecvTimeoutError::Timeout) => watch.beat(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // What the process started does not stay behind either.
    watch.kill(Signal::KILL);
    let how = watch.how();
    let by_request = how == How::Signal(Signal::TERM.as_raw());
    if by_request && !watch.told {
        match events.recv_timeout(BEHIND) {
            Ok(Event::Alone) => (watch.told, watch.alone) = (true, true),
            Ok(Event::Signal | Event::Order(_)) => watch.told = true,
            Ok(_) | Err(_) => {}
        }
    }
    Watched { how, told: watch.told, alone: watch.alone }
}

impl Watch<'_> {
    fn is_over(&self) -> bool {
        let quiet = self.drained == 2 || self.until.is_some_and(|at| Instant::now() >= at);
        self.ended.is_some() && quiet
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ended(how) => {
                self.ended = Some(how);
                self.until = Some(Instant::now() + DRAIN);
            }
            Event::Drained => self.drained += 1,
            Event::Order(KILL) => {
                self.told |= self.ended.is_none();
                self.kill(Signal::KILL);
            }
            Event::Order(_) | Event::Alone | Event::Signal => {
                self.alone |= matches!(event, Event::Alone);
                self.told |= self.ended.is_none();
                if self.kill_at.is_none() {
                    self.kill(Signal::TERM);
                    // One that is stopped would only hear it when it goes on.
                    self.kill(Signal::CONT);
                    self.kill_at = Some(Instant::now() + GRACE);
                }
            }
        }
    }

    fn beat(&self) {
        if self.ended.is_none() {
            let step = self.status.map_or(0, |slate| slate.read().step);
            say(self.line, &Frame::Beat(step));
        }
    }

    fn kill(&self, signal: Signal) {
        // A group that is gone is what was wanted.
        let _ = self.group.map(|group| kill_process_group(group, signal));
    }

    fn how(&self) -> How {
        let Some(Ok(status)) = &self.ended else { return How::Gone };
        match (status.code(), status.signal()) {
            (Some(code), _) => How::Code(code),
            (None, Some(signal)) => How::Signal(signal),
            (None, None) => How::Gone,
        }
    }
}
