//! The command line of `emb doctor`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:

    emb doctor
    emb doctor --world 4 --seconds 3
    emb doctor --json | jq '.hosts[].checks[] | select(.verdict == \"problem\")'
    mpirun -n 8 --hostfile hosts emb doctor

Ends with 0 where there is no problem, with 1 where there is one; warnings do not count.
GB/s a rank is what one rank sends (all-to-all), receives (gather, broadcast) or has (sum).
In JSON times are seconds, rates bytes a second.";

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_long_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Ranks of the exchange, threads of this process; under mpirun (a build with mpi) its processes are the ranks [default: usable cores, 2 to 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) world: Option<u32>,
    /// Seconds that the exchange over all ranks takes; 0 leaves it out.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = crate::args::seconds)]
    pub(crate) seconds: f64,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
}
