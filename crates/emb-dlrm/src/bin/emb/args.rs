//! The command line.

mod calibrate;
mod doctor;
mod launch;
mod plan;
mod profile;
mod simulate;

pub(crate) use calibrate::CalibrateArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use launch::{LaunchArgs, LaunchTransport};
pub(crate) use plan::{DiffArgs, MakeArgs, PlanArgs, PlanCommand};
pub(crate) use profile::ProfileArgs;
pub(crate) use simulate::SimulateArgs;

use clap::{Args, Parser, Subcommand};
use emb_dlrm::config::{BadRows, DeviceKind, Options, PrecisionKind};
use std::path::PathBuf;

/// What a TOML file may say beside the flags.
const FILE_HELP: &str = r#"A file has the flags as keys, and tables and features in detail:

    data = "train.tsv"
    eval = ["test.tsv"]
    model = "dlrm-dcn"            # dims may differ; dlrm wants one
    dim = 16                      # also the outputs of the bottom MLP
    batch-size = 512

    [[table]]
    name = "user"                 # what is left out is as the flags say
    rows = 1000000                # one more row is kept for missing values
    dim = 32
    optimizer = "adam"
    lr = 0.001
    init = [-0.01, 0.01]          # uniform; one number: constant
    type = "bf16"                 # f32, f16, bf16
    placement = "row-wise"        # with --world: table-wise, row-wise, column-wise, data-parallel
    replicas = 2                  # with --world: of this table

    [[feature]]
    name = "C1"                   # the column it reads; or: column = "C1"
    table = "user"                # several features may share a table
    pooling = "sum"               # or mean; synthetic data also: bag = 3.5, weighted = true"#;

/// Train and score recommendation models with large embedding tables.
#[derive(Debug, Parser)]
#[command(name = "emb", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a DLRM or DLRM-DCNv2.
    Train(Box<TrainArgs>),
    /// Start emb train, or a measurement, on many ranks, a process each, and see them to their end.
    Launch(Box<LaunchArgs>),
    /// Evaluate a saved model: AUC, and normalized entropy (NE: 1 is guessing the base rate).
    Eval(EvalArgs),
    /// Print the click probability of each row, a line each, in order; rows need no label.
    Predict(PredictArgs),
    /// Look into data files or a saved model.
    Inspect(InspectArgs),
    /// Measure how often the rows of each table are looked up: what plans start from.
    Profile(Box<ProfileArgs>),
    /// Decide where tables live on given machines, and what a step will cost.
    Plan(Box<PlanArgs>),
    /// Plan and price a step on ever more machines: scaling, memory, what limits it.
    Simulate(Box<SimulateArgs>),
    /// Look at what this machine, or all machines under mpirun, have and lack, and time an exchange.
    Doctor(DoctorArgs),
    /// Measure links, memory and compute, and write the topology that plan and simulate read.
    Calibrate(CalibrateArgs),
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_long_help = FILE_HELP)]
pub(crate) struct TrainArgs {
    /// Options from a TOML file; flags win where both speak.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Print one JSON object on standard output at the end, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What reads files for a saved model.
#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// Criteo files (plain, .gz, .zst; * and ? expand).
    #[arg(long, num_args = 1.., required = true, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Folder of an earlier --save.
    #[arg(long, value_name = "DIR")]
    pub(crate) load: PathBuf,
    /// Lines that can't be read: stop at the first, or skip and count them.
    #[arg(long, value_name = "error|skip", default_value = "error")]
    pub(crate) bad_rows: BadRows,
    /// Samples computed at a time.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) batch_size: u32,
    /// What computes: the processor, an NVIDIA GPU (no run on one yet), or whichever of them is there [default: cpu]
    #[arg(long, value_name = "cpu|cuda|auto")]
    pub(crate) device: Option<DeviceKind>,
    /// Numbers that matrix products of a GPU multiply; sums are f32 [default: f32]
    #[arg(long, value_name = "f32|tf32|bf16")]
    pub(crate) precision: Option<PrecisionKind>,
    /// Threads that compute; results do not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    pub(crate) score: ScoreArgs,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) score: ScoreArgs,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["data", "load"]))]
pub(crate) struct InspectArgs {
    /// Criteo files: rows, bytes, SHA-256, labels, missing values, distinct ids.
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Folder of an earlier --save: step, tensors, shapes, checksums (all verified).
    #[arg(long, value_name = "DIR")]
    pub(crate) load: Option<PathBuf>,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Seconds that something may take: 0 to an hour.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds".to_owned())?;
    if (0.0..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("must be in 0..=3600".to_owned())
    }
}
