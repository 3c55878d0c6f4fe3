//! What needs MPI: the transport's suites, training with one rank a process, and the failure
//! contract of every transport, whose rows are printed as a table.
//!
//! A test program that is not under a launcher starts one with itself.

mod rows;
pub(crate) mod toolchain;

use crate::simt::step::{self, Outcome, Step};
use crate::simt::targets::{self, Executable, Target};
use crate::simt::{self, Machine, Schedule};
use crate::workspace::Workspace;
use crate::{Failure, features};
use clap::Args;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Where logs and rows go, from the workspace's root.
const OUT: &str = "target/mpi";

/// Seconds after which a step has failed: several times what the slowest takes on two cores.
const LIMIT: u64 = 300;

/// The variable that names the file for the rows of the contract.
const ROWS: &str = "EMB_CONTRACT";

/// Tests of the contract over transports without MPI, by their names.
const CONTRACT: &str = "contract";

/// Features that mean a device: the fake driver's.
const DEVICE: [&str; 2] = ["cuda", "nccl"];

/// What `cargo xtask test-mpi` is asked for.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Fail where no MPI is found, instead of saying so.
    #[arg(long)]
    required: bool,
    /// Test programs whose name contains this alone.
    #[arg(long)]
    only: Option<String>,
}

/// Runs everything asked for, then prints two tables; fails if a line of the first did.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let start = Instant::now();
    match toolchain::find() {
        Ok(found) => eprintln!("test-mpi: {}", found.version),
        Err(reason) if options.required => return Err(reason.into()),
        Err(reason) => return crate::print(&format!("test-mpi: skipped: {reason}\n")),
    }
    let out = workspace.root().join(OUT);
    std::fs::create_dir_all(&out)?;
    let rows = out.join("contract.jsonl");
    if rows.exists() {
        std::fs::remove_file(&rows)?;
    }
    let mut outcomes = Vec::new();
    let programs = programs(workspace, options)?;
    let machine = machine(workspace, &programs, &mut outcomes)?;
    eprintln!("test-mpi: built after {:.1} s", start.elapsed().as_secs_f64());
    let (logs, step) = (out.join("logs"), |program| step(program, machine.as_ref(), &rows));
    let (jobs, threads): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.target.requires(&["mpi"]));
    // Threads wait more than they work. Jobs run one after the other: each has as many processes as
    // there are processors, or more.
    outcomes.extend(step::run_all(threads.into_iter().filter_map(step).collect(), &logs)?);
    for step in jobs.into_iter().filter_map(step) {
        outcomes.push(step.run(&logs)?);
    }
    let rows = rows::read(&rows)?;
    crate::print(&format!("{}\n{}", rows::table(&rows), step::table(&outcomes)))?;
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("test-mpi: {} faults of the contract, {seconds:.1} s", rows.len());
    match outcomes.iter().filter(|outcome| outcome.failed()).count() {
        0 => Ok(()),
        failed => Err(format!("test-mpi: {failed} line(s) above failed").into()),
    }
}

/// Test programs that need MPI, and those of the contract, built in one go.
fn programs(workspace: &Workspace, options: &Options) -> Result<Vec<Executable>, Failure> {
    let wanted = |target: &Target| {
        let only = options.only.as_deref().is_none_or(|only| target.name.contains(only));
        let contract = target.package == "emb-comm" && target.name.starts_with(CONTRACT);
        only && target.kind == "test" && (contract || target.requires(&["mpi"]))
    };
    let targets: Vec<Target> = targets::all(workspace)?.into_iter().filter(wanted).collect();
    if targets.is_empty() {
        return Err("test-mpi: no test program is meant".into());
    }
    targets::build(workspace, &targets, "dev", &features::all(workspace)?)
}

/// The fake driver, where a program needs a device and there is a compiler for it.
fn machine(
    workspace: &Workspace,
    programs: &[Executable],
    outcomes: &mut Vec<Outcome>,
) -> Result<Option<Machine>, Failure> {
    let needs: Vec<&Executable> = programs.iter().filter(|p| p.target.requires(&DEVICE)).collect();
    if needs.is_empty() {
        return Ok(None);
    }
    match simt::compiler::find() {
        Ok(_) => Machine::build(workspace, simt::Flavour::Plain).map(Some),
        Err(reason) => {
            outcomes.extend(needs.iter().map(|p| Outcome::skipped(&p.target.name, &reason)));
            Ok(None)
        }
    }
}

/// A program's step; none where it needs a device and there is no fake one.
fn step(program: &Executable, machine: Option<&Machine>, rows: &Path) -> Option<Step> {
    let mut command = Command::new(&program.file);
    command.current_dir(&program.folder).env(ROWS, rows).env("RUST_TEST_NOCAPTURE", "1");
    let mut way = "-";
    if program.target.requires(&DEVICE) {
        machine?.prepare(&mut command, Schedule { kind: "random", seed: 1 }, 4);
        way = "fake driver";
    }
    if is_root() {
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    let part = format!("{} {}", program.target.package, program.target.name);
    Some(Step { part, way: way.to_owned(), command, limit: LIMIT })
}

/// Whether this process is root's, for whom Open MPI starts nothing unless told twice.
fn is_root() -> bool {
    std::fs::metadata(PathBuf::from("/proc/self")).is_ok_and(|process| process.uid() == 0)
}
