//! What the replica-scaling rules of 2D sparse parallelism do to a model, against one process.
//!
//! A planted teacher makes the labels of samples whose ids follow a Zipf law; the tables are updated
//! by row-wise AdaGrad with a learning rate that is best for one process. Every rule then trains on
//! the same samples with `M` replicas: groups of one rank, equal after every step. What a larger
//! group computes is the same; rules see `M` alone.
//!
//! ```text
//! cargo run --release -p emb-dlrm --example replica_scaling -- \
//!     --samples 1048576 --replicas 2,4,8,16 --seeds 3 --warm-up 50
//! cargo run --release -p emb-dlrm --example replica_scaling -- --samples 1048576 --tune
//! ```
//!
//! Without arguments: a short trial of four replicas. `docs/replica-scaling.md` has what was
//! measured.

mod report;
mod study;

use clap::Parser;
use emb_dlrm::config::{ModelKind, OptimizerKind, ScalingKind};
use emb_dlrm::{Error, Result};
use report::{OneProcess, Run, Study};
use std::io::Write;
use std::time::Instant;
use study::{Apart, Outcome, Setup};

/// The rules, in the order of the documentation.
const RULES: [ScalingKind; 5] = [
    ScalingKind::None,
    ScalingKind::Moment,
    ScalingKind::Lr,
    ScalingKind::History,
    ScalingKind::Exact,
];
/// Change of the learning rate, in parts of it, that shows how far rounding alone leads apart.
const NUDGE: f64 = 1e-6;
/// Samples of an evaluation.
const EVAL_SAMPLES: u64 = 200_000;
/// Learning rates that `--tune` tries; the defaults are the best of them.
const LRS: [f64; 4] = [0.01, 0.02, 0.04, 0.08];
const DENSE_LRS: [f64; 3] = [0.01, 0.02, 0.04];

/// Compares the replica-scaling rules with one process.
#[derive(Debug, Parser)]
struct Arguments {
    /// Replicas M, as a list
    #[arg(long, value_delimiter = ',', value_name = "M,M,...", default_value = "4")]
    replicas: Vec<u32>,
    /// Rules, as a list [default: all]
    #[arg(long, value_delimiter = ',', value_name = "RULE,...")]
    rules: Vec<ScalingKind>,
    /// Seeds 1 to N of samples, teacher and weights
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Training samples, each seen once
    #[arg(long, value_name = "N", default_value_t = 1 << 17)]
    samples: u64,
    /// Samples of the global batch
    #[arg(long, value_name = "N", default_value_t = 2048)]
    batch: usize,
    /// Model
    #[arg(long, value_name = "dlrm|dlrm-dcn", default_value = "dlrm-dcn")]
    model: ModelKind,
    /// Learning rate of the tables
    #[arg(long, value_name = "X", default_value_t = 0.02)]
    lr: f64,
    /// Learning rate of the dense part
    #[arg(long, value_name = "X", default_value_t = 0.02)]
    dense_lr: f64,
    /// What accumulators begin with [default: 0]
    #[arg(long, value_name = "X")]
    initial_accumulator: Option<f64>,
    /// Steps over which learning rates rise linearly from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    warm_up: u64,
    /// Try learning rates in one process instead
    #[arg(long)]
    tune: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let text = if arguments.tune { tune(&arguments) } else { study(&arguments) };
    match text {
        Ok(text) => {
            drop(writeln!(std::io::stdout(), "{text}"));
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Every rule and number of replicas against one process.
fn study(arguments: &Arguments) -> Result<String> {
    let rules = if arguments.rules.is_empty() { &RULES[..] } else { &arguments.rules };
    let mut study = Study::default();
    for seed in 1..=arguments.seeds {
        let setup = setup(arguments, seed);
        let teacher = setup.teacher()?;
        let (start, one) = (setup.start()?, timed("one process", seed, || setup.one_process())?);
        eprintln!("seed {seed}: NE {:.5} in one process, {teacher:.5?} of the teacher", one.ne);
        study.one_process.push(OneProcess { seed, ne: one.ne, teacher });
        let mut add = |replicas, rule: String, run: &Outcome| {
            let apart = Apart::new(run, &one, &start);
            eprintln!("  NE {:+.4} %, distance {:.5}", apart.ne_percent, apart.distance);
            study.runs.push(Run { seed, replicas, rule, ne: run.ne, apart });
        };
        let nudged = Setup { lr: setup.lr * (1.0 + NUDGE), ..setup };
        let run = timed("one process, another rate", seed, || nudged.one_process())?;
        add(1, format!("rate + {NUDGE:e}"), &run);
        for &replicas in &arguments.replicas {
            for &rule in rules {
                let what = format!("{replicas} replicas, {rule}");
                let run = timed(&what, seed, || setup.replicated(replicas, rule))?;
                add(replicas, rule.to_string(), &run);
            }
        }
    }
    if arguments.json { json(&study) } else { Ok(study.table()) }
}

/// Normalized entropy of one process for a grid of learning rates.
fn tune(arguments: &Arguments) -> Result<String> {
    let mut grid = Vec::new();
    for lr in LRS {
        let mut row = Vec::new();
        for dense_lr in DENSE_LRS {
            let setup = Setup { lr, dense_lr, ..setup(arguments, 1) };
            let run = timed(&format!("lr {lr}, dense lr {dense_lr}"), 1, || setup.one_process())?;
            eprintln!("  NE {:.5}", run.ne);
            row.push(run.ne);
        }
        grid.push(row);
    }
    if arguments.json {
        return json(&serde_json::json!({ "lr": LRS, "dense_lr": DENSE_LRS, "ne": grid }));
    }
    Ok(report::grid(&LRS, &DENSE_LRS, &grid))
}

fn setup(arguments: &Arguments, seed: u64) -> Setup {
    Setup {
        tables: 8,
        rows_per_table: 50_000,
        dim: 8,
        model: arguments.model,
        batch: arguments.batch,
        steps: arguments.samples / arguments.batch.max(1) as u64,
        eval_samples: EVAL_SAMPLES,
        seed,
        optimizer: OptimizerKind::RowWiseAdaGrad,
        lr: arguments.lr,
        dense_lr: arguments.dense_lr,
        initial_accumulator: arguments.initial_accumulator,
        warm_up: arguments.warm_up,
    }
}

fn timed<T>(what: &str, seed: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let since = Instant::now();
    let done = work()?;
    eprintln!("seed {seed}: {what}: {:.1} s", since.elapsed().as_secs_f64());
    Ok(done)
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Config(format!("JSON: {error}")))
}
