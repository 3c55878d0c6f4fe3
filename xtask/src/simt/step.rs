//! One thing that is run: its log, its time, how it ended.

use crate::Failure;
use crate::columns::{Align::Left, Align::Right, lines};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
        if let Some(failure) = &failure {
            let from = text.lines().count().saturating_sub(SHOWN);
            text.lines().skip(from).for_each(|line| eprintln!("    {line}"));
            eprintln!("{} {}: {failure}; all of it is in {}", self.part, self.way, log.display());
        }
        Ok(Outcome { part: self.part, way: self.way, seconds, tests: passed(&text), failure })
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
        let (part, way) = (part.to_owned(), format!("skipped: {reason}"));
        Self { part, way, seconds: 0.0, tests: None, failure: None }
    }

    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }
}

/// Sum of what the programs of a log say they passed: `test result: ok. 12 passed; ...`, or a line
/// that begins with `passed 12`.
fn passed(log: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let rust = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "));
        let rust = rust.and_then(|(_, rest)| rest.split_once(" passed")).map(|(count, _)| count);
        let plain = line.strip_prefix("passed ").and_then(|rest| rest.split(' ').next());
        rust.or(plain)?.trim().parse::<u64>().ok()
    };
    log.lines().filter_map(of_line).fold(None, |sum, count| Some(sum.unwrap_or(0) + count))
}

/// A line a step.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let mut rows = vec![["part", "way", "tests", "seconds", "result"].map(str::to_owned).to_vec()];
    for outcome in outcomes {
        let tests = outcome.tests.map_or_else(|| "-".to_owned(), |tests| tests.to_string());
        let result = outcome.failure.clone().unwrap_or_else(|| "ok".to_owned());
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
        let fine = run("echo passed 3 of 3", 60);
        assert_eq!((fine.tests, fine.failure), (Some(3), None));
        let failed = run("echo no; exit 3", 61);
        assert_eq!(failed.failure.as_deref(), Some("exit status: 3"));
        let slow = run("exec sleep 60", 0);
        assert_eq!(slow.failure.as_deref(), Some("stopped after its limit of 0 s"));
    }

    #[test]
    fn tests_that_passed_are_added_up() {
        let log = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored\n\
            test result: FAILED. 1 passed; 1 failed\npassed 4 kernels\npassed by\n";
        assert_eq!(passed(log), Some(7));
        assert_eq!(passed("nothing"), None);
    }

    #[test]
    fn what_was_skipped_stands_in_the_table_with_its_reason() {
        let text = table(&[Outcome::skipped("kernels", "no compiler")]);
        assert!(text.lines().nth(1).is_some_and(|line| line.contains("skipped: no compiler")));
    }
}
