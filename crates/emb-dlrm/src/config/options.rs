//! What a person may write, on the command line or in a TOML file: [`Options`].

use super::table_options::{FeatureOptions, TableOptions};
use super::words::{
    BadRows, DecayKind, DenseKind, IdPolicy, IdWireKind, LayoutKind, ModelKind, OptimizerKind,
    RoundingMode, ScalingKind, SyncKind, WeightType,
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
    /// Folder of an earlier --save to go on from; its options hold where no flag or file speaks.
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = "Training"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<PathBuf>,

    /// Ranks that train together, as threads of this process [default: 1]
    #[cfg_attr(feature = "cli", arg(long, value_name = "W", help_heading = "Ranks"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<u32>,
    /// Nodes that the ranks are counted to, neighbours together, for bytes inside and between nodes [default: 1]
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
    /// Threads of each rank [default: all cores over the ranks, at least 1]
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

impl Options {
    /// The same without a word of ranks, the places of single tables included: for one process, or to
    /// be told anew.
    #[must_use]
    pub fn alone(mut self) -> Self {
        for table in &mut self.table {
            (table.placement, table.replicas) = (None, None);
        }
        Self {
            world: None,
            nodes: None,
            plan: None,
            planner: None,
            topology: None,
            replicas: None,
            layout: None,
            sync: None,
            sync_every: None,
            id_wire: None,
            replica_scaling: None,
            check_replicas: None,
            threads_per_rank: None,
            timeout: None,
            timeline: None,
            health: None,
            workload: None,
            ..self
        }
    }

    /// These options where they say something, else those of `base`; a length in steps displaces
    /// one in epochs and the other way round, and so do a plan and a planner. Lists are taken whole from whichever has them.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        let mut base = base;
        if self.steps.is_some() || self.epochs.is_some() {
            (base.steps, base.epochs) = (None, None);
        }
        if self.plan.is_some() || self.planner.is_some() {
            (base.plan, base.planner) = (None, None);
        }
        let list = |over: Vec<PathBuf>, base| if over.is_empty() { base } else { over };
        Self {
            data: list(self.data, base.data),
            eval: list(self.eval, base.eval),
            table: if self.table.is_empty() { base.table } else { self.table },
            feature: if self.feature.is_empty() { base.feature } else { self.feature },
            rows_per_table: self.rows_per_table.or(base.rows_per_table),
            id_policy: self.id_policy.or(base.id_policy),
            bad_rows: self.bad_rows.or(base.bad_rows),
            drop_last: self.drop_last.or(base.drop_last),
            soft_labels: self.soft_labels.or(base.soft_labels),
            model: self.model.or(base.model),
            dim: self.dim.or(base.dim),
            bottom: self.bottom.or(base.bottom),
            top: self.top.or(base.top),
            dcn_layers: self.dcn_layers.or(base.dcn_layers),
            dcn_rank: self.dcn_rank.or(base.dcn_rank),
            weight_type: self.weight_type.or(base.weight_type),
            rounding: self.rounding.or(base.rounding),
            epochs: self.epochs.or(base.epochs),
            steps: self.steps.or(base.steps),
            batch_size: self.batch_size.or(base.batch_size),
            seed: self.seed.or(base.seed),
            threads: self.threads.or(base.threads),
            world: self.world.or(base.world),
            nodes: self.nodes.or(base.nodes),
            plan: self.plan.or(base.plan),
            planner: self.planner.or(base.planner),
            topology: self.topology.or(base.topology),
            replicas: self.replicas.or(base.replicas),
            layout: self.layout.or(base.layout),
            sync: self.sync.or(base.sync),
            sync_every: self.sync_every.or(base.sync_every),
            id_wire: self.id_wire.or(base.id_wire),
            replica_scaling: self.replica_scaling.or(base.replica_scaling),
            check_replicas: self.check_replicas.or(base.check_replicas),
            threads_per_rank: self.threads_per_rank.or(base.threads_per_rank),
            timeout: self.timeout.or(base.timeout),
            timeline: self.timeline.or(base.timeline),
            health: self.health.or(base.health),
            workload: self.workload.or(base.workload),
            eval_every: self.eval_every.or(base.eval_every),
            save: self.save.or(base.save),
            load: self.load.or(base.load),
            optimizer: self.optimizer.or(base.optimizer),
            lr: self.lr.or(base.lr),
            weight_decay: self.weight_decay.or(base.weight_decay),
            decay: self.decay.or(base.decay),
            eps: self.eps.or(base.eps),
            initial_accumulator: self.initial_accumulator.or(base.initial_accumulator),
            max_gradient: self.max_gradient.or(base.max_gradient),
            max_norm: self.max_norm.or(base.max_norm),
            dense_optimizer: self.dense_optimizer.or(base.dense_optimizer),
            dense_lr: self.dense_lr.or(base.dense_lr),
            lr_warmup: self.lr_warmup.or(base.lr_warmup),
            lr_decay: self.lr_decay.or(base.lr_decay),
        }
    }
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
