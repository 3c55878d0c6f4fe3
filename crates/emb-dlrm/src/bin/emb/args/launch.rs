//! The command line of `emb launch`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:

    emb launch -n 4 -- train --data synthetic --steps 100
    emb launch -n 8 --hosts a,b -- train --data day_*.gz
    emb launch -n 4 --restart -- train --data day_*.gz --save model --save-every 1000
    emb launch --transport nccl -- train --data day_*.gz
    emb launch -n 4 -- doctor

Standard output is that of rank 0; what else ranks print comes on standard error, with the rank
in front. When a rank fails, the others have --timeout-to-end seconds to say what they saw, then
all are ended. The exit code is that of the first cause: that of its process, or 128 and the number
of the signal that killed it; 75 where it stalled.";

/// What carries between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaunchTransport {
    /// MPI, started by mpirun.
    Mpi,
    /// NCCL, a process for each GPU of this host.
    Nccl,
}

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct LaunchArgs {
    /// Ranks to start, a process each [default: the places of --hosts or --hostfile, or the GPUs of this host]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) ranks: Option<u32>,
    /// Hosts, each with how many ranks it takes, as a:4,b:4; where it is not said equally many, or one.
    #[arg(long, value_name = "HOST[:N],..", conflicts_with = "hostfile")]
    pub(crate) hosts: Option<String>,
    /// File with a host a line: `name slots=N`.
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,
    /// What carries between the ranks [default: nccl where train has --device cuda, else mpi]
    #[arg(long, value_name = "mpi|nccl")]
    pub(crate) transport: Option<LaunchTransport>,
    /// When a process was killed, stalled or lost its host, go on from the last checkpoint with the ranks that are left, up to TIMES times [default: 3 times where TIMES is left out]
    #[arg(long, value_name = "TIMES", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    pub(crate) restart: Option<u32>,
    /// Seconds that the other ranks may take to end by themselves after one failed.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub(crate) timeout_to_end: f64,
    /// The mpirun of Open MPI to start ranks with [default: the first in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) mpirun: Option<PathBuf>,
    /// An argument for mpirun itself; may be given several times.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) mpirun_arg: Vec<String>,
    /// Another program for every rank to run, with the same arguments.
    // Tests put programs there that fail in ways in which training does not.
    #[arg(long, value_name = "PATH", hide = true)]
    pub(crate) program: Option<PathBuf>,
    /// What every rank runs: train and its options; over MPI also doctor or calibrate.
    #[arg(last = true, required = true, value_name = "train ...")]
    pub(crate) command: Vec<String>,
}
