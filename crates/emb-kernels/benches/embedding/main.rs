//! Embedding bags on the CPU: lookup, and lookup + backward + update.
//!
//! `cargo bench -p emb-kernels --bench embedding -- [--json] [--seconds S] [FILTER ...]`
//!
//! A cell is named like `train/a/uniform/rowwise_adagrad/f32/1`; it runs when every filter is a
//! part of its name. Prints the median time of undisturbed samples, the gigabytes a second of the
//! least traffic the cell can have (as the table below says), and its share of what random rows
//! of that width reach on this machine when only read.
//!
//! | pass | least bytes |
//! | --- | --- |
//! | forward | `lookups * (row bytes + 8) + output bytes` |
//! | train | `forward + output bytes + lookups * 8 + distinct rows * 2 * (row bytes + state bytes)` |
//!
//! With `PEER_DATA` set to a folder of index files (`idx_<config>_<distribution>.bin`, little-endian
//! `i64` of shape `[batches, tables, batch, ids]`) those are used, else the same kind is drawn.
//! With `PEER_RESULTS` set to a file of other libraries' results, the fastest of them stands beside
//! each cell, with its time over ours.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

mod clock;
mod config;
mod memory;
mod peers;

use clock::median_ms;
use config::{CONFIGS, Config, Indices};
use emb_kernels::cpu::{Cpu, CpuOptions, CpuTables};
use emb_kernels::{
    Backend, Dtype, Feature, FeatureMap, Gradients, JaggedView, Mat, Pooling, TableSpec,
};
use emb_optim::{Optimizer, RuleKind};

/// What one run of the bench was asked for.
struct Options {
    filters: Vec<String>,
    json: bool,
    seconds: f64,
}

fn main() {
    let options = options();
    let peak = memory::Peak::measure(&options);
    let peers = peers::Peers::load();
    if !options.json {
        println!("stream read {:.1} GB/s, one thread", peak.stream);
        println!(
            "{:44} {:>9} {:>9} {:>7} {:>6} {:>8}  peer",
            "cell", "ms", "rows/us", "GB/s", "%", "samples"
        );
    }
    for config in &CONFIGS {
        for distribution in ["uniform", "zipf"] {
            if !wanted_any(&options, config, distribution) {
                continue;
            }
            let indices = Indices::load(config, distribution);
            for (name, optimizer) in optimizers() {
                for dtype in [Dtype::F32, Dtype::F16] {
                    for threads in [1, 2] {
                        let cell = Cell { config, distribution, name, optimizer, dtype, threads };
                        cell.run(&options, &indices, &peak, &peers);
                    }
                }
            }
        }
    }
}

fn optimizers() -> Vec<(&'static str, Optimizer)> {
    vec![
        ("rowwise_adagrad", Optimizer::new(RuleKind::RowWiseAdaGrad)),
        ("sgd", Optimizer::new(RuleKind::Sgd)),
        ("adagrad", Optimizer::new(RuleKind::AdaGrad)),
        ("adam", Optimizer::new(RuleKind::Adam)),
    ]
}

fn options() -> Options {
    let mut options = Options { filters: Vec::new(), json: false, seconds: 2.0 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--seconds" => {
                let given = arguments.next().and_then(|value| value.parse().ok());
                options.seconds = given.unwrap_or(options.seconds);
            }
            // Cargo adds this.
            "--bench" => {}
            filter => options.filters.push(filter.to_owned()),
        }
    }
    options
}

fn wanted(options: &Options, name: &str) -> bool {
    options.filters.iter().all(|filter| name.contains(filter.as_str()))
}

fn wanted_any(options: &Options, config: &Config, distribution: &str) -> bool {
    optimizers().iter().any(|(optimizer, _)| {
        ["f32", "f16"].iter().any(|dtype| {
            [1, 2].iter().any(|threads| {
                ["forward", "train"].iter().any(|pass| {
                    let at = format!("{}/{distribution}", config.name);
                    wanted(options, &format!("{pass}/{at}/{optimizer}/{dtype}/{threads}"))
                })
            })
        })
    })
}

#[derive(Clone, Copy)]
struct Cell<'a> {
    config: &'a Config,
    distribution: &'a str,
    name: &'a str,
    optimizer: Optimizer,
    dtype: Dtype,
    threads: usize,
}

impl Cell<'_> {
    fn label(&self, pass: &str) -> String {
        let Self { config, distribution, name, threads, .. } = self;
        let dtype = if self.dtype == Dtype::F32 { "f32" } else { "f16" };
        format!("{pass}/{}/{distribution}/{name}/{dtype}/{threads}", config.name)
    }

    fn run(&self, options: &Options, indices: &Indices, peak: &memory::Peak, peers: &peers::Peers) {
        let forward = wanted(options, &self.label("forward")) && self.name == "rowwise_adagrad";
        let train = wanted(options, &self.label("train"));
        if !forward && !train {
            return;
        }
        let mut state = State::new(self, indices);
        let lookups = (self.config.tables * self.config.batch * self.config.ids) as f64;
        let row = (self.config.dim * self.dtype.bytes()) as f64;
        let output = (self.config.tables * self.config.batch * self.config.dim * 4) as f64;
        let forward_bytes = lookups * (row + 8.0) + output;
        let slots: f64 = self.optimizer.slots().iter().map(|slot| self.state_bytes(slot)).sum();
        let rows = indices.distinct_rows * 2.0 * (row + slots);
        let train_bytes = forward_bytes + output + lookups * 8.0 + rows;
        // Every row is touched before anything is timed.
        for batch in 0..indices.batches() {
            state.forward(indices, batch);
        }
        let mut passes = Vec::new();
        if forward {
            passes.push(("forward", forward_bytes));
        }
        if train {
            passes.push(("train", train_bytes));
        }
        for (pass, bytes) in passes {
            let (ms, samples) = median_ms(options.seconds, |i| {
                state.forward(indices, i % indices.batches());
                if pass == "train" {
                    state.update(indices, i % indices.batches(), self.optimizer, i as u64);
                }
            });
            let gb = bytes / ms / 1e6;
            let share = 100.0 * gb / peak.rows(row as usize, self.threads);
            let (cell, rows) = (self.label(pass), lookups / ms / 1e3);
            let peer = peers.fastest(&cell);
            if options.json {
                let peer = peer.map_or(String::new(), |(name, peer_ms)| {
                    format!(",\"peer\":\"{name}\",\"peer_ms\":{peer_ms:.4}")
                });
                println!(
                    "{{\"cell\":\"{cell}\",\"ms\":{ms:.4},\"gb_per_s\":{gb:.3},\"percent\":{share:.1},\"samples\":{samples}{peer}}}"
                );
            } else {
                let peer = peer.map_or(String::new(), |(name, peer_ms)| {
                    format!("{name} {peer_ms:.2} ({:.2} x)", peer_ms / ms)
                });
                println!("{cell:44} {ms:9.2} {rows:9.1} {gb:7.2} {share:6.0} {samples:8}  {peer}");
            }
        }
    }

    fn state_bytes(&self, slot: &emb_optim::Slot) -> f64 {
        match slot.extent {
            emb_optim::Extent::Row => 4.0,
            emb_optim::Extent::Element => 4.0 * self.config.dim as f64,
        }
    }
}

/// Tables and buffers of one cell.
struct State {
    cpu: Cpu,
    tables: CpuTables,
    map: FeatureMap,
    names: Vec<String>,
    offsets: Vec<u64>,
    out: Vec<f32>,
    gradient: Vec<f32>,
    batch: usize,
}

impl State {
    fn new(cell: &Cell<'_>, indices: &Indices) -> Self {
        let config = cell.config;
        let mut cpu = Cpu::new(CpuOptions { threads: cell.threads }).expect("threads");
        let specs: Vec<TableSpec> = (0..config.tables)
            .map(|t| TableSpec {
                dtype: cell.dtype,
                ..TableSpec::new(format!("t{t}"), config.rows, config.dim, cell.optimizer)
            })
            .collect();
        let tables = cpu.create_tables(&specs, 1).expect("tables");
        let names: Vec<String> = (0..config.tables).map(|t| format!("f{t}")).collect();
        let features = names.iter().enumerate().map(|(table, name)| Feature {
            name: name.clone(),
            table,
            pooling: Pooling::Sum,
        });
        let map = FeatureMap::new(features.collect(), &specs, 0).expect("map");
        let bags = config.tables * config.batch;
        let width = config.batch * map.width();
        Self {
            cpu,
            tables,
            map,
            names,
            offsets: (0..=bags).map(|bag| (bag * indices.ids) as u64).collect(),
            out: vec![0.0; width],
            gradient: vec![1e-3; width],
            batch: config.batch,
        }
    }

    fn forward(&mut self, indices: &Indices, batch: usize) {
        let Self { cpu, tables, map, names, offsets, out, .. } = self;
        let view = view(names, self.batch, offsets, indices.batch(batch));
        let out = Mat::new(&mut out[..], self.batch, map.width());
        cpu.pool(tables, map, view, out).expect("lookup");
    }

    fn update(&mut self, indices: &Indices, batch: usize, optimizer: Optimizer, step: u64) {
        let Self { cpu, tables, map, names, offsets, gradient, .. } = self;
        let view = view(names, self.batch, offsets, indices.batch(batch));
        let pooled = Mat::new(&gradient[..], self.batch, map.width());
        let gradients = Gradients { pooled, sequences: &[] };
        let rules = vec![optimizer.rule(0.01, step + 1); Cpu::specs(tables).len()];
        cpu.scatter_update(tables, map, view, &gradients, &rules, step).expect("update");
    }
}

fn view<'a>(
    names: &'a [String],
    batch: usize,
    offsets: &'a [u64],
    values: &'a [i64],
) -> JaggedView<'a, Cpu> {
    JaggedView { names, batch, len: values.len(), offsets, values, weights: None }
}
