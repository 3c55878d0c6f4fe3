//! How processes come together, and how they end.

use super::calls::{self, Comm};
use super::control::{Control, lock};
use super::pace::Pace;
use super::wire::{Room, Wire};
use super::{Mpi, MpiOptions, Terms};
use crate::failure::list;
use crate::local::Turn;
use crate::sync::Backoff;
use crate::{Collective, Error, Local, Operation, Options, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// All processes of the job, once this one is among them.
static JOB: Mutex<Option<Comm>> = Mutex::new(None);

/// The last world: its processes end together.
static LAST: Mutex<Option<Arc<Control>>> = Mutex::new(None);

/// Marks what processes first say to each other; the number changes with what they say.
const MARK: u64 = 0x656d_626d_7069_0001;

/// Words of a version.
const VERSION: usize = 4;

/// Words of the name of a host: 256 bytes, the most that Open MPI and MPICH give.
const HOST: usize = 32;

/// Words that processes first say: mark, check, timeout, version, host.
const WORDS: usize = 3 + VERSION + HOST;

impl Mpi {
    /// This process as a rank of all that the launcher has started, whose rank and number are the
    /// launcher's. Called by all, with the same options; returns once all have. Without a launcher,
    /// the world is this process alone.
    ///
    /// ```no_run
    /// use emb_comm::{Collective, Mpi, MpiOptions};
    ///
    /// // Started as `mpirun -n 4 program`.
    /// let mut ranks = Mpi::start(&MpiOptions::default())?;
    /// let mut gradient = vec![1.0f32; 1000];
    /// ranks.all_reduce(&mut gradient)?;
    /// assert!(gradient.iter().all(|&sum| sum == ranks.world() as f32));
    /// ranks.close()?;
    /// # Ok::<(), emb_comm::Error>(())
    /// ```
    ///
    /// A process may call it again, for a world apart, as all others do.
    ///
    /// # Errors
    /// Processes that do not come within [`MpiOptions::meeting`]; a rank with another version of
    /// this crate, or with other options: all ranks name it. A library that does not let several
    /// threads call it.
    pub fn start(options: &MpiOptions) -> Result<Self> {
        let all = join(options.meeting)?;
        let (me, size) = (all.rank()?, all.size()?);
        let comms = [copy(all, options.meeting)?, copy(all, options.meeting)?];
        let base = Options::default().with_timeout(options.meeting);
        let meeting = Local::remote(me, size, &base);
        let control = Arc::new(Control::new([me, size], comms, meeting.shared())?);
        *lock(&LAST) = Some(Arc::clone(&control));
        let hosts = meet(meeting, Wire::new(control, 0, 0, Duration::ZERO), options)?;
        let hosts: Arc<[String]> = hosts.into();
        let per_node = options.ranks_per_node.or_else(|| ranks_per_host(&hosts)).unwrap_or(1);
        let base = Options::default().with_timeout(options.timeout).with_ranks_per_node(per_node);
        let world = Local::remote(me, size, &base);
        let control = Arc::new(Control::new([me, size], comms, world.shared())?);
        *lock(&LAST) = Some(Arc::clone(&control));
        let here = hosts.iter().filter(|host| **host == hosts[me]).count();
        let wire = Wire::new(control, 0, 0, Pace::spins(here));
        Ok(Self::new(world, wire, options.check, &hosts))
    }

    /// Has `tell` called in this process before the job ends because messages do not, with what this
    /// rank found; its answer is the exit code, which is 70 without. Who started the processes can
    /// tell from it whether this rank is at fault. The first caller's is taken.
    pub fn when_stuck(tell: fn(&Error) -> u8) {
        super::wire::when_stuck(tell);
    }

    /// The library and its version, as it calls itself: "Open MPI v4.1.4".
    pub fn library() -> String {
        let name = calls::library();
        let first = name.lines().next().unwrap_or("").split(',').next().unwrap_or("");
        first.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Makes this process one of the job, once.
fn join(time: Duration) -> Result<Comm> {
    let mut job = lock(&JOB);
    if let Some(all) = *job {
        return Ok(all);
    }
    // The library waits for all processes, for as long as it takes; the caller does not.
    let (done, wait) = mpsc::channel();
    let thread = std::thread::Builder::new().name("mpi start".to_owned()).spawn(move || {
        let joined = calls::initialize().and_then(|()| Comm::all().return_errors());
        let _ = done.send(joined);
    });
    if let Err(error) = thread {
        return Err(calls::failed("MPI_Init_thread", format!("no thread for it: {error}")));
    }
    let late = |_| Err(calls::absent("MPI_Init_thread", time));
    wait.recv_timeout(time).unwrap_or_else(late)?;
    calls::when_exiting(end);
    Ok(*job.insert(Comm::all()))
}

/// A copy of a communicator, which all processes make.
fn copy(of: Comm, time: Duration) -> Result<Comm> {
    let began = Instant::now();
    let (mut copy, mut backoff) = (of.copy()?, Backoff::default());
    loop {
        if let Some(comm) = copy.done()? {
            comm.return_errors()?;
            return Ok(comm);
        }
        if backoff.is_slow() && began.elapsed() > time {
            return Err(calls::absent("MPI_Comm_idup", time));
        }
        backoff.pause();
    }
}

/// Processes tell each other who they are; returns the host of each.
fn meet(mut control: Local, mut wire: Wire, options: &MpiOptions) -> Result<Vec<String>> {
    let world = control.world();
    let mut room = Room::new(WORDS, world);
    let said = Said {
        check: options.check as u64,
        timeout: options.timeout.as_millis() as u64,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: calls::host()?,
    };
    said.write(&mut room.said);
    let turn = Turn::begin(&mut control, Terms::new(Operation::Barrier))?;
    let room = wire.share(&turn, room)?;
    let said: Vec<Option<Said>> = room.all.chunks_exact(WORDS).map(Said::read).collect();
    if let Some(problem) = differences(&said) {
        let error = turn.refuse(calls::failed("Mpi::start", problem));
        wire.control.tell();
        return Err(error);
    }
    turn.end();
    Ok(said.into_iter().flatten().map(|said| said.host).collect())
}

/// What a process first says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    check: u64,
    timeout: u64,
    version: String,
    host: String,
}

impl Said {
    fn write(&self, words: &mut [u64]) {
        words[..3].copy_from_slice(&[MARK, self.check, self.timeout]);
        let texts = [(&self.version, 3..3 + VERSION), (&self.host, 3 + VERSION..WORDS)];
        for (text, words_of) in texts {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words[words_of]);
            bytes.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        }
    }

    fn read(words: &[u64]) -> Option<Self> {
        let text = |words: &[u64]| {
            let bytes: &[u8] = bytemuck::cast_slice(words);
            String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
        };
        let (version, host) = words[3..].split_at(VERSION);
        let [version, host] = [version, host].map(text);
        (words[0] == MARK).then_some(Self { check: words[1], timeout: words[2], version, host })
    }
}

/// Which ranks cannot be in one world with the others, and why.
fn differences(said: &[Option<Said>]) -> Option<String> {
    let of = |rank: usize| match &said[rank] {
        Some(said) => {
            let check = if said.check == 0 { "compared" } else { "not compared" };
            let timeout = Duration::from_millis(said.timeout);
            format!("emb-comm {}, calls {check}, timeout {timeout:?}", said.version)
        }
        None => "a version of emb-comm that says other things at the start".to_owned(),
    };
    let mut kinds: Vec<(String, Vec<usize>)> = Vec::new();
    for rank in 0..said.len() {
        let kind = of(rank);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, ranks)) => ranks.push(rank),
            None => kinds.push((kind, vec![rank])),
        }
    }
    if kinds.len() < 2 {
        return None;
    }
    let kinds = kinds.into_iter().map(|(kind, ranks)| format!("{}: {kind}", list(&ranks)));
    let kinds: Vec<String> = kinds.collect();
    Some(format!("ranks differ: {}; start the same program everywhere", kinds.join("; ")))
}

/// Ranks of a host, where all hosts have equally many and they are neighbours.
pub(super) fn ranks_per_host(hosts: &[String]) -> Option<usize> {
    let runs: Vec<&[String]> = hosts.chunk_by(|a, b| a == b).collect();
    let each = runs.first()?.len();
    let once = |run: &&[String]| runs.iter().filter(|other| other[0] == run[0]).count() == 1;
    runs.iter().all(|run| run.len() == each && once(run)).then_some(each)
}

/// Called when the process exits.
extern "C" fn end() {
    let end = || {
        let last = lock(&LAST).take();
        if let Some(control) = last {
            control.end();
        }
    };
    // A panic must not leave a function that C calls; there is nobody left to tell.
    let _ = catch_unwind(AssertUnwindSafe(end));
}

#[cfg(test)]
mod tests {
    use super::{Said, WORDS, differences, ranks_per_host};

    fn said(version: &str) -> Said {
        let (version, host) = (version.to_owned(), "node-a".to_owned());
        Said { check: 0, timeout: 120_000, version, host }
    }

    #[test]
    fn what_a_process_says_is_read_as_written() {
        let mut words = vec![0; WORDS];
        assert_eq!(Said::read(&words), None);
        said("0.1.0").write(&mut words);
        assert_eq!(Said::read(&words), Some(said("0.1.0")));
    }

    #[test]
    fn another_version_is_named_with_its_rank() {
        assert_eq!(differences(&[Some(said("0.1.0")), Some(said("0.1.0"))]), None);
        let problem = differences(&[Some(said("0.1.0")), Some(said("0.0.9")), Some(said("0.1.0"))]);
        let problem = problem.expect("versions differ");
        assert!(problem.contains("ranks 0 and 2: emb-comm 0.1.0"), "{problem}");
        assert!(problem.contains("rank 1: emb-comm 0.0.9"), "{problem}");
        let other = Said { timeout: 1000, ..said("0.1.0") };
        let problem = differences(&[Some(other), None]).expect("options differ");
        assert!(
            problem.contains("rank 0: emb-comm 0.1.0, calls compared, timeout 1s"),
            "{problem}"
        );
        assert!(problem.contains("rank 1: a version of emb-comm that"), "{problem}");
    }

    #[test]
    fn ranks_of_a_host_are_found_where_they_are_neighbours() {
        let per_host = |hosts: &str| {
            let hosts: Vec<String> = hosts.chars().map(String::from).collect();
            ranks_per_host(&hosts)
        };
        assert_eq!(per_host("aabbcc"), Some(2));
        assert_eq!(per_host("aaaa"), Some(4));
        assert_eq!(per_host("abc"), Some(1));
        assert_eq!(per_host("abab"), None);
        assert_eq!(per_host("aab"), None);
        assert_eq!(per_host(""), None);
    }
}
