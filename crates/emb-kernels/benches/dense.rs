//! Dense operations on the CPU: matrix products of two MLPs and the pairwise interaction.
//!
//! `cargo bench -p emb-kernels --bench dense -- [--json] [--seconds S] [FILTER ...]`
//!
//! A cell is named like `gemm/512x256/fwd/1` (layer inputs x outputs, pass, threads) or
//! `interact/27x64/bwd/2` (features x dim); it runs when every filter is a part of its name. The
//! batch is 2048. Prints the median time of undisturbed samples, GFLOP/s and their share of the
//! fused multiply-adds that this machine does in registers on as many threads (measured first);
//! for the interaction the useful flops (`features * (features - 1) * dim` forward, twice that
//! backward) and the gigabytes a second of what has to be read and written.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

#[path = "embedding/clock.rs"]
mod clock;
#[path = "dense/peak.rs"]
mod peak;

use clock::median_ms;
use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{Accumulate, Backend, Mat, PairOrder, Transpose};

const BATCH: usize = 2048;

/// Layers of 13-512-256-64 and 415-512-512-256-1, inputs and outputs.
const LAYERS: [(usize, usize); 7] =
    [(13, 512), (512, 256), (256, 64), (415, 512), (512, 512), (512, 256), (256, 1)];

/// What one run of the bench was asked for.
struct Options {
    filters: Vec<String>,
    json: bool,
    seconds: f64,
}

fn main() {
    let mut options = Options { filters: Vec::new(), json: false, seconds: 0.3 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--seconds" => {
                let seconds = arguments.next().and_then(|s| s.parse().ok());
                options.seconds = seconds.expect("--seconds takes a number");
            }
            "--bench" => {}
            filter => options.filters.push(filter.to_owned()),
        }
    }
    for threads in [1, 2] {
        let peak = peak::gflops(threads);
        if !options.json {
            println!("{threads} thread(s): {peak:.1} GFLOP/s in registers");
            let head = ["cell", "ms", "GFLOP/s", "% peak", "GB/s", "samples"];
            let [cell, ms, gflops, share, bytes, samples] = head;
            println!("{cell:28} {ms:>9} {gflops:>8} {share:>7} {bytes:>7} {samples:>8}");
        }
        let mut cpu = Cpu::new(CpuOptions { threads }).expect("threads start");
        for (l, &layer) in LAYERS.iter().enumerate() {
            if !LAYERS[..l].contains(&layer) {
                products(&options, &mut cpu, threads, peak, layer);
            }
        }
        for (features, dim) in [(27, 16), (27, 64), (27, 128)] {
            interactions(&options, &mut cpu, threads, peak, features, dim);
        }
    }
}

/// The three products of one layer: `y = x w^T`, `dx = dy w`, `dw = dy^T x`.
fn products(
    options: &Options,
    cpu: &mut Cpu,
    threads: usize,
    peak: f64,
    (inputs, outputs): (usize, usize),
) {
    use Transpose::{No, Yes};
    let data = |len: usize| (0..len).map(|k| (k % 7) as f32 / 8.0 - 0.4).collect::<Vec<f32>>();
    let (x, w, dy) = (data(BATCH * inputs), data(outputs * inputs), data(BATCH * outputs));
    let x = Mat::new(&x[..], BATCH, inputs);
    let w = Mat::new(&w[..], outputs, inputs);
    let dy = Mat::new(&dy[..], BATCH, outputs);
    for (pass, a, ta, b, tb, rows, cols) in [
        ("fwd", x, No, w, Yes, BATCH, outputs),
        ("dx", dy, No, w, No, BATCH, inputs),
        ("dw", dy, Yes, x, No, outputs, inputs),
    ] {
        let mut out = vec![0.0f32; rows * cols];
        let cell = Cell {
            name: format!("gemm/{inputs}x{outputs}/{pass}/{threads}"),
            flops: 2.0 * (BATCH * inputs * outputs) as f64,
            bytes: 4.0 * (a.rows * a.cols + b.rows * b.cols + rows * cols) as f64,
            peak,
        };
        cell.run(options, || {
            let out = Mat::new(&mut out[..], rows, cols);
            cpu.gemm(a, ta, b, tb, Accumulate::Replace, out).expect("the shapes fit");
        });
    }
}

/// Forward and backward of the interaction.
fn interactions(
    options: &Options,
    cpu: &mut Cpu,
    threads: usize,
    peak: f64,
    features: usize,
    dim: usize,
) {
    let (width, cols) = (features * dim, dim + features * (features - 1) / 2);
    let x: Vec<f32> = (0..BATCH * width).map(|k| (k % 7) as f32 / 8.0 - 0.4).collect();
    let x = Mat::new(&x[..], BATCH, width);
    let mut out = vec![0.0f32; BATCH * cols];
    let flops = (BATCH * features * (features - 1) * dim) as f64;
    let name = |pass| format!("interact/{features}x{dim}/{pass}/{threads}");
    let bytes = 4.0 * (BATCH * (width + cols)) as f64;
    Cell { name: name("fwd"), flops, bytes, peak }.run(options, || {
        let out = Mat::new(&mut out[..], BATCH, cols);
        cpu.interact(x, features, out, PairOrder::Lower).expect("the shapes fit");
    });
    let mut gradient = vec![0.0f32; BATCH * width];
    let bytes = 4.0 * (BATCH * (2 * width + cols)) as f64;
    Cell { name: name("bwd"), flops: 2.0 * flops, bytes, peak }.run(options, || {
        let out = Mat::new(&out[..], BATCH, cols);
        let gradient = Mat::new(&mut gradient[..], BATCH, width);
        cpu.interact_backward(x, features, out, gradient, PairOrder::Lower)
            .expect("the shapes fit");
    });
}

/// One line of the report.
struct Cell {
    name: String,
    flops: f64,
    bytes: f64,
    peak: f64,
}

impl Cell {
    fn run(&self, options: &Options, mut work: impl FnMut()) {
        let Self { name, flops, bytes, peak } = self;
        if !options.filters.iter().all(|filter| name.contains(filter.as_str())) {
            return;
        }
        let (ms, samples) = median_ms(options.seconds, |_| work());
        let (gflops, gbytes) = (flops / ms / 1e6, bytes / ms / 1e6);
        let share = 100.0 * gflops / peak;
        if options.json {
            println!(
                "{{\"cell\":\"{name}\",\"ms\":{ms:.4},\"gflops\":{gflops:.2},\"peak_gflops\":\
                 {peak:.1},\"gbytes\":{gbytes:.2},\"samples\":{samples}}}"
            );
        } else {
            println!("{name:28} {ms:9.3} {gflops:8.1} {share:7.1} {gbytes:7.1} {samples:8}");
        }
    }
}
