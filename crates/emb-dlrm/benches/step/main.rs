//! One DLRM training step of the Criteo Terabyte shape: bottom 13-512-256-64, 26 tables of 100,000
//! rows x 64, dot interaction, top 415-512-512-256-1, batch 2048.
//!
//! In one process with 1 and 2 threads, and on 4 ranks of 1 thread in sharding groups of 2, where
//! every step ends with the sync of the replicas.
//!
//! `cargo bench -p emb-dlrm --bench step -- [--json] [--threads N] [--ranks-only] [--seconds S]
//! [uniform|zipf]`.
//! With `PEER_DATA` the ids, dense features and labels are those of the files in that folder
//! (`idx_dlrm_<distribution>.bin`, `dlrm_dense.bin`, `dlrm_label.bin`); without, generated. With
//! `PEER_RESULTS`, a file of JSON lines, the steps and syncs of a peer are printed beside our own.

mod data;
#[path = "../support/ids.rs"]
mod ids;
mod peers;
mod ranks;

use data::Data;
use emb_comm::{Collective, Solo};
use emb_dlrm::model::{Interaction, Shape};
use emb_dlrm::train::{Rates, Trainer};
use emb_dlrm::{Dlrm, EmbeddingBags, Embeddings};
use emb_kernels::{Cpu, CpuOptions, Feature, PairOrder, Pooling, TableSpec};
use emb_optim::{DenseOptimizer, Optimizer, RuleKind, Schedule};
use std::io::Write;
use std::time::Instant;

const TABLES: usize = 26;
const ROWS: u64 = 100_000;
const DIM: usize = 64;
const BATCH: usize = 2048;
const DENSE: usize = 13;
const STEPS: usize = 32;

fn main() {
    let options = Options::read();
    for distribution in ["uniform", "zipf"] {
        if !options.wanted(distribution) {
            continue;
        }
        let data = Data::load(distribution);
        for threads in [1, 2] {
            if options.ranks_only || options.threads.is_some_and(|only| only != threads) {
                continue;
            }
            for rule in [RuleKind::RowWiseAdaGrad, RuleKind::AdaGrad, RuleKind::Sgd] {
                let times = measure(&data, threads, rule, options.seconds);
                Line { distribution, what: rule.name().into(), ranks: 1, threads, times }
                    .print(&options, &[]);
            }
        }
        if options.threads.is_none_or(|only| only == 1) {
            for case in ranks::CASES {
                let times = ranks::measure(&data, case, options.seconds);
                let peers = peers::two_dimensional(distribution, case.sharding);
                Line { distribution, what: case.name.into(), ranks: 4, threads: 1, times }
                    .print(&options, &peers);
            }
        }
    }
}

/// One measured case.
struct Line<'a> {
    distribution: &'a str,
    what: String,
    ranks: usize,
    threads: usize,
    /// Milliseconds of steps, ascending.
    times: Vec<f64>,
}

impl Line<'_> {
    fn print(&self, options: &Options, peers: &[peers::Peer]) {
        let Self { distribution, what, ranks, threads, times } = self;
        let (median, fastest) = (times[times.len() / 2], times[0]);
        let speed = BATCH as f64 / median * 1e3;
        let mut line = if options.json {
            format!(
                "{{\"bench\":\"step\",\"distribution\":\"{distribution}\",\"ranks\":{ranks},\
                 \"threads\":{threads},\"what\":\"{what}\",\"median_ms\":{median:.2},\
                 \"fastest_ms\":{fastest:.2},\"samples_per_second\":{speed:.0}}}"
            )
        } else {
            format!(
                "{distribution:<8} {ranks} x {threads}  {what:<34} {median:>8.1} ms \
                 (fastest {fastest:.1})  {speed:>8.0} samples/s"
            )
        };
        if !options.json {
            for peer in peers {
                line = format!(
                    "{line}  {} {:.1} + {:.1} ms ({:.2} x)",
                    peer.name,
                    peer.step_ms,
                    peer.sync_ms,
                    (peer.step_ms + peer.sync_ms) / median
                );
            }
        }
        drop(writeln!(std::io::stdout().lock(), "{line}"));
    }
}

struct Options {
    json: bool,
    ranks_only: bool,
    threads: Option<usize>,
    seconds: f64,
    names: Vec<String>,
}

impl Options {
    fn read() -> Self {
        let mut options =
            Self { json: false, ranks_only: false, threads: None, seconds: 4.0, names: Vec::new() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--json" => options.json = true,
                "--ranks-only" => options.ranks_only = true,
                "--bench" => {}
                "--threads" => options.threads = args.next().and_then(|word| word.parse().ok()),
                "--seconds" => {
                    options.seconds = args.next().and_then(|word| word.parse().ok()).unwrap_or(4.0);
                }
                name => options.names.push(name.to_owned()),
            }
        }
        options
    }

    fn wanted(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// Milliseconds of steps in one process, ascending.
fn measure(data: &Data, threads: usize, rule: RuleKind, seconds: f64) -> Vec<f64> {
    let mut cpu = Cpu::new(CpuOptions { threads }).expect("a backend");
    let tables = tables(Optimizer::new(rule));
    let bags = EmbeddingBags::new(&mut cpu, &tables, features(), vec![0.01; TABLES], DIM, 1)
        .expect("tables");
    let mut trainer = trainer(cpu, bags, Solo);
    for step in 0..3 {
        trainer.train_step(data.samples(step)).expect("a step");
    }
    let begun = Instant::now();
    let mut times = Vec::new();
    while times.len() < 10 || begun.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        trainer.train_step(data.samples(times.len())).expect("a step");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times
}

fn tables(rule: Optimizer) -> Vec<TableSpec> {
    (0..TABLES).map(|t| TableSpec::new(format!("t{t}"), ROWS, DIM, rule)).collect()
}

fn features() -> Vec<Feature> {
    (0..TABLES)
        .map(|table| Feature { name: format!("t{table}"), table, pooling: Pooling::Sum })
        .collect()
}

/// The model of the bench around its tables.
fn trainer<E: Embeddings<Cpu>, C: Collective + 'static>(
    mut cpu: Cpu,
    tables: E,
    ranks: C,
) -> Trainer<Cpu, E, C> {
    let sgd = DenseOptimizer::new(Optimizer::new(RuleKind::Sgd)).expect("a dense rule");
    let shape = Shape {
        dense_columns: DENSE,
        bottom: vec![512, 256, DIM],
        top: vec![512, 512, 256],
        interaction: Interaction::Dot(PairOrder::Lower),
    };
    let model = Dlrm::new(&mut cpu, &shape, tables, &sgd, 1).expect("a model");
    let schedule = Schedule::constant(1.0).expect("a schedule");
    let rates = Rates { tables: 0.01, dense: 0.01 };
    Trainer::new(cpu, model, ranks, DENSE, sgd, rates, schedule).expect("a trainer")
}
