//! The CUDA kernels, and all that calls them, on the CPU: under a shim that runs each CUDA thread as
//! a fiber, and over a driver and an NCCL that are ours.
//!
//! What needs no GPU to be wrong is found here: wild addresses, races, missing barriers, streams
//! that do not wait, collectives that do not match.

pub(crate) mod compiler;
mod machine;
mod plan;
pub(crate) mod step;
pub(crate) mod targets;

use crate::workspace::Workspace;
use crate::{Failure, features};
use clap::Args;
pub(crate) use machine::Machine;
use plan::Part;
pub(crate) use plan::{Flavour, Schedule};
use std::time::Instant;
use step::{Outcome, Step};
use targets::{Executable, Target};

/// Scripts that build and run what is C++, from the workspace's root.
const KERNELS: &str = "crates/emb-kernels/simt/tests/run.sh";
const DRIVER_TESTS: &str = "crates/emb-kernels/simt/driver/tests/run.sh";

/// Where they build, from the workspace's root.
const OUT: &str = "target/simt";

/// Seconds after which a step has failed: several times what the slowest takes on two cores.
const LIMIT: u64 = 600;

/// What `cargo xtask test-simt` is asked for.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How the kernels are compiled.
    #[arg(long, value_enum, default_value = "all")]
    flavour: Flavour,
    /// Orders of the streams under which the crates' suites run.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// These parts alone, by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Fail where no C++ compiler is found, instead of saying so.
    #[arg(long)]
    required: bool,
}

/// Runs everything asked for, then prints a table; fails if a line of it did.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let start = Instant::now();
    if let Err(reason) = compiler::find() {
        if options.required {
            return Err(reason.into());
        }
        return crate::print(&format!("test-simt: skipped: {reason}\n"));
    }
    let parts = if options.only.is_empty() { &Part::ALL[..] } else { &options.only };
    let steps = scripts(workspace, options, parts);
    let mut outcomes = step::run_all(steps, &step::logs(workspace.root()))?;
    if parts.iter().any(|part| part.is_crate()) {
        suites(workspace, options, parts, &mut outcomes)?;
    }
    crate::print(&step::table(&outcomes))?;
    let failed = outcomes.iter().filter(|outcome| outcome.failed()).count();
    eprintln!("test-simt: {:.1} s", start.elapsed().as_secs_f64());
    if failed > 0 {
        return Err(format!("test-simt: {failed} line(s) above failed").into());
    }
    Ok(())
}

/// What is C++: the kernels alone in every flavour, then the fake driver alone.
fn scripts(workspace: &Workspace, options: &Options, parts: &[Part]) -> Vec<Step> {
    let step = |part: Part, script: &str, flavour: Flavour| {
        let mut command = workspace.command("bash");
        command.arg(script).arg(workspace.root().join(OUT).join(part.name()));
        command.arg(flavour.name()).args(flavour.tests());
        let (part, way) = (part.name().to_owned(), flavour.name().to_owned());
        Step { part, way, command, limit: LIMIT }
    };
    let mut steps = Vec::new();
    if parts.contains(&Part::Kernels) {
        let flavours = options.flavour.each();
        steps.extend(flavours.into_iter().map(|flavour| step(Part::Kernels, KERNELS, flavour)));
    }
    if parts.contains(&Part::Driver) {
        steps.push(step(Part::Driver, DRIVER_TESTS, options.flavour.of_libraries()));
    }
    steps
}

/// What is Rust: the suites of the crates over the fake driver, under every schedule.
fn suites(
    workspace: &Workspace,
    options: &Options,
    parts: &[Part],
    outcomes: &mut Vec<Outcome>,
) -> Result<(), Failure> {
    let machine = Machine::build(workspace, options.flavour.of_libraries())?;
    let wanted = |target: &Target| {
        let part = parts.iter().find(|part| part.name() == target.package);
        // The contract of failures waits for timeouts, whatever the schedule: `test-mpi` runs it once.
        let waits = target.name.starts_with("contract_");
        target.kind == "test" && !waits && part.is_some_and(|part| part.is_crate())
    };
    let targets: Vec<Target> = targets::find(workspace)?.into_iter().filter(wanted).collect();
    let programs = targets::build(workspace, &targets, "dev", &features::all(workspace)?)?;
    let mut steps = Vec::new();
    for part in parts.iter().filter(|part| part.is_crate()) {
        let of_part = programs.iter().filter(|p| p.target.package == part.name());
        let of_part: Vec<&Executable> = of_part.collect();
        if of_part.is_empty() {
            outcomes.push(Outcome::skipped(part.name(), "no test of it needs a device"));
        }
        for schedule in plan::schedules(part.schedules(options.schedules as usize)) {
            steps.extend(of_part.iter().map(|program| machine.step(*part, schedule, program)));
        }
    }
    outcomes.extend(step::run_all(steps, &step::logs(workspace.root()))?);
    Ok(())
}
