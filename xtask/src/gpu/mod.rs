//! One folder for a machine with a GPU, no network and no Rust: tests, benches, kernels, a script.
//!
//! The script is the same wherever it runs; on the fake driver it is rehearsed with tiny sizes.

mod package;
mod rehearsal;

use crate::Failure;
use crate::simt::targets;
use crate::workspace::Workspace;
use crate::{features, kernels, simt};
use clap::Args;

/// What `cargo xtask test-gpu` is asked for.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Run the script here, on the fake driver, with tiny sizes.
    #[arg(long)]
    rehearse: bool,
    /// How the programs are built: `release`, or the tests' own `dev`, which is built sooner.
    #[arg(long, default_value = "release")]
    profile: String,
    /// Tests of these crates alone, by commas.
    #[arg(long, value_name = "CRATES", value_delimiter = ',')]
    only: Vec<String>,
}

/// Prepares the folder and its archive; rehearses the script if asked to.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    // The fake driver has kernels of its own: for a rehearsal any image will do.
    if !(options.rehearse && workspace.exists(kernels::IMAGE)) {
        kernels::run(workspace, &kernels::Options::default())?;
    }
    let mut targets = targets::find(workspace)?;
    targets.retain(|target| options.only.is_empty() || options.only.contains(&target.package));
    // The machine with a GPU may have no MPI; here programs are shared with the other chores.
    let features = if options.rehearse {
        features::all(workspace)?
    } else {
        features::without_mpi(workspace)?
    };
    let programs = targets::build(workspace, &targets, &options.profile, &features)?;
    let package = package::prepare(workspace, &programs)?;
    crate::print(&package.describe())?;
    if options.rehearse {
        let machine = simt::Machine::build(workspace, simt::Flavour::Plain)?;
        return rehearsal::run(workspace, &package, &machine);
    }
    let archive = package.archive()?;
    crate::print(&format!(
        "{}\ncopy it to the machine with a GPU, then: tar xzf emb-gpu.tar.gz && emb-gpu/run.sh\n",
        archive.display()
    ))
}
