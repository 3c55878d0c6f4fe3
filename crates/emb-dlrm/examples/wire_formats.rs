//! What wire formats of rows and gradients do to a model, and to the bytes that ranks exchange.
//!
//! A planted teacher makes the labels of samples whose ids follow a Zipf law. Four ranks, the tables
//! cut by rows, train on the same samples once in `f32`, once with the learning rates changed by a
//! millionth, which shows how far rounding alone leads apart, and once in every format, rows and
//! gradients alike. Sums of squares begin above 0 and learning rates end at 0: otherwise the first
//! steps have the size of the rate whatever the gradient, and the nudge alone changes the normalized
//! entropy by nearly 0.1 %.
//!
//! ```text
//! cargo run --release -p emb-dlrm --example wire_formats
//! cargo run --release -p emb-dlrm --example wire_formats -- --formats f16,bf16,int8,fp8-e4m3,fp8-e5m2,int4
//! ```
//!
//! It ends with an error where `f16`, `bf16` or `int8` is further from `f32` than `--limit`.
//! `docs/wire.md` has what was measured.

use clap::Parser;
use emb_comm::Wire;
use emb_dlrm::config::{Config, Options, WireOptions};
use emb_dlrm::train::{Silent, train};
use emb_dlrm::{Error, Result};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

/// Formats that are expected to change next to nothing.
const NEAR: [Wire; 3] = [Wire::F16, Wire::Bf16, Wire::Int8Rowwise];

/// Change of the learning rates, in parts of them, that is less than any format changes.
const NUDGE: f64 = 1e-6;

/// Compares the wire formats with `f32`.
#[derive(Debug, Parser)]
struct Arguments {
    /// Formats, as a list
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FORMAT,...",
        default_values_t = NEAR
    )]
    formats: Vec<Wire>,
    /// Steps
    #[arg(long, value_name = "N", default_value_t = 300)]
    steps: u64,
    /// Samples of the global batch
    #[arg(long, value_name = "N", default_value_t = 2048)]
    batch: usize,
    /// Rows of each of the 26 tables
    #[arg(long, value_name = "N", default_value_t = 40_000)]
    rows: u64,
    /// Columns of the tables
    #[arg(long, value_name = "N", default_value_t = 16)]
    dim: usize,
    /// Ranks
    #[arg(long, value_name = "W", default_value_t = 4)]
    world: u32,
    /// Seed of samples, teacher and weights
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Most that normalized entropy may differ in f16, bf16 and int8, in percent
    #[arg(long, value_name = "X", default_value_t = 0.05)]
    limit: f64,
}

/// What a run ends with.
struct Outcome {
    ne: f64,
    /// Of the busiest rank, a step.
    bytes: f64,
}

fn main() -> std::process::ExitCode {
    match compare(&Arguments::parse()) {
        Ok(text) => {
            drop(write!(std::io::stdout(), "{text}"));
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn compare(arguments: &Arguments) -> Result<String> {
    let exact = run(arguments, Wire::F32, 1.0)?;
    let nudged = run(arguments, Wire::F32, 1.0 + NUDGE)?;
    let percent = |of: &Outcome| 100.0 * (of.ne / exact.ne - 1.0);
    let (mut text, mut far) = (String::new(), None);
    let mut line = |name: &str, of: &Outcome| {
        let (ne, percent, bytes) = (of.ne, percent(of), of.bytes);
        let part = 100.0 * bytes / exact.bytes;
        let _ =
            writeln!(text, "{name:<11}  {ne:.6}  {percent:>+8.4} %  {bytes:>11.0}  {part:>5.1} %");
    };
    line("f32", &exact);
    line("f32, nudged", &nudged);
    for &wire in &arguments.formats {
        let of = run(arguments, wire, 1.0)?;
        line(wire.name(), &of);
        if NEAR.contains(&wire) && percent(&of).abs() > arguments.limit {
            far = Some((wire, percent(&of)));
        }
    }
    let head = "format       NE        of f32      bytes a step  of f32\n";
    let text = format!("{head}{text}");
    match far {
        None => Ok(text),
        Some((wire, percent)) => {
            let limit = arguments.limit;
            Err(Error::Config(format!(
                "{wire} is {percent:+.4} % from f32, beyond {limit} %\n{text}"
            )))
        }
    }
}

fn run(arguments: &Arguments, wire: Wire, factor: f64) -> Result<Outcome> {
    let since = Instant::now();
    let format: WireOptions = wire.name().parse().map_err(Error::Config)?;
    let config = Config::resolve(Options {
        data: vec!["synthetic".into()],
        rows_per_table: Some(arguments.rows),
        dim: Some(arguments.dim),
        bottom: Some(vec![32]),
        top: Some(vec![32]),
        steps: Some(arguments.steps),
        batch_size: Some(arguments.batch),
        seed: Some(arguments.seed),
        world: Some(arguments.world),
        plan: Some("row-wise".into()),
        lr: Some(0.02 * factor),
        dense_lr: Some(0.01 * factor),
        initial_accumulator: Some(1e-6),
        lr_decay: Some(format!("poly:0:{}:1", arguments.steps)),
        wire: Some(format),
        ..Options::default()
    })?;
    let report = train(&config, &mut Silent)?;
    let eval = report.eval.as_ref().and_then(|eval| eval.normalized_entropy);
    let ne = eval.ok_or_else(|| Error::Config("nothing was evaluated".into()))?;
    let exchange = report.exchange.unwrap_or_default();
    let bytes = exchange.intra_node_bytes_per_step + exchange.inter_node_bytes_per_step;
    eprintln!("{wire}: NE {ne:.5}, {:.1} s", since.elapsed().as_secs_f64());
    Ok(Outcome { ne, bytes })
}
