//! Jobs of training processes under a watchdog, and files for them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Processes of every job.
const WORLD: usize = 4;

/// How long a job may take to get under way.
const START: Duration = Duration::from_secs(30);

/// One job at a time: each has more processes than there are cores.
static ONE: Mutex<()> = Mutex::new(());

/// A limit that holds on two quiet processors, on this machine as busy as it is: there, a launch of
/// processes that do nothing takes half a second.
pub(crate) fn soon(limit: Duration) -> Duration {
    static SLOWNESS: OnceLock<f64> = OnceLock::new();
    let times = SLOWNESS.get_or_init(|| {
        let began = Instant::now();
        let launched = mpirun().args(["-n", &WORLD.to_string(), "true"]).status();
        assert!(launched.expect("mpirun starts").success(), "mpirun starts nothing");
        (began.elapsed().as_secs_f64() / 0.5).max(1.0)
    });
    limit.mul_f64(*times)
}

/// The launcher, up to how many of what.
fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none"]);
    // For a test that is root's, as in a container.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// A fresh folder, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("emb-job-{process}-{count}-{name}"));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("a file");
        self.path(name)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// A checkpoint is whole: every checksum of it is verified, and it scores.
    pub(crate) fn loads(&self, name: &str) {
        let (saved, data) = (self.path(name), self.path("rows.txt"));
        let run = |args: &[&str]| {
            let run = Command::new(env!("CARGO_BIN_EXE_emb")).args(args).output();
            let run = run.expect("the program runs");
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        };
        run(&["inspect", "--load", &saved]);
        run(&["eval", "--load", &saved, "--data", &data]);
    }

    /// A disk of so much room; none, and the reason printed, where this user may not mount one.
    pub(crate) fn small_disk(&self, name: &str, room: &str) -> Option<Disk> {
        let at = self.0.join(name);
        std::fs::create_dir_all(&at).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={room}"), "tmpfs"]).arg(&at);
        match mount.output() {
            Ok(output) if output.status.success() => Some(Disk(at)),
            Ok(output) => {
                eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("skipped: mount: {error}");
                None
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A mounted disk.
pub(crate) struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).output());
    }
}

/// A launcher with its processes.
pub(crate) struct Job {
    launcher: Child,
    folder: PathBuf,
    _one: MutexGuard<'static, ()>,
}

/// What a job came to.
pub(crate) struct Ended {
    pub(crate) succeeded: bool,
    said: String,
}

impl Job {
    /// Starts four processes with the same words, or one with its own.
    pub(crate) fn start(
        folder: &Folder,
        words: &[String],
        other: Option<(usize, &[String])>,
    ) -> Self {
        Self::begin(mpirun(), folder, "", words, other)
    }

    /// The same for processes that have nothing to say when one is killed, as where no connection
    /// breaks: `mpirun` does not give them the second that it otherwise does, or two.
    pub(crate) fn start_speechless(folder: &Folder, words: &[String]) -> Self {
        let mut command = mpirun();
        command.args(["--mca", "odls_base_sigkill_timeout", "0"]);
        Self::begin(command, folder, "", words, None)
    }

    /// Starts four processes that do something of a shell's before they are the program.
    pub(crate) fn start_after(folder: &Folder, before: &str, words: &[String]) -> Self {
        Self::begin(mpirun(), folder, before, words, None)
    }

    fn begin(
        mut command: Command,
        folder: &Folder,
        before: &str,
        words: &[String],
        other: Option<(usize, &[String])>,
    ) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Measured while nothing else of this runs.
        soon(Duration::ZERO);
        let said = File::create(folder.0.join("said")).expect("a file");
        let parts = match other {
            None => vec![(WORLD, words)],
            Some((rank, others)) => vec![(rank, words), (1, others), (WORLD - rank - 1, words)],
        };
        // Each tells which process it is, and becomes the program.
        let tells = folder.path("process-$OMPI_COMM_WORLD_RANK");
        let script = format!("echo $$ >{tells}; {before} exec \"$@\"");
        for (index, (processes, words)) in parts.into_iter().enumerate() {
            command.args((index > 0).then_some(":")).args(["-n", &processes.to_string()]);
            command.args(["sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_emb")]).args(words);
        }
        command.stdin(Stdio::null()).stderr(said.try_clone().expect("a file")).stdout(said);
        let launcher = command.spawn().expect("mpirun starts");
        Self { launcher, folder: folder.0.clone(), _one: one }
    }

    /// Returns once a file is there.
    pub(crate) fn wait_for(&mut self, file: &str) {
        let began = Instant::now();
        while !Path::new(file).exists() {
            let runs = matches!(self.launcher.try_wait(), Ok(None));
            assert!(runs && began.elapsed() < START, "no {file}: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to the process of a rank.
    pub(crate) fn signal(&self, rank: usize, signal: &str) {
        let process = self.process(rank).expect("the job is under way");
        let sent = Command::new("kill").args(["-s", signal, &process]).status();
        assert!(sent.expect("the system has `kill`").success(), "rank {rank} has gone");
    }

    fn process(&self, rank: usize) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.join(format!("process-{rank}"))).ok()?;
        Some(text.trim().to_owned())
    }

    /// Waits until it is over, no longer than `limit`, and nothing of it is left.
    pub(crate) fn end(mut self, limit: Duration) -> Ended {
        let began = Instant::now();
        let status = loop {
            match self.launcher.try_wait().expect("it was started here") {
                Some(status) => break Some(status),
                None if began.elapsed() > limit => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let said = self.said();
        let status = status.unwrap_or_else(|| panic!("the job hangs after {limit:?}: {said}"));
        let left = || -> Vec<String> {
            (0..WORLD).filter_map(|rank| self.process(rank)).filter(|one| runs(one)).collect()
        };
        // A process that was killed may take a moment to end.
        let over = Instant::now();
        while !left().is_empty() && over.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let left = left();
        assert!(left.is_empty(), "processes {left:?} are left: {said}");
        assert!(!said.contains("panicked at"), "{said}");
        Ended { succeeded: status.success(), said }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }
}

/// Whether a process is there and has not ended, though nobody may have asked how.
fn runs(process: &str) -> bool {
    let about = std::fs::read_to_string(Path::new("/proc").join(process).join("stat"));
    let state = about.ok().and_then(|about| Some(about.rsplit_once(") ")?.1.to_owned()));
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// Where a job hangs, or a test fails before it has ended.
impl Drop for Job {
    fn drop(&mut self) {
        if matches!(self.launcher.try_wait(), Ok(None)) {
            for rank in 0..WORLD {
                if let Some(process) = self.process(rank) {
                    drop(Command::new("kill").args(["-s", "KILL", &process]).output());
                }
            }
            drop(self.launcher.kill());
            drop(self.launcher.wait());
        }
    }
}

impl Ended {
    /// What each rank says went wrong; errors of two ranks may share a line. A rank that cannot end
    /// its messages says so itself before it ends the job.
    pub(crate) fn errors(&self) -> BTreeMap<usize, String> {
        let stuck = self.said.lines().filter(|line| line.ends_with("so this job does"));
        let stuck = stuck.filter_map(|line| {
            let (_operation, rest) = line.split_once(" on rank ")?;
            let (rank, _) = rest.split_once(' ')?;
            Some((rank.parse().ok()?, line.to_owned()))
        });
        let found = self.said.split("error: rank ").skip(1).filter_map(|text| {
            let (rank, rest) = text.split_once(" on ")?;
            let line = rest.lines().next()?;
            let (_host, error) = line.split_once(": ")?;
            Some((rank.parse().ok()?, error.to_owned()))
        });
        stuck.chain(found).collect()
    }

    /// The line that contains a text.
    pub(crate) fn line(&self, text: &str) -> String {
        let line = self.said.lines().find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("no line says {text:?}: {self}")).trim().to_owned()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

/// Prints a row of the table of the failure contract, and adds it to the file that `EMB_CONTRACT`
/// names. Faults of the start are as long ago as the job.
pub(crate) fn row(sets: &str, fault: &str, fails: usize, after: Duration, message: &str) {
    let row = serde_json::json!({
        "transport": "emb train, mpi", "sets": sets, "fault": fault, "fails": fails,
        "after_ms": after.as_secs_f64() * 1e3, "message": message,
    });
    eprintln!("{row}");
    if let Ok(file) = std::env::var("EMB_CONTRACT") {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(format!("{row}\n").as_bytes()));
        written.expect("the file of EMB_CONTRACT can be written");
    }
}

/// Rows of Criteo form whose label follows the first id.
pub(crate) fn rows(count: usize) -> String {
    let row = |row: usize| {
        let label = (row * 7 + row / 3) % 2;
        let numbers = (0..13).map(|column| format!("\t{}", (row * (column + 3)) % 50));
        let ids = (1..26).map(|column| format!("\t{:x}", (row * (column + 11)) % 97));
        format!("{label}{}\t{label:x}{}\n", numbers.collect::<String>(), ids.collect::<String>())
    };
    (0..count).map(row).collect()
}
