//! The command line of `emb calibrate`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:

    emb calibrate --world 4 --out topology.toml
    mpirun -n 8 --hostfile hosts emb calibrate --out topology.toml
    emb calibrate --from alltoall.txt --from sendrecv.txt --like dgx-h100 --out topology.toml
    emb plan --workload stats.json --topology topology.toml

Every second size is held out of the fit, and the largest error of those is printed: what the file
can be trusted with. In JSON times are seconds, rates bytes a second.";

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_long_help = EXAMPLES)]
pub(crate) struct CalibrateArgs {
    /// File to write the topology to, for emb plan and emb simulate.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) out: PathBuf,
    /// Ranks, threads of this process; under mpirun (a build with mpi) its processes are the ranks [default: usable cores, 2 to 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=256), conflicts_with = "from")]
    pub(crate) world: Option<u32>,
    /// Output of a program of nccl-tests (all-reduce, all-to-all or send and receive), instead of measuring; once for each file.
    #[arg(long, value_name = "FILE", requires = "like")]
    pub(crate) from: Vec<PathBuf>,
    /// With --from: a preset (dgx-h100, dgx-a100, cpu) or topology file whose memory and compute rates are taken over.
    #[arg(long, value_name = "PRESET|FILE", requires = "from")]
    pub(crate) like: Option<String>,
    /// Name of the topology.
    #[arg(long, value_name = "NAME", default_value = "measured")]
    pub(crate) name: String,
    /// Seconds that measuring takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = crate::args::seconds)]
    pub(crate) seconds: f64,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}
