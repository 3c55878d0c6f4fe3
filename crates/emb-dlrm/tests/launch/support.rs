//! Small programs as ranks, and what became of them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take that is waited for.
const LONG: Duration = Duration::from_secs(20);

/// A program for every rank, in a folder of its own, where each rank leaves the number of its
/// process.
pub(crate) struct Program {
    folder: PathBuf,
}

impl Program {
    /// A program of the shell.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("emb-launch-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("program");
        let text = format!(
            "#!/bin/sh\necho $$ > \"$FOLDER/$RANK.new\"; mv \"$FOLDER/$RANK.new\" \"$FOLDER/$RANK.pid\"\n{text}\n"
        );
        // Another writes it: what this process has open for writing, a process that a test beside
        // this one just starts has open too, and then it can't be run ("text file busy").
        let mut writer = Command::new("sh");
        writer.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path);
        let mut writer = writer.stdin(Stdio::piped()).spawn().expect("a shell");
        let mut to = writer.stdin.take().expect("invariant: it is piped");
        to.write_all(text.as_bytes()).expect("a text");
        drop(to);
        assert!(writer.wait().expect("a shell").success(), "{name} can't be written");
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts it on so many ranks.
    pub(crate) fn start(&self, ranks: usize, own: &[&str]) -> Launched {
        self.start_with(ranks, own, &["train", "--data", "synthetic"])
    }

    pub(crate) fn start_with(&self, ranks: usize, own: &[&str], train: &[&str]) -> Launched {
        let (ranks, program) = (ranks.to_string(), self.path("program"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
        command.args(["launch", "-n", &ranks, "--transport", "nccl", "--program"]).arg(program);
        command.args(own).arg("--").args(train);
        self.start_command(command)
    }

    /// A launcher that is started by a command of its own.
    pub(crate) fn start_command(&self, command: Command) -> Launched {
        self.start_command_in(command, &self.folder)
    }

    /// The same with another folder for files of a moment.
    pub(crate) fn start_command_in(&self, mut command: Command, moment: &Path) -> Launched {
        command.env("FOLDER", &self.folder).env("TMPDIR", moment);
        Launched::start(command)
    }

    pub(crate) fn run(&self, ranks: usize, own: &[&str]) -> Run {
        self.start(ranks, own).wait()
    }

    /// How long ago a rank made a file.
    pub(crate) fn since(&self, name: &str) -> Duration {
        let made = std::fs::metadata(self.path(name)).and_then(|about| about.modified());
        made.expect("a file").elapsed().expect("in the past")
    }

    /// Names of files of its folder that end so.
    pub(crate) fn files(&self, end: &str) -> Vec<String> {
        let all = std::fs::read_dir(&self.folder).expect("the folder").flatten();
        let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(end)).collect()
    }

    /// The process of a rank, once it is there.
    pub(crate) fn pid(&self, rank: usize) -> u32 {
        let path = self.path(&format!("{rank}.pid"));
        let text =
            until(|| std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')));
        text.trim().parse().expect("a number")
    }

    pub(crate) fn all_are_there(&self, ranks: usize) {
        for rank in 0..ranks {
            self.pid(rank);
        }
    }

    pub(crate) fn nobody_is_left(&self, ranks: usize) {
        (0..ranks).for_each(|rank| self.is_gone(rank));
    }

    pub(crate) fn is_gone(&self, rank: usize) {
        let pid = self.pid(rank);
        until(|| (!is_alive(pid)).then_some(()));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Whether a process is there and not only not yet waited for.
fn is_alive(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The state follows the name, which may hold anything.
    !status.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z')
}

fn until<T>(ready: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(begin.elapsed() < LONG, "it did not happen within {LONG:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A launcher that runs.
pub(crate) struct Launched {
    child: Child,
    begin: Instant,
}

impl Launched {
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Nothing of whoever started this test.
        for name in ["RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "SLURM_STEP_ID", "EMB_STATUS"] {
            command.env_remove(name);
        }
        Self { child: command.spawn().expect("the launcher starts"), begin: Instant::now() }
    }

    /// Waits for a line of standard output: rank 0 was heard of.
    pub(crate) fn hears(&mut self, line: &str) {
        let mut heard = vec![0; line.len() + 1];
        let out = self.child.stdout.as_mut().expect("invariant: it is piped");
        out.read_exact(&mut heard).expect("a line");
        assert_eq!(String::from_utf8_lossy(&heard), format!("{line}\n"));
    }

    pub(crate) fn signal(&self, name: &str) {
        Self::kill(self.child.id(), name);
    }

    pub(crate) fn kill(pid: u32, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
        assert!(sent.expect("a shell").success());
    }

    pub(crate) fn wait(self) -> Run {
        let output = self.child.wait_with_output().expect("the launcher ends");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let (out, err) = (text(output.stdout), text(output.stderr));
        let seconds = self.begin.elapsed().as_secs_f64();
        Run { code: output.status.code(), out, err, seconds }
    }
}

/// How a launcher ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) seconds: f64,
}

impl Run {
    pub(crate) fn ended(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}", self.err);
    }

    /// The first line that begins so.
    pub(crate) fn note(&self, begin: &str) -> &str {
        let line = self.err.lines().find(|line| line.starts_with(begin));
        line.unwrap_or_else(|| panic!("{begin:?} is missing: {}", self.err))
    }
}

/// `emb launch` as it is, without a program.
pub(crate) fn launch(own: &[&str], train: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
    command.arg("launch").args(own).arg("--").args(train);
    Launched::start(command).wait()
}
