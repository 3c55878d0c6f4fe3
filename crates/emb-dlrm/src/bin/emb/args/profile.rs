//! The command line of `emb profile`.

use clap::Args;
use emb_dlrm::config::{BadRows, IdPolicy, OptimizerKind, Options, WeightType};
use emb_dlrm::planning::parse_bytes;
use std::path::PathBuf;

const EXAMPLES: &str = "\
A plan for a run of the same options on eight ranks:

    emb profile --data day_*.gz --rows-per-table 1000000 --out stats.json
    emb plan --workload stats.json --topology cpu:8 --out plan.json
    emb train --data day_*.gz --rows-per-table 1000000 --world 8 --plan plan.json

Rows of a table that do not fit into the memory are counted so: the most frequent quarter of the
first ones exactly, the others as a sample by the hash of the row; the table then says `about`.
Rows that are listed as hot have a count of their own.";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ProfileArgs {
    /// Options of the run to plan for, from a TOML file as `emb train` takes; flags win.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Training data: Criteo files (plain, .gz, .zst; * and ? expand), or the word `synthetic`.
    #[arg(long, num_args = 1.., value_name = "PATH|synthetic")]
    pub(crate) data: Vec<PathBuf>,
    /// File to write the workload to, as JSON: tables with their measured look-ups and hot rows.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: PathBuf,
    /// Most samples to read [default: all of files, 1000000 of synthetic data]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: Option<u64>,
    /// Memory that the counts of all tables may take together.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
    pub(crate) memory: u64,
    /// Most rows of each table to list as hot, so that plans can place them apart; 0 for none. Only
    /// rows looked up at least twice are.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(..=1 << 30))]
    pub(crate) hot_rows: u32,
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,

    /// Buckets of each of the 26 tables; one more row is kept for missing values [default: 100000]
    #[arg(long, value_name = "N", help_heading = "As the run has it")]
    pub(crate) rows_per_table: Option<u64>,
    /// Ids at or above the table's rows: wrap them or refuse them [default: modulo]
    #[arg(long, value_name = "modulo|error", help_heading = "As the run has it")]
    pub(crate) id_policy: Option<IdPolicy>,
    /// Lines that can't be read: stop at the first, or skip and count them [default: error]
    #[arg(long, value_name = "error|skip", help_heading = "As the run has it")]
    pub(crate) bad_rows: Option<BadRows>,
    /// Columns of every embedding row [default: 16]
    #[arg(long, value_name = "D", help_heading = "As the run has it")]
    pub(crate) dim: Option<usize>,
    /// Stored type of embedding weights [default: f32]
    #[arg(long, value_name = "f32|f16|bf16", help_heading = "As the run has it")]
    pub(crate) weight_type: Option<WeightType>,
    /// Update rule of the embedding tables, for its state [default: row-wise-adagrad]
    #[arg(
        long,
        value_name = "row-wise-adagrad|adagrad|sgd|adam|row-wise-adam",
        help_heading = "As the run has it"
    )]
    pub(crate) optimizer: Option<OptimizerKind>,
    /// Samples of a step [default: 128]
    #[arg(long, value_name = "N", help_heading = "As the run has it")]
    pub(crate) batch_size: Option<usize>,
    /// Seed of synthetic data [default: 1]
    #[arg(long, value_name = "N", help_heading = "As the run has it")]
    pub(crate) seed: Option<u64>,
}

impl ProfileArgs {
    /// What the flags say, as options of a run.
    pub(crate) fn options(&self) -> Options {
        Options {
            data: self.data.clone(),
            rows_per_table: self.rows_per_table,
            id_policy: self.id_policy,
            bad_rows: self.bad_rows,
            dim: self.dim,
            weight_type: self.weight_type,
            optimizer: self.optimizer,
            batch_size: self.batch_size,
            seed: self.seed,
            ..Options::default()
        }
    }
}
