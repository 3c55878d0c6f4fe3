//! The CUDA kernels, and all that calls them, on the CPU: under a shim that runs each CUDA thread as
//! a fiber, and over a driver and an NCCL that are ours.
//!
//! What needs no GPU to be wrong is found here: wild addresses, races, missing barriers, streams
//! that do not wait, collectives that do not match.

mod compiler;
mod plan;
mod step;
mod targets;

use crate::Failure;
use crate::workspace::Workspace;
use clap::Args;
use plan::{Flavour, Part, Schedule};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use step::{Outcome, Step};
pub(crate) use targets::{Executable, Target};

/// Scripts that build and run what is C++, from the workspace's root.
const KERNELS: &str = "crates/emb-kernels/simt/tests/run.sh";
const DRIVER: &str = "crates/emb-kernels/simt/driver/build.sh";
const DRIVER_TESTS: &str = "crates/emb-kernels/simt/driver/tests/run.sh";

/// Where the fake libraries are put.
const LIBRARIES: &str = "target/simt/lib";

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
    /// One part alone.
    #[arg(long, value_enum)]
    only: Option<Part>,
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
    let parts: Vec<Part> = options.only.map_or_else(|| Part::ALL.to_vec(), |part| vec![part]);
    let mut outcomes = Vec::new();
    scripts(workspace, options, &parts, &mut outcomes)?;
    if parts.iter().any(|part| part.is_crate()) {
        suites(workspace, options, &parts, &mut outcomes)?;
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
fn scripts(
    workspace: &Workspace,
    options: &Options,
    parts: &[Part],
    outcomes: &mut Vec<Outcome>,
) -> Result<(), Failure> {
    let mut run = |part: Part, way: &str, script: &str, arguments: &[&str]| {
        let mut command = workspace.command("bash");
        command.arg(script).args(arguments);
        let (part, way) = (part.name().to_owned(), way.to_owned());
        let step = Step { part, way, command, limit: LIMIT };
        step.run(&step::logs(workspace.root())).map(|outcome| outcomes.push(outcome))
    };
    if parts.contains(&Part::Kernels) {
        for flavour in options.flavour.each() {
            run(Part::Kernels, flavour.name(), KERNELS, &[flavour.name()])?;
        }
    }
    if parts.contains(&Part::Driver) {
        run(Part::Driver, "plain", DRIVER_TESTS, &[])?;
    }
    Ok(())
}

/// What is Rust: the suites of the crates over the fake driver, under every schedule.
fn suites(
    workspace: &Workspace,
    options: &Options,
    parts: &[Part],
    outcomes: &mut Vec<Outcome>,
) -> Result<(), Failure> {
    let machine = Machine::build(workspace)?;
    let wanted = |target: &Target| {
        let part = parts.iter().find(|part| part.name() == target.package);
        target.kind == "test" && part.is_some_and(|part| part.is_crate())
    };
    let targets: Vec<Target> = targets::find(workspace)?.into_iter().filter(wanted).collect();
    let programs = targets::build(workspace, &targets, "dev")?;
    for part in parts.iter().filter(|part| part.is_crate()) {
        let of_part = programs.iter().filter(|p| p.target.package == part.name());
        let of_part: Vec<&Executable> = of_part.collect();
        if of_part.is_empty() {
            outcomes.push(Outcome::skipped(part.name(), "no test of it needs a device"));
        }
        for schedule in plan::schedules(options.schedules as usize) {
            for program in &of_part {
                let step = machine.step(*part, schedule, program);
                outcomes.push(step.run(&step::logs(workspace.root()))?);
            }
        }
    }
    Ok(())
}

/// The fake libraries, and an image of kernels for them.
pub(crate) struct Machine {
    libraries: PathBuf,
    image: PathBuf,
}

impl Machine {
    /// Builds the libraries with the kernels in them.
    pub(crate) fn build(workspace: &Workspace) -> Result<Self, Failure> {
        let libraries = workspace.root().join(LIBRARIES);
        std::fs::create_dir_all(&libraries)?;
        let mut command = workspace.command("bash");
        let status = command.arg(DRIVER).arg(&libraries).status()?;
        if !status.success() {
            return Err(format!("{DRIVER} failed: {status}").into());
        }
        // The fake driver has the kernels in itself: all it asks of an image is to look like one.
        let image = libraries.join("image.ptx");
        std::fs::write(&image, "// The kernels are in the driver.\n.version 9.0\n.target sm_80\n")?;
        Ok(Self { libraries, image })
    }

    /// Lets a command find the fake libraries before any that are real.
    pub(crate) fn prepare(&self, command: &mut Command, schedule: Schedule, devices: u32) {
        command.env("LD_LIBRARY_PATH", &self.libraries).env("EMB_KERNELS", &self.image);
        command.env("SIMT_SCHEDULE", schedule.kind).env("SIMT_SEED", schedule.seed.to_string());
        command.env("SIMT_DEVICES", devices.to_string());
    }

    fn step(&self, part: Part, schedule: Schedule, program: &Executable) -> Step {
        let mut command = Command::new(&program.file);
        command.current_dir(&program.folder);
        self.prepare(&mut command, schedule, part.devices());
        let part = format!("{} {}", part.name(), program.target.name);
        Step { part, way: schedule.name(), command, limit: LIMIT }
    }
}
