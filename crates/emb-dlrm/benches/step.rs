//! One DLRM training step of the Criteo Terabyte shape: bottom 13-512-256-64, 26 tables of 100,000
//! rows x 64, dot interaction, top 415-512-512-256-1, batch 2048.
//!
//! `cargo bench -p emb-dlrm --bench step -- [--json] [--threads N] [--seconds S] [uniform|zipf]`.
//! With `PEER_DATA` the ids, dense features and labels are those of the files in that folder
//! (`idx_dlrm_<distribution>.bin`, `dlrm_dense.bin`, `dlrm_label.bin`); without, generated.

use emb_dlrm::model::{Interaction, Shape};
use emb_dlrm::train::{Rates, Samples, Trainer};
use emb_dlrm::{Dlrm, EmbeddingBags};
use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, PairOrder, Pooling, TableSpec};
use emb_optim::{DenseOptimizer, Optimizer, RuleKind, Schedule};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

const TABLES: usize = 26;
const ROWS: u64 = 100_000;
const DIM: usize = 64;
const BATCH: usize = 2048;
const DENSE: usize = 13;
const STEPS: usize = 32;

fn main() {
    let options = Options::read();
    let mut results = Vec::new();
    for distribution in ["uniform", "zipf"] {
        if !options.wanted(distribution) {
            continue;
        }
        let data = Data::load(distribution);
        for threads in [1, 2] {
            if options.threads.is_some_and(|only| only != threads) {
                continue;
            }
            for rule in [RuleKind::RowWiseAdaGrad, RuleKind::AdaGrad, RuleKind::Sgd] {
                let (median, fastest) = measure(&data, threads, rule, options.seconds);
                let speed = BATCH as f64 / median * 1e3;
                results.push((distribution, threads, rule.name(), median, fastest, speed));
            }
        }
    }
    let mut out = std::io::stdout().lock();
    for (distribution, threads, rule, median, fastest, speed) in results {
        let line = if options.json {
            format!(
                "{{\"bench\":\"step\",\"distribution\":\"{distribution}\",\"threads\":{threads},\
                 \"rule\":\"{rule}\",\"median_ms\":{median:.2},\"fastest_ms\":{fastest:.2},\
                 \"samples_per_second\":{speed:.0}}}"
            )
        } else {
            format!(
                "{distribution:<8} {threads} threads  {rule:<16} {median:>8.1} ms \
                 (fastest {fastest:.1})  {speed:>8.0} samples/s"
            )
        };
        drop(writeln!(out, "{line}"));
    }
}

struct Options {
    json: bool,
    threads: Option<usize>,
    seconds: f64,
    names: Vec<String>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self { json: false, threads: None, seconds: 4.0, names: Vec::new() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--json" => options.json = true,
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

/// Batches of one distribution.
struct Data {
    ids: Vec<Jagged>,
    dense: Vec<f32>,
    labels: Vec<f32>,
}

impl Data {
    fn load(distribution: &str) -> Self {
        let n = STEPS * TABLES * BATCH;
        let ids = read(&format!("idx_dlrm_{distribution}.bin"), |bytes| {
            bytes.as_chunks::<8>().0.iter().map(|&b| i64::from_le_bytes(b)).collect()
        })
        .unwrap_or_else(|| draw_ids(n, distribution));
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
        };
        let mut random = Random(7);
        let dense = read("dlrm_dense.bin", floats)
            .unwrap_or_else(|| (0..STEPS * BATCH * DENSE).map(|_| random.unit() as f32).collect());
        let labels = read("dlrm_label.bin", floats).unwrap_or_else(|| {
            (0..STEPS * BATCH).map(|_| f32::from(random.unit() < 0.25)).collect()
        });
        let names: Vec<String> = (0..TABLES).map(|t| format!("t{t}")).collect();
        let lengths = vec![1; TABLES * BATCH];
        let jagged = |values: &[i64]| {
            Jagged::from_lengths(&names, BATCH, &lengths, values.to_vec(), None).expect("a batch")
        };
        Self { ids: ids.chunks_exact(TABLES * BATCH).map(jagged).collect(), dense, labels }
    }

    fn samples(&self, step: usize) -> Samples<'_> {
        let step = step % self.ids.len();
        Samples {
            dense: &self.dense[step * BATCH * DENSE..(step + 1) * BATCH * DENSE],
            labels: &self.labels[step * BATCH..(step + 1) * BATCH],
            sparse: self.ids[step].as_ref(),
        }
    }
}

fn read<T>(name: &str, decode: impl Fn(&[u8]) -> Vec<T>) -> Option<Vec<T>> {
    let folder = PathBuf::from(std::env::var_os("PEER_DATA")?);
    std::fs::read(folder.join(name)).ok().map(|bytes| decode(&bytes))
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Uniform ids, or Zipf 1.05 over ranks by inversion of the distribution, spread over the rows.
fn draw_ids(n: usize, distribution: &str) -> Vec<i64> {
    let mut random = Random(11);
    if distribution == "uniform" {
        return (0..n).map(|_| (random.unit() * ROWS as f64) as i64).collect();
    }
    let mut sums: Vec<f64> = Vec::with_capacity(ROWS as usize);
    let mut total = 0.0;
    for rank in 1..=ROWS {
        total += (rank as f64).powf(-1.05);
        sums.push(total);
    }
    let spread = |rank: u64| ((rank * 61_803 + 17) % ROWS) as i64;
    let mut rank = || sums.partition_point(|&sum| sum < random.unit() * total) as u64;
    (0..n).map(|_| spread(rank().min(ROWS - 1))).collect()
}

/// Median and fastest milliseconds of a step.
fn measure(data: &Data, threads: usize, rule: RuleKind, seconds: f64) -> (f64, f64) {
    let mut trainer = trainer(threads, rule);
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
    (times[times.len() / 2], times[0])
}

fn trainer(threads: usize, kind: RuleKind) -> Trainer<Cpu> {
    let mut cpu = Cpu::new(CpuOptions { threads }).expect("a backend");
    let rule = Optimizer::new(kind);
    let tables: Vec<TableSpec> =
        (0..TABLES).map(|t| TableSpec::new(format!("t{t}"), ROWS, DIM, rule)).collect();
    let features = (0..TABLES)
        .map(|table| Feature { name: format!("t{table}"), table, pooling: Pooling::Sum })
        .collect();
    let bags = EmbeddingBags::new(&mut cpu, &tables, features, vec![0.01; TABLES], DIM, 1)
        .expect("tables");
    let sgd = DenseOptimizer::new(Optimizer::new(RuleKind::Sgd)).expect("a dense rule");
    let shape = Shape {
        dense_columns: DENSE,
        bottom: vec![512, 256, DIM],
        top: vec![512, 512, 256],
        interaction: Interaction::Dot(PairOrder::Lower),
    };
    let model = Dlrm::new(&mut cpu, &shape, bags, &sgd, 1).expect("a model");
    let schedule = Schedule::constant(1.0).expect("a schedule");
    let rates = Rates { tables: 0.01, dense: 0.01 };
    Trainer::new(cpu, model, emb_comm::Solo, DENSE, sgd, rates, schedule).expect("a trainer")
}
