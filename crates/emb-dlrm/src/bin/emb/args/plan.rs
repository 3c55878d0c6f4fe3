//! The command line of `emb plan`.

use clap::{Args, Subcommand};
use emb_dlrm::planning::{PlannerOptions, ReplicaOptions, WorkloadOptions};
use std::path::PathBuf;

const EXAMPLES: &str = r#"Examples:

    emb plan --workload stats.json --topology cpu:8 --out plan.json
    emb plan --workload tables.csv#clicks --batch-size 65536 --zipf 1.05 \
             --topology dgx-h100:16 --explain
    emb plan --workload tables.toml --topology lab.toml --pin ads=3 --json
    emb plan --workload embark-t510 --topology dgx-h100:16 --planner lattice
    emb plan diff old.json new.json

A workload as a .csv file has the header `workload,table,rows,dim,pooling`; as a .toml file:

    name = "clicks"
    batch = { global = 65536 }     # or per_rank
    rows = "f32"                   # ids = "i64", outputs = "f32"
    state = { per_row = 4, per_element = 0 }
    access = { zipf = { exponent = 1.05 } }

    [[tables]]
    name = "ads"
    rows = 10000000
    dim = 64
    pooling_factor = 20.0          # look-ups of a sample; left out: 1

Machines as a .toml file:

    name = "lab"
    ranks = 16
    memory_bytes = 80000000000     # of a rank
    memory_bandwidth = 2e12        # bytes a second
    flops = 3e14

    [[levels]]                     # from the inside out
    name = "node"
    ranks = 8                      # or one number for each node: [8, 4, 4]
    bandwidth = 3e11               # bytes a second of a rank in one direction
    latency = 3.4e-6

    [[levels]]
    name = "cluster"
    ranks = 16
    bandwidth = 25e9
    latency = 14e-6"#;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = EXAMPLES
)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PlanCommand>,
    #[command(flatten)]
    pub(crate) make: Option<MakeArgs>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Tables that two plan files place differently.
    Diff(DiffArgs),
}

// Its own arguments make the group that tells whether it is there; those of flattened structs do
// not count by themselves.
#[derive(Debug, Args)]
#[group(multiple = true, args = ["topology", "workload"])]
pub(crate) struct MakeArgs {
    /// The machines: dgx-h100:NODES, dgx-a100:NODES, cpu:RANKS, published:GPUS, or a .toml or .json file.
    #[arg(long, value_name = "PRESET:N|FILE")]
    pub(crate) topology: String,
    /// File to write the plan to, which emb train --plan takes.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
    /// Tell where every table lives, what each part of a step takes and what every rank holds.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) workload: WorkloadOptions,
    #[command(flatten)]
    pub(crate) planner: PlannerOptions,
    #[command(flatten)]
    pub(crate) replicas: ReplicaOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A plan file.
    #[arg(value_name = "A.json")]
    pub(crate) first: PathBuf,
    /// A plan file of the same tables.
    #[arg(value_name = "B.json")]
    pub(crate) second: PathBuf,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}
