//! What a person may write, on the command line or in a TOML file: [`Options`].

use super::table_options::{FeatureOptions, TableOptions};
use super::wire::WireOptions;
use super::words::{
    BadRows, DecayKind, DenseKind, DeviceKind, IdPolicy, IdWireKind, LayoutKind, ModelKind,
    OptimizerKind, PrecisionKind, RoundingMode, ScalingKind, SyncKind, TransportKind, WeightType,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything about a run that can be chosen; `None` means the default.
///
/// One struct is both the command line (`--batch-size 128`) and the file (`batch-size = 128`), so
/// the two can't drift apart. The command line wins where both speak.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// Training data: Criteo files (plain, .gz, .zst; * and ? expand), or the word `synthetic`.
    #[cfg_attr(feature = "cli", arg(long, num_args = 1.., value_name = "PATH|synthetic", help_heading = "Data"))]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    pub data: Vec<PathBuf>,
    /// Evaluation data, read after training (and every --eval-every steps).
    #[cfg_attr(feature = "cli", arg(long, num_args = 1.., value_name = "PATH", help_heading = "Data"))]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    pub eval: Vec<PathBuf>,
    /// Buckets of each of the 26 tables; one more row is kept for missing values [default: 100000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Data"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_table: Option<u64>,
    /// Ids at or above the table's rows: wrap them or refuse them [default: modulo]
    #[cfg_attr(feature = "cli", arg(long, value_name = "modulo|error", help_heading = "Data"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_policy: Option<IdPolicy>,
    /// Lines that can't be read: stop at the first, or skip and count them [default: error]
    #[cfg_attr(feature = "cli", arg(long, value_name = "error|skip", help_heading = "Data"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_rows: Option<BadRows>,
    /// Leave out the last batch of an epoch when it is short.
    #[cfg_attr(feature = "cli", arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false", require_equals = true, help_heading = "Data"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_last: Option<bool>,
    /// Accept labels between 0 and 1; AUC is then not computed.
    #[cfg_attr(feature = "cli", arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false", require_equals = true, help_heading = "Data"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_labels: Option<bool>,

    /// Dot interaction (dlrm) or low-rank cross layers (dlrm-dcn) [default: dlrm]
    #[cfg_attr(feature = "cli", arg(long, value_name = "dlrm|dlrm-dcn", help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelKind>,
    /// Columns of every embedding row, and outputs of the bottom MLP [default: 16]
    #[cfg_attr(feature = "cli", arg(long, value_name = "D", help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// Hidden layers of the bottom MLP; a layer of --dim outputs follows [default: 512,256,64]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_delimiter = ',', value_name = "N,N,...", help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bottom: Option<Vec<usize>>,
    /// Hidden layers of the top MLP; one logit follows [default: 512,256]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_delimiter = ',', value_name = "N,N,...", help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<Vec<usize>>,
    /// Cross layers of dlrm-dcn [default: 3]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dcn_layers: Option<usize>,
    /// Rank of the cross layers of dlrm-dcn [default: 512]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dcn_rank: Option<usize>,
    /// Stored type of embedding weights [default: f32]
    #[cfg_attr(feature = "cli", arg(long, value_name = "f32|f16|bf16", help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_type: Option<WeightType>,
    /// How updates are stored into 16-bit weights [default: stochastic]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "stochastic|nearest", help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<RoundingMode>,

    /// Passes over the training files [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// Steps of this run, over as many passes as they take [default for synthetic data: 4000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Samples of a step [default: 128]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<usize>,
    /// Seed of weights, rounding and synthetic data [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What computes: the processor, an NVIDIA GPU (no run on one yet), or whichever of them is there [default: cpu]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "cpu|cuda|auto", help_heading = "Training")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceKind>,
    /// Numbers that matrix products of a GPU multiply; sums are f32 [default: f32]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "f32|tf32|bf16", help_heading = "Training")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<PrecisionKind>,
    /// Threads that compute; results do not depend on it [default: all cores]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Evaluate every N steps too.
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_every: Option<u64>,
    /// Folder to save weights, optimizer state and configuration to at the end.
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save: Option<PathBuf>,
    /// Save every N steps too, to the folder of --save; replicas are made equal before.
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_every: Option<u64>,
    /// Go on from the checkpoint in the folder of --save, if there is one; --steps and --epochs count from the beginning of training.
    #[cfg_attr(feature = "cli", arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false", require_equals = true, help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<bool>,
    /// Folder of an earlier --save to go on from; its options hold where no flag or file speaks.
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<PathBuf>,

    /// Ranks that train together, as threads of this process [default: 1, or the processes started together]
    #[cfg_attr(feature = "cli", arg(long, value_name = "W", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<u32>,
    /// Nodes that the ranks are counted to, neighbours together, for bytes inside and between nodes [default: 1, or the hosts of the processes]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Where tables live: auto, table-wise, row-wise, column-wise, data-parallel, or a plan file [default: auto]
    #[cfg_attr(feature = "cli", arg(long, value_name = "KIND|FILE.json", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Who places tables, instead of --plan: a planner of emb plan, as lattice or flexshard.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner: Option<String>,
    /// With --planner, the machines to plan for, as emb plan takes them [default: cpu:WORLD, in --nodes nodes]
    #[cfg_attr(feature = "cli", arg(long, value_name = "PRESET:N|FILE", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Replicas M of the tables: sharding groups of W/M ranks [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "M", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Ranks of a sharding group: every M-th, or neighbours [default: strided]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "strided|contiguous", help_heading = "Ranks")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<LayoutKind>,
    /// How replicas are kept equal: averaged by sending all rows or those touched, or gradients summed [default: touched-rows]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "weights|touched-rows|gradients", help_heading = "Ranks")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncKind>,
    /// Steps between two syncs of weights [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "K", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_every: Option<u32>,
    /// How ids travel to the owners of rows: 8 bytes each, or in as few bits as they need, for slow links [default: plain]
    #[cfg_attr(feature = "cli", arg(long, value_name = "plain|packed", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_wire: Option<IdWireKind>,
    /// How rows and gradients travel: one format both ways, or by what they are for; what is left out is f32 [default: f32]
    #[cfg_attr(
        feature = "cli",
        arg(
            long,
            value_name = "f16|bf16|int8|fp8-e4m3|fp8-e5m2|int4|forward=..,backward=..,sync=..,dense=..",
            help_heading = "Ranks"
        )
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireOptions>,
    /// What carries between ranks: memory of this process, MPI, one process a rank, or NCCL, one GPU a rank [default: local]
    #[cfg_attr(feature = "cli", arg(long, value_name = "local|mpi|nccl", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    /// What adaptive rules do about M replicas [default: moment, and exact with sync gradients]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "none|moment|lr|history|exact", help_heading = "Ranks")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_scaling: Option<ScalingKind>,
    /// At every evaluation, checkpoint and end, refuse replicas that differ in any bit, by table and row.
    #[cfg_attr(feature = "cli", arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false", require_equals = true, help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_replicas: Option<bool>,
    /// Threads of each rank [default: all cores over the ranks of this host, at least 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "T", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads_per_rank: Option<usize>,
    /// Seconds that a rank waits for its peers before the run fails [default: 120]
    #[cfg_attr(feature = "cli", arg(long, value_name = "S", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,

    /// File to write a timeline of all ranks to, as a Chrome trace (ui.perfetto.dev shows it).
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<PathBuf>,
    /// Every N steps, say in a line what slows the ranks down: time in collectives, the slowest rank, bytes against the plan; 0 for never [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<u64>,
    /// Look-ups as emb profile measured them, for --planner, and for the bytes that --health expects.
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE.json", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<PathBuf>,

    /// Update rule of the embedding tables [default: row-wise-adagrad]
    #[cfg_attr(
        feature = "cli",
        arg(
            long,
            value_name = "row-wise-adagrad|adagrad|sgd|adam|row-wise-adam",
            help_heading = "Optimizer"
        )
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerKind>,
    /// Learning rate of the embedding tables [default: 0.01]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr: Option<f64>,
    /// Weight decay of touched rows [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// Whether decay enters the gradient or shrinks the row itself [default: l2]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "l2|decoupled", help_heading = "Optimizer")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<DecayKind>,
    /// Added after square roots, embedding and dense rules alike [default: 1e-8]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eps: Option<f64>,
    /// Initial accumulator of AdaGrad rules, embedding and dense alike [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_accumulator: Option<f64>,
    /// Clamp each element of incoming embedding gradients to +-X.
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gradient: Option<f64>,
    /// Scale each updated row to a norm of at most X.
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_norm: Option<f64>,
    /// Update rule of the dense part [default: adagrad]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "adagrad|sgd|adam", help_heading = "Optimizer")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense_optimizer: Option<DenseKind>,
    /// Learning rate of the dense part [default: 0.01]
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense_lr: Option<f64>,
    /// Steps over which learning rates rise linearly from 0 [default: 0]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr_warmup: Option<u64>,
    /// Decay after that: constant, poly:START:STEPS:POWER (to 0), step:EVERY:FACTOR [default: constant]
    #[cfg_attr(feature = "cli", arg(long, value_name = "RULE", help_heading = "Optimizer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr_decay: Option<String>,

    /// Tables, instead of 26 equal ones (only in a file).
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<TableOptions>,
    /// Features, instead of one for each table (only in a file).
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feature: Vec<FeatureOptions>,
}

/// `"file"` or `["file", "file"]`.
fn one_or_more<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a path, or a list of paths")]
    enum Paths {
        One(PathBuf),
        More(Vec<PathBuf>),
    }
    Ok(match Paths::deserialize(from)? {
        Paths::One(path) => vec![path],
        Paths::More(paths) => paths,
    })
}
