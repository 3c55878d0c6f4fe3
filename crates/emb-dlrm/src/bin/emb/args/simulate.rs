//! The command line of `emb simulate`.

use clap::Args;
use emb_dlrm::config::LayoutKind;
use emb_dlrm::planning::{PlannerOptions, Replicas, WorkloadOptions};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:

    emb simulate --workload tables.csv#clicks --batch-per-rank 512 --zipf 1.05 \\
                 --topology dgx-h100 --gpus 256,512,1024,2048 --replicas 1,4,auto \\
                 --chart scaling.svg
    emb simulate --workload exfm --gpus 256,512,1024,2048,4096 --replicas 1,auto
    emb simulate --workload stats.json --topology lab.toml --gpus 16,32,64 --json

A batch of all ranks together (--batch-size) shows strong scaling, one of each rank weak scaling.";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// The machines: dgx-h100, dgx-a100 or cpu (the number follows from --gpus), published (DGX H100 with what presets of workloads assume of them), or a .toml or .json file whose outermost level then takes any number of ranks [default: published, for a preset of a workload]
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) topology: Option<String>,
    /// Numbers of ranks.
    #[arg(long, value_name = "N,..", value_delimiter = ',', required = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) gpus: Vec<u32>,
    /// Replicas of tables: numbers, or what the planner finds best.
    #[arg(long, value_name = "auto|M,..", value_delimiter = ',', default_value = "auto")]
    pub(crate) replicas: Vec<Replicas>,
    /// The ranks of a sharding group where replicas are numbers: every M-th, or neighbours [default: strided]
    #[arg(long, value_name = "strided|contiguous")]
    pub(crate) layout: Option<LayoutKind>,
    /// File to draw scaling over ranks to, a line for each number of replicas.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) chart: Option<PathBuf>,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) workload: WorkloadOptions,
    #[command(flatten)]
    pub(crate) planner: PlannerOptions,
}
