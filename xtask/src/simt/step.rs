//! One thing that is run: its log, its time, how it ended.

use crate::Failure;
use crate::columns::{Align::Left, Align::Right, lines};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines of a failed step's log that are shown.
const SHOWN: usize = 80;

/// How often a running step is looked at.
const POLL: Duration = Duration::from_millis(20);

/// A command with what it is called in the table.
#[derive(Debug)]
pub(crate) struct Step {
    /// Such as `kernels`.
    pub(crate) part: String,
    /// Such as `tsan` or `random 3`.
    pub(crate) way: String,
    pub(crate) command: Command,
    /// It is stopped, and has failed, after this many seconds.
    pub(crate) limit: u64,
}

/// How a step ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    part: String,
    way: String,
    seconds: f64,
    /// Tests that passed, if the log says.
    tests: Option<u64>,
    failure: Option<String>,
    /// What a test of it left out, and why.
    skipped: Option<String>,
}

impl Step {
    /// Runs it; what it prints goes to a file in `logs`, and to the terminal if it fails.
    pub(crate) fn run(mut self, logs: &Path) -> Result<Outcome, Failure> {
        std::fs::create_dir_all(logs)?;
        let log = logs.join(format!("{} {}.log", self.part, self.way).replace([' ', '/'], "-"));
        let file = File::create(&log)?;
        self.command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
        eprintln!("{} {}", self.part, self.way);
        let start = Instant::now();
        let failure = self.wait(start)?;
        let seconds = start.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
        let skipped = skipped(&text);
        let without_device = skipped.clone().filter(|reason| is_no_device(reason));
        let failure = failure.or(without_device);
        if let Some(failure) = &failure {
            let from = text.lines().count().saturating_sub(SHOWN);
            text.lines().skip(from).for_each(|line| eprintln!("    {line}"));
            eprintln!("{} {}: {failure}; all of it is in {}", self.part, self.way, log.display());
        }
        let (part, way, tests) = (self.part, self.way, passed(&text));
        Ok(Outcome { part, way, seconds, tests, failure, skipped })
    }

    /// Why it failed, if it did.
    fn wait(&mut self, start: Instant) -> Result<Option<String>, Failure> {
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let program = self.command.get_program().display();
                return Ok(Some(format!("{program}: {error}")));
            }
        };
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((!status.success()).then(|| status.to_string()));
            }
            if start.elapsed() > Duration::from_secs(self.limit) {
                child.kill()?;
                child.wait()?;
                return Ok(Some(format!("stopped after its limit of {} s", self.limit)));
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Outcome {
    /// What could not be run counts as its own line.
    pub(crate) fn skipped(part: &str, reason: &str) -> Self {
        let (part, skipped) = (part.to_owned(), Some(format!("skipped: {reason}")));
        Self { part, way: "-".to_owned(), seconds: 0.0, tests: None, failure: None, skipped }
    }

    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }
}

/// Runs steps, as many at a time as there are processors; outcomes are in the order of the steps.
pub(crate) fn run_all(steps: Vec<Step>, logs: &Path) -> Result<Vec<Outcome>, Failure> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let waiting = Mutex::new(steps.into_iter().enumerate());
    let take = || waiting.lock().ok().and_then(|mut waiting| waiting.next());
    let work = || {
        let mut done = Vec::new();
        while let Some((index, step)) = take() {
            done.push((index, step.run(logs).map_err(|failure| failure.to_string())));
        }
        done
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<_>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().flat_map(join).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, outcome)| outcome.map_err(Failure::from)).collect()
}

/// What a test that passed says it left out.
fn skipped(log: &str) -> Option<String> {
    log.lines().find_map(|line| line.find("skipped: ").map(|at| line[at..].to_owned()))
}

/// Whether a test was left out for want of a device: there are devices, so it has not found them.
fn is_no_device(reason: &str) -> bool {
    ["cannot be loaded", "no CUDA device", "devices wanted"].iter().any(|no| reason.contains(no))
}

/// Sum of what the programs of a log say they passed: `test result: ok. 12 passed; ...`, or a line
/// a test, with a cell that begins with `ok: `.
fn passed(log: &str) -> Option<u64> {
    let of_line = |line: &str| {
        if line.split("  ").any(|cell| cell.starts_with("ok: ")) {
            return Some(1);
        }
        let rust = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "));
        let (count, _) = rust?.1.split_once(" passed")?;
        count.parse::<u64>().ok()
    };
    log.lines().filter_map(of_line).fold(None, |sum, count| Some(sum.unwrap_or(0) + count))
}

/// A line a step.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let mut rows = vec![["part", "way", "tests", "seconds", "result"].map(str::to_owned).to_vec()];
    for outcome in outcomes {
        let tests = outcome.tests.map_or_else(|| "-".to_owned(), |tests| tests.to_string());
        let result = outcome.failure.clone().unwrap_or_else(|| match &outcome.skipped {
            Some(reason) if outcome.tests.is_none() => reason.clone(),
            Some(reason) => format!("ok; {reason}"),
            None => "ok".to_owned(),
        });
        let seconds = format!("{:.1}", outcome.seconds);
        rows.push(vec![outcome.part.clone(), outcome.way.clone(), tests, seconds, result]);
    }
    lines(&[Left, Left, Right, Right, Left], &rows)
}

/// Where logs go, from the workspace's root.
pub(crate) fn logs(root: &Path) -> PathBuf {
    root.join("target/simt/logs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: u64) -> Outcome {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (part, way) = ("part".to_owned(), script.chars().take(6).collect());
        let logs = std::env::temp_dir().join(format!("emb-step-{}-{limit}", std::process::id()));
        let outcome = Step { part, way, command, limit }.run(&logs).expect("sh is there");
        std::fs::remove_dir_all(&logs).expect("it is ours");
        outcome
    }

    #[test]
    fn a_step_that_fails_or_does_not_end_is_told() {
        let fine = run("echo 'a  plain  ok: 3 kernels'", 60);
        assert_eq!((fine.tests, fine.failure), (Some(1), None));
        let failed = run("echo no; exit 3", 61);
        assert_eq!(failed.failure.as_deref(), Some("exit status: 3"));
        let slow = run("exec sleep 60", 0);
        assert_eq!(slow.failure.as_deref(), Some("stopped after its limit of 0 s"));
    }

    #[test]
    fn tests_that_passed_are_added_up() {
        let log = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored\n\
            test result: FAILED. 1 passed; 1 failed\nsort  plain  1.0  0.1  ok: 4 sizes\nok: no\n";
        assert_eq!(passed(log), Some(5));
        assert_eq!(passed("nothing"), None);
    }

    #[test]
    fn a_test_that_finds_no_device_has_failed() {
        let lost = run("echo 'test a ... skipped: libcuda cannot be loaded: tried x'", 62);
        assert_eq!(lost.failure.as_deref(), Some("skipped: libcuda cannot be loaded: tried x"));
        let other = run("echo 'skipped: no data'; echo 'test result: ok. 1 passed'", 63);
        assert_eq!((other.failure.as_deref(), other.tests), (None, Some(1)));
        assert!(table(&[other]).contains("ok; skipped: no data"));
    }

    #[test]
    fn steps_at_once_are_told_in_their_order() {
        let step = |way: &str, script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Step { part: "part".to_owned(), way: way.to_owned(), command, limit: 60 }
        };
        let logs = std::env::temp_dir().join(format!("emb-steps-{}", std::process::id()));
        let steps = vec![step("first", "sleep 0.1"), step("second", ":"), step("third", "exit 1")];
        let outcomes = run_all(steps, &logs).expect("sh is there");
        std::fs::remove_dir_all(&logs).expect("it is ours");
        let ways: Vec<&str> = outcomes.iter().map(|outcome| outcome.way.as_str()).collect();
        assert_eq!(ways, ["first", "second", "third"]);
        let failed: Vec<bool> = outcomes.iter().map(Outcome::failed).collect();
        assert_eq!(failed, [false, false, true]);
    }

    #[test]
    fn what_was_skipped_stands_in_the_table_with_its_reason() {
        let text = table(&[Outcome::skipped("kernels", "no compiler")]);
        assert!(text.lines().nth(1).is_some_and(|line| line.contains("skipped: no compiler")));
    }
}
