//! Ranks over MPI, each a process. Run without a launcher, it starts `mpirun` of itself for every
//! case, and says which cases passed. A word on the command line picks the cases that contain it.
#![cfg(not(loom))]

mod mpi_cases;

use mpi_cases::{Case, cases};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

/// Names the case to a process that `mpirun` starts.
const CASE: &str = "EMB_MPI_CASE";

fn main() -> ExitCode {
    let cases = cases();
    if let Ok(name) = std::env::var(CASE) {
        let case = cases.iter().find(|case| case.name == name).expect("a case of this name");
        return (case.rank)();
    }
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let filter: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let picked = |case: &&Case| filter.is_empty() || filter.iter().any(|f| case.name.contains(f));
    if let Err(error) = Command::new("mpirun").arg("--version").output() {
        eprintln!("skipped: mpirun does not start: {error}");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for case in cases.iter().filter(picked) {
        for &world in case.worlds {
            let began = Instant::now();
            let output = start(case, world);
            let took = began.elapsed();
            let problem = problem(case, world, &output, took);
            let outcome = if problem.is_some() { "FAILED" } else { "ok" };
            eprintln!("{} on {world} ... {outcome} ({:.2} s)", case.name, took.as_secs_f64());
            if let Some(problem) = problem {
                failed += 1;
                let [out, error] =
                    [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t));
                eprintln!("  {problem}\n---- stdout\n{out}\n---- stderr\n{error}\n----");
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a case on `world` processes; on none, as a program that nobody has launched.
fn start(case: &Case, world: usize) -> Output {
    let program = std::env::current_exe().expect("this program");
    let mut run = Command::new(if world == 0 { program.as_os_str() } else { "mpirun".as_ref() });
    if world > 0 {
        run.args(["--oversubscribe", "--bind-to", "none", "-n", &world.to_string()]).arg(program);
    }
    let run = run
        .env(CASE, case.name)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .output();
    run.expect("mpirun starts")
}

/// What is wrong with how a case ended.
fn problem(case: &Case, world: usize, output: &Output, took: Duration) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() != case.succeeds {
        return Some(format!("mpirun ended with {}", output.status));
    }
    if case.code.is_some() && output.status.code() != case.code {
        return Some(format!("mpirun ended with {}, not {:?}", output.status, case.code));
    }
    if took > case.within {
        return Some(format!("it took {took:?}, more than {:?}", case.within));
    }
    (case.says)(world, &text)
}
