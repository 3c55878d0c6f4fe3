//! The fake libraries, and how a program is made to find them.

use super::plan::{Flavour, Part, Schedule};
use super::step::Step;
use super::targets::Executable;
use super::{LIMIT, OUT};
use crate::Failure;
use crate::workspace::{Workspace, output};
use std::path::PathBuf;
use std::process::Command;

/// Builds the driver with the runtime and the kernels in it; the last line it prints is the folder.
const BUILD: &str = "crates/emb-kernels/simt/driver/build.sh";

/// What kernels that a program compiles for itself need beside its own text.
const SHIM: &str = "crates/emb-kernels/simt";

/// All that the fake driver asks of an image is to look like one: the kernels are in itself.
const IMAGE: &str = "// The kernels are in the driver.\n.version 9.0\n.target sm_80\n";

/// Bytes of a fake device: three times the largest table of a test.
const MEMORY: u64 = 32 << 30;

/// The fake libraries of one flavour, and an image of kernels for them.
#[derive(Debug)]
pub(crate) struct Machine {
    libraries: PathBuf,
    image: PathBuf,
    shim: PathBuf,
    /// The sanitizer's own library, which must be loaded before all others.
    sanitizer: Option<PathBuf>,
}

impl Machine {
    /// Builds the libraries with the kernels in them.
    pub(crate) fn build(workspace: &Workspace, flavour: Flavour) -> Result<Self, Failure> {
        let out = workspace.root().join(OUT).join("driver");
        let printed = output(workspace.command("bash").arg(BUILD).arg(&out).arg(flavour.name()))?;
        let libraries = printed.lines().last().map(PathBuf::from);
        let libraries = libraries.ok_or_else(|| format!("{BUILD} names no folder"))?;
        let image = libraries.join("image.ptx");
        std::fs::write(&image, IMAGE)?;
        let sanitizer = flavour.sanitizer().map(|name| sanitizer(workspace, name)).transpose()?;
        Ok(Self { libraries, image, shim: workspace.root().join(SHIM), sanitizer })
    }

    /// Lets a command find the fake libraries before any that are real.
    pub(crate) fn prepare(&self, command: &mut Command, schedule: Schedule, devices: u32) {
        command.env("LD_LIBRARY_PATH", &self.libraries).env("EMB_KERNELS", &self.image);
        command.env("SIMT_SCHEDULE", schedule.kind).env("SIMT_SEED", schedule.seed.to_string());
        command.env("SIMT_DEVICES", devices.to_string()).env("SIMT_INCLUDE", &self.shim);
        // A table of more than 2^32 elements fits; memory costs what is touched.
        command.env("SIMT_MEMORY", MEMORY.to_string());
        // What is skipped must be seen, though its test passes.
        command.env("RUST_TEST_NOCAPTURE", "1");
        if let Some(sanitizer) = &self.sanitizer {
            // Rust's own allocations live to the end of the program, on purpose.
            command.env("LD_PRELOAD", sanitizer).env("ASAN_OPTIONS", "detect_leaks=0");
            command.env("TSAN_OPTIONS", "halt_on_error=1");
        }
    }

    /// A test program of a crate under one schedule.
    pub(crate) fn step(&self, part: Part, schedule: Schedule, program: &Executable) -> Step {
        let mut command = Command::new(&program.file);
        command.current_dir(&program.folder);
        self.prepare(&mut command, schedule, part.devices());
        let part = format!("{} {}", part.name(), program.target.name);
        Step { part, way: schedule.name(), command, limit: LIMIT }
    }
}

/// Where the compiler keeps a sanitizer's library.
fn sanitizer(workspace: &Workspace, name: &str) -> Result<PathBuf, Failure> {
    let compiler = super::compiler::find()?;
    let found = output(workspace.command(&compiler).arg(format!("-print-file-name={name}")))?;
    Ok(PathBuf::from(found.trim()))
}
