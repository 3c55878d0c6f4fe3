//! The processes of a world from start to end: [`Launch`].

mod absent;
mod ranks;

use super::Error;
use super::children::{end_children, listen};
use super::ending::{End, How, Verdict, judge};
use super::frames::{FINISH, KILL, TERMINATE};
use super::keeper::GRACE;
use super::line::{Event, Switchboard};
use super::signals::Requests;
use super::start::{Keepers, Start};
use ranks::Live;
use std::ffi::OsString;
use std::net::Shutdown;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Pause between two looks at children and clocks.
const TICK: Duration = Duration::from_millis(20);
/// After how long it is said which ranks are not there yet, and after how long it is given up.
const START_NOTE: Duration = Duration::from_secs(30);
const START: Duration = Duration::from_mins(5);
/// After how long without a word a host counts as gone. Keepers speak every second.
const SILENCE: Duration = Duration::from_secs(30);
/// A pause of this process itself that is no one else's silence.
const SUSPENDED: Duration = Duration::from_secs(5);

/// What ranks print, and what there is to say of them.
pub trait Voice: Send + Sync {
    /// Standard output of rank 0, unchanged.
    fn out(&self, bytes: &[u8]);
    /// A line of another rank, or of any rank's standard error; its end included, if it has one.
    fn line(&self, rank: usize, line: &[u8]);
    /// A line of the program that starts the ranks.
    fn aside(&self, line: &str);
    /// A word of the launcher itself.
    fn note(&self, line: &str);
}

/// A world of processes to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// This executable.
    pub emb: PathBuf,
    /// Who starts them.
    pub start: Start,
    /// How many.
    pub world: usize,
    /// What each runs.
    pub program: Vec<OsString>,
    /// How long the others may take to end by themselves after one failed.
    pub grace: Duration,
}

/// How a world ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All processes ended well.
    Well,
    /// One failed.
    Failed(Verdict),
    /// This process was told to end by a signal, and ended all.
    Signal(i32),
    /// Not all processes came to be; what the launcher's program returned.
    NotStarted(String, u8),
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// One failed; the others may say what they saw until then.
    Grace(Instant),
    /// All were told to end.
    Told(Instant),
    /// All were killed.
    Killed(Instant),
}

/// The end of an `mpirun` whose ranks were still there.
#[derive(Clone, Copy, Debug)]
struct Starter {
    code: u8,
    killed: bool,
}

struct World<'a> {
    launch: &'a Launch,
    voice: &'a dyn Voice,
    ranks: Vec<Option<Live>>,
    /// In the order in which they came.
    ends: Vec<End>,
    /// What `mpirun` said after a rank had failed, which is known better here.
    aside: Vec<String>,
    phase: Phase,
    /// The first end that was told of.
    told_of: Option<usize>,
    /// How `mpirun` ended, where it did before its ranks.
    starter: Option<Starter>,
    /// Silence is counted from here: this process itself may have been suspended.
    floor: Instant,
}

impl Launch {
    /// Starts the processes, hands on what they print, and waits until all have ended; ends all when
    /// one fails or a request to end comes. To be called on the main thread, with which the processes
    /// die.
    ///
    /// # Errors
    /// Nothing could be started.
    pub fn run(&self, requests: &Requests, voice: &Arc<dyn Voice>) -> Result<Outcome, Error> {
        let (to, events) = channel();
        let hosts = match &self.start {
            Start::MpiRun(run) => run.hosts.as_ref(),
            Start::Here => None,
        };
        let board = Switchboard::open(hosts.is_some(), to.clone(), voice.clone())?;
        let (emb, program, world) = (&*self.emb, &*self.program, self.world);
        let contact = board.contact(hosts)?;
        let mut children = self.start.begin(&Keepers { emb, program, world, contact })?;
        listen(&mut children, &to);
        let (ranks, aside) = ((0..world).map(|_| None).collect(), Vec::new());
        let (ends, phase, told_of, starter) = (Vec::new(), Phase::Running, None, None);
        let (launch, voice, floor) = (self, &**voice, Instant::now());
        let mut world = World { launch, voice, ranks, ends, aside, phase, told_of, starter, floor };
        let ended = world.until_the_end(&board, &events, requests, &mut children);
        world.order(FINISH);
        // A keeper that calls only now finds that nobody is there.
        drop(board);
        // Where not all ranks came, it may be that `mpirun` never ends by itself.
        end_children(&mut children, world.missing().is_empty(), requests);
        ended
    }
}

impl World<'_> {
    fn until_the_end(
        &mut self,
        board: &Switchboard,
        events: &Receiver<Event>,
        requests: &Requests,
        children: &mut [Child],
    ) -> Result<Outcome, Error> {
        let begun = Instant::now();
        let (mut last, mut noted, mut childless) = (begun, false, None);
        while self.ends.len() < self.launch.world {
            board.answer();
            match events.recv_timeout(TICK) {
                Ok(event) => self.take(event)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let now = Instant::now();
            if now - last > SUSPENDED {
                self.floor = now;
            }
            last = now;
            self.heed(requests);
            self.look_at_clocks(now);
            let missing = self.missing();
            if missing.is_empty() {
                self.look_at_starter(children, now);
                continue;
            }
            // What was said last may still be on its way.
            let gone = self.cannot_come(&missing, children);
            childless = gone.then(|| childless.unwrap_or(now));
            if childless.is_some_and(|at| now - at > Duration::from_millis(500)) {
                return Ok(self.not_started(&missing, children, requests));
            }
            // Who did not come before all were told to end is not waited for.
            let told = matches!(self.phase, Phase::Told(_) | Phase::Killed(_));
            if told && self.ends.len() + missing.len() == self.launch.world {
                if requests.signal() == 0 && self.is_abandoned() {
                    return Ok(self.abandoned(&missing, events, children, requests));
                }
                return Ok(self.outcome(requests));
            }
            if !noted && now - begun > START_NOTE {
                noted = true;
                self.voice.note(&format!("still waiting for {} to start", self.named(&missing)));
            }
            if now - begun > START && self.phase == Phase::Running {
                self.tell(TERMINATE);
                let who = self.named(&missing);
                let what = format!("{who} did not start within {} s", START.as_secs());
                return Ok(Outcome::NotStarted(what, 1));
            }
        }
        Ok(self.outcome(requests))
    }

    fn outcome(&self, requests: &Requests) -> Outcome {
        match (requests.signal(), judge(&self.ends)) {
            (0, None) => Outcome::Well,
            (0, Some(mut verdict)) => {
                let starter = self.starter.filter(|_| verdict.orphaned);
                if let Some(Starter { code, .. }) = starter {
                    verdict.code = code;
                }
                // What became of a host, `mpirun` may know.
                let killed = starter.is_some_and(|starter| starter.killed);
                if verdict.cause.how == How::Gone || verdict.orphaned && !killed {
                    self.aside.iter().for_each(|line| self.voice.aside(line));
                }
                if self.told_of != Some(verdict.cause.rank) && !killed {
                    self.voice.note(&verdict.cause.to_string());
                }
                Outcome::Failed(verdict)
            }
            (signal, _) => Outcome::Signal(signal),
        }
    }

    fn heed(&mut self, requests: &Requests) {
        let signal = requests.signal();
        if signal == 0 {
            return;
        }
        let now = Instant::now();
        let twice = requests.times() > 1;
        match self.phase {
            Phase::Running | Phase::Grace(_) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
                self.voice.note(&format!("{name}: ending all ranks"));
                self.tell(TERMINATE);
                self.phase = Phase::Told(now + GRACE + GRACE);
            }
            Phase::Told(_) if twice => {
                self.tell(KILL);
                self.phase = Phase::Killed(now + GRACE);
            }
            Phase::Told(_) | Phase::Killed(_) => {}
        }
    }

    fn look_at_clocks(&mut self, now: Instant) {
        for rank in 0..self.ranks.len() {
            let silent = self.ranks[rank].as_ref().map(|live| live.silent.length(self.floor));
            if silent.is_some_and(|length| length > SILENCE) && !self.has_ended(rank) {
                if let Some(live) = &self.ranks[rank] {
                    drop(live.orders.shutdown(Shutdown::Both));
                }
                self.lose(rank);
            }
        }
        match self.phase {
            Phase::Grace(until) if now >= until => {
                self.tell(TERMINATE);
                self.phase = Phase::Told(now + GRACE + GRACE);
            }
            Phase::Told(until) if now >= until => {
                self.tell(KILL);
                self.phase = Phase::Killed(now + GRACE);
            }
            Phase::Killed(until) if now >= until => {
                (0..self.ranks.len()).for_each(|rank| self.lose(rank));
            }
            _ => {}
        }
    }
}
