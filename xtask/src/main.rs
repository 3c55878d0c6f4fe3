//! The project's chores, run as `cargo xtask <command>`.
#![forbid(unsafe_code)]

mod assert_json;
mod bench;
mod check;
mod columns;
mod features;
mod gpu;
mod kernels;
mod layers;
mod markdown;
mod masked;
mod mpi;
mod simt;
mod tidy;
mod violation;
mod workspace;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use workspace::Workspace;

/// The project's chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything a change must pass; stops at the first failure and says what to do.
    Check {
        /// Leave the tests out.
        #[arg(long)]
        fast: bool,
    },
    /// Only allowed edges between the crates, only dependencies that docs/dependencies.md lists.
    Layers,
    /// What the compiler does not check: lengths, docs, `unsafe`, manifests, links.
    Tidy,
    /// Runs the workspace's benches.
    Bench {
        /// Names of benches; all without.
        names: Vec<String>,
    },
    /// Builds the fat binary of the CUDA kernels; needs neither a GPU nor a toolkit.
    Kernels(kernels::Options),
    /// Runs the CUDA kernels and all that calls them on the CPU, over a shim and a fake driver.
    TestSimt(simt::Options),
    /// Runs what needs MPI, and the failure contract of every transport.
    TestMpi(mpi::Options),
    /// Prepares a folder of tests and benches for a machine with a GPU, or rehearses it here.
    TestGpu(gpu::Options),
    /// Checks values in the last JSON object of a file.
    AssertJson {
        /// A program's output: JSON lines, perhaps between other lines.
        file: PathBuf,
        /// Claims such as `auc>0.5`, `loss.last<=0.7`, `steps=100`.
        #[arg(required = true)]
        claims: Vec<String>,
    },
}

/// A chore's failure, as one text for a person.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let workspace = Workspace::find()?;
    match command {
        Command::Check { fast } => check::run(&workspace, fast),
        Command::Layers => violation::report("layers", &layers::check(&workspace)?),
        Command::Tidy => violation::report("tidy", &tidy::check(&workspace)?),
        Command::Bench { names } => bench::run(&workspace, &names),
        Command::Kernels(options) => kernels::run(&workspace, &options),
        Command::TestSimt(options) => simt::run(&workspace, &options),
        Command::TestMpi(options) => mpi::run(&workspace, &options),
        Command::TestGpu(options) => gpu::run(&workspace, &options),
        Command::AssertJson { file, claims } => assert_json::run(&file, &claims),
    }
}

/// Writes to standard output: results alone go there, what a chore says on its way does not.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
