//! Builds the fat binary of all CUDA kernels: for every architecture, without spills, reproducible.
//!
//! The compiler is the machine's own if it is of CUDA 13, else one that Python's package index has,
//! put into a private folder. No GPU and no driver are needed.

mod compile;
mod ptxas;
mod report;
mod reproducible;
mod sources;
mod toolkit;
mod wheels;

use crate::Failure;
use crate::workspace::Workspace;
use clap::Args;
use compile::Build;
use sources::Sources;
use std::path::{Path, PathBuf};
use std::time::Instant;
use toolkit::Toolkit;

/// Where parts are made, from the workspace's root.
const PARTS: &str = "target/kernel-parts";

/// The fat binary and what is in it. Builds of the crates watch this folder, so it holds nothing
/// else, and what did not change is not written.
pub(crate) const IMAGE: &str = "target/kernels/emb.fatbin";
const MANIFEST: &str = "target/kernels/emb.json";

/// What `cargo xtask kernels` is asked for.
#[derive(Args, Debug, Default)]
pub(crate) struct Options {
    /// The `nvcc` of CUDA 13 to use; also from `NVCC`. Without: the machine's, else one from wheels.
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
    /// Print the manifest as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Build once more, from a copy of the sources elsewhere, and compare the bytes.
    #[arg(long)]
    check_reproducible: bool,
}

/// Builds, reports, and leaves the fat binary and its manifest in `target/kernels`.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let start = Instant::now();
    let sources = Sources::of(workspace.root());
    sources.check()?;
    let toolkit = Toolkit::find(workspace, options.nvcc.as_deref())?;
    eprintln!("nvcc {} at {}", toolkit.version, toolkit.nvcc().display());
    let found = start.elapsed().as_secs_f64();
    let build = Build::run(&toolkit, &sources, &workspace.root().join(PARTS))?;
    let built = start.elapsed().as_secs_f64() - found;
    if build.kernels.is_empty() {
        return Err("the sources have no kernels".into());
    }
    if options.check_reproducible {
        reproducible::check(workspace, &toolkit, &sources, &build)?;
        eprintln!("a second build, from a copy elsewhere, has the same bytes");
    }
    let manifest = report::manifest(&toolkit, &build);
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    write(&workspace.root().join(IMAGE), &build.image)?;
    write(&workspace.root().join(MANIFEST), text.as_bytes())?;
    let printed = if options.json { text } else { report::table(&build, IMAGE) };
    crate::print(&printed)?;
    eprintln!("compiler ready after {found:.1} s, built in {built:.1} s");
    Ok(())
}

/// Writes a file that is not yet the same.
fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    if std::fs::read(file).is_ok_and(|old| old == content) {
        return Ok(());
    }
    std::fs::create_dir_all(file.parent().ok_or("a file in no folder")?)?;
    Ok(std::fs::write(file, content)?)
}
