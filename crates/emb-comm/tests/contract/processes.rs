//! A case of the failure contract as a job of processes, under a watchdog.

use emb_comm::conformance::contract::{CULPRIT, Case, Fault, WORLD, now};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The timeout of ranks that find out by waiting.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// The variables that tell a process its case, and its folder.
pub(crate) const CASE: &str = "EMB_CONTRACT_CASE";
const FOLDER: &str = "EMB_CONTRACT_FOLDER";

/// After this the watchdog ends a job.
const HANGS: Duration = Duration::from_secs(25);

/// What nobody may say on the way out.
const NOISE: [&str; 4] = ["panicked at", "An error occurred in MPI", "MPI_ABORT", "double free"];

/// How many times longer things take here than on two quiet processors, where a launch of processes
/// that do nothing takes half a second: on a busy machine, a limit says nothing of the transport.
pub(crate) fn slowness() -> f64 {
    static SLOWNESS: OnceLock<f64> = OnceLock::new();
    *SLOWNESS.get_or_init(|| {
        let began = Instant::now();
        let launched = mpirun().arg("true").status().expect("mpirun starts");
        assert!(launched.success(), "mpirun starts nothing: {launched}");
        (began.elapsed().as_secs_f64() / 0.5).max(1.0)
    })
}

/// The launcher of four processes, up to the program.
fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none", "-n", &WORLD.to_string()]);
    // Who is left when one is killed has nothing to say of it: the launcher says it, and need not
    // wait a second, sometimes two, before it kills what is gone already.
    command.args(["--mca", "odls_base_sigkill_timeout", "0"]);
    // For a test that is root's, as in a container.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// A job that is over.
pub(crate) struct Job {
    case: Case,
    folder: PathBuf,
    /// When it was over.
    pub(crate) ended: Duration,
    status: Option<ExitStatus>,
    /// All that processes and the launcher said.
    pub(crate) said: String,
}

/// The rank of this process, where a launcher has started it.
pub(crate) fn rank() -> Option<usize> {
    std::env::var("OMPI_COMM_WORLD_RANK").ok()?.parse().ok()
}

/// The name of what a rank says.
pub(crate) fn file(what: &str, rank: usize) -> String {
    format!("{what}-{rank}")
}

/// A rank says something: a file that is whole as soon as it is there.
pub(crate) fn write(what: &str, rank: usize, text: &str) {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("a case has a folder"));
    let (part, whole) = (folder.join("part"), folder.join(file(what, rank)));
    let part = part.with_extension(file(what, rank));
    std::fs::write(&part, text).expect("the folder can be written");
    std::fs::rename(part, whole).expect("it was written");
}

impl Job {
    /// Runs the case in four processes of this program.
    pub(crate) fn run(case: Case) -> Self {
        let name = case.name().replace([' ', ',', '(', ')'], "-");
        let folder = std::env::temp_dir().join(format!("emb-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the case");
        let log = File::create(folder.join("said")).expect("a file in it");
        let mut command = mpirun();
        command.arg(std::env::current_exe().expect("this program"));
        command.env(CASE, case.name()).env(FOLDER, &folder);
        command.stdin(Stdio::null()).stderr(log.try_clone().expect("a file")).stdout(log);
        let mut launcher = command.spawn().expect("mpirun starts");
        let status = wait(&mut launcher, &folder);
        let ended = now();
        let said = std::fs::read_to_string(folder.join("said")).unwrap_or_default();
        Self { case, folder, ended, status, said }
    }

    /// What a rank said.
    pub(crate) fn read(&self, what: &str, rank: usize) -> Option<String> {
        std::fs::read_to_string(self.folder.join(file(what, rank))).ok()
    }

    /// A time that a rank wrote.
    pub(crate) fn time(&self, name: &str) -> Duration {
        let text = std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        Duration::from_micros(text.parse().unwrap_or(0))
    }

    /// What breaks the contract, whatever the fault: it hangs, it ends well, someone is noisy.
    pub(crate) fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        match self.status {
            None => findings.push(format!("the job hangs: {}", self.said)),
            Some(status) if status.success() => {
                findings.push(format!("the launcher says that all went well: {}", self.said));
            }
            Some(_) => {}
        }
        if !self.folder.join(file("fell", CULPRIT)).exists() {
            findings.push(format!("it did not get as far as the fault: {}", self.said));
        }
        let loud = self.said.lines().filter(|line| NOISE.iter().any(|noise| line.contains(noise)));
        let planned = usize::from(self.case.fault == Fault::Panics);
        if loud.count() > planned {
            findings.push(format!("someone is noisy on the way out: {}", self.said));
        }
        findings
    }

    /// The line in which the launcher names a rank.
    pub(crate) fn launcher_names(&self, rank: usize) -> Option<String> {
        let texts = [format!("process rank {rank} "), format!(",1],{rank}]")];
        let named = |line: &&str| texts.iter().any(|text| line.contains(text.as_str()));
        self.said.lines().find(named).map(|line| line.trim().to_owned())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits for the launcher, up to a limit, after which it is ended with all that it started.
fn wait(launcher: &mut Child, folder: &Path) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = launcher.try_wait().expect("it was started here") {
            return Some(status);
        }
        if began.elapsed() > HANGS {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let kill = |signal: &str, process: &str| {
        let _ = Command::new("kill").args([signal, process]).status();
    };
    // Its processes end with it; one that is stopped does not hear of it.
    kill("-TERM", &launcher.id().to_string());
    if let Ok(process) = std::fs::read_to_string(folder.join(file("process", CULPRIT))) {
        kill("-KILL", process.trim());
    }
    std::thread::sleep(Duration::from_secs(2));
    let _ = launcher.kill();
    let _ = launcher.wait();
    None
}
