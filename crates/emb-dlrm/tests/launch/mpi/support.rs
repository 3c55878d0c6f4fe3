//! Runs of `emb launch` over MPI, and the processes that belong to them.

#[path = "../../support/rows.rs"]
mod rows;

use emb_dlrm::checkpoint::Manifest;
pub(crate) use rows::rows;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take that is waited for.
const LONG: Duration = Duration::from_mins(1);
/// The variable by which processes of a test are known.
const MARK: &str = "EMB_TEST_FOLDER";

/// A fresh folder, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("emb-mpi-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file");
    }

    /// A program of the shell.
    pub(crate) fn program(&self, name: &str, text: &str) {
        // Another writes it: what this process has open for writing, a process that a test beside this
        // one just starts has open too, and then it can't be run ("text file busy").
        let mut writer = Command::new("sh");
        writer.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(self.0.join(name));
        let mut writer = writer.stdin(Stdio::piped()).spawn().expect("a shell");
        let mut to = writer.stdin.take().expect("invariant: it is piped");
        to.write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).expect("a text");
        drop(to);
        assert!(writer.wait().expect("a shell").success(), "{name} can't be written");
    }

    /// A helper that `mpirun` has on a host, and what it started.
    pub(crate) fn helper_and_children(&self, number: usize) -> Vec<u32> {
        let is_helper = "orted\0-mca\0ess\0env\0";
        let its_number = format!("ess_base_vpid\0{number}\0");
        let of = |pid: u32, what: &str| {
            std::fs::read(format!("/proc/{pid}/{what}"))
                .map_or(String::new(), |text| String::from_utf8_lossy(&text).into_owned())
        };
        let all: Vec<u32> = self.processes().into_iter().map(|(pid, _)| pid).collect();
        let helper = all.iter().copied().find(|&pid| {
            let line = of(pid, "cmdline");
            line.contains(is_helper) && line.contains(&its_number)
        });
        let helper = helper.expect("the helper");
        let parent = |pid: u32| {
            let status = of(pid, "stat");
            let rest = status.rsplit(')').next().unwrap_or("").to_owned();
            rest.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        let children = all.iter().copied().filter(|&pid| parent(pid) == helper);
        std::iter::once(helper).chain(children).collect()
    }

    /// Processes of this test, as number and environment.
    fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}\0", self.0.display());
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let of = |pid: u32| {
            let text = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            Some((pid, String::from_utf8_lossy(&text).into_owned()))
        };
        numbers.filter_map(of).filter(|(_, text)| text.contains(&mark)).collect()
    }

    pub(crate) fn nobody_is_left(&self) {
        until(|| self.processes().is_empty().then_some(()));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn until<T>(ready: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(begin.elapsed() < LONG, "it did not happen within {LONG:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
    assert!(sent.expect("a shell").success());
}

/// A launcher that runs.
pub(crate) struct Launched<'a> {
    child: Child,
    folder: &'a Folder,
}

impl<'a> Launched<'a> {
    pub(crate) fn start(folder: &'a Folder, own: &[&str], train: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
        command.arg("launch").args(own).args(["--", "train"]).args(train);
        // What mpirun keeps for a host lies in a folder that is removed with the last that uses it, also
        // where another begins to: tests beside this one have others.
        let temporary = folder.0.join("tmp");
        std::fs::create_dir_all(&temporary).expect("a folder");
        command.env(MARK, &folder.0).env("TMPDIR", temporary);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().expect("the launcher starts"), folder }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns once the ranks have made these files; they do before the launcher ends.
    pub(crate) fn wait_for(mut self, files: &[&str]) -> Self {
        let all = |folder: &Folder| files.iter().all(|name| folder.0.join(name).exists());
        let begin = Instant::now();
        while !all(self.folder) {
            if self.child.try_wait().expect("a child").is_some() {
                let run = self.wait();
                panic!("ended with {:?} before {files:?} were there: {}", run.code, run.err);
            }
            assert!(begin.elapsed() < LONG, "{files:?} were not there within {LONG:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        self
    }

    /// The process of a rank, once the training has saved step `step`. The rank is that which has a
    /// status to keep: its keeper has none.
    pub(crate) fn rank_after(&self, rank: usize, step: u64) -> u32 {
        let saved = self.folder.0.join("model");
        until(|| Manifest::read(&saved).ok().filter(|manifest| manifest.step >= step));
        let is_rank = format!("OMPI_COMM_WORLD_RANK={rank}\0");
        let ranks = self.folder.processes().into_iter().find(|(_, environment)| {
            environment.contains(&is_rank) && environment.contains("EMB_STATUS=")
        });
        ranks.expect("the rank's process").0
    }

    pub(crate) fn wait(self) -> Run {
        let output = self.child.wait_with_output().expect("the launcher ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// How a launcher ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
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

/// `emb` in one process, which must go well.
pub(crate) fn emb(args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_emb")).args(args).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
