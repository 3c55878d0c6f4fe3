//! `emb profile`.

use crate::args::ProfileArgs;
use crate::output::{json, out, write_file};
use crate::reading::Reading;
use crate::text::{count, distinct, pairs, percent, table};
use emb_dlrm::config::{Config, Options, Origin};
use emb_dlrm::profile::{Profile, ProfileOptions, profile, workload_text};
use emb_dlrm::{Error, Result};
use std::path::Path;

/// Samples of synthetic data, which has no end.
const SYNTHETIC_SAMPLES: u64 = 1_000_000;

pub(crate) fn run(args: &ProfileArgs) -> Result<()> {
    let flags = args.options();
    let options = match &args.config {
        Some(path) => flags.over(Options::from_file(path)?),
        None => flags,
    };
    // What is said of ranks, devices, saved models and evaluation plays no part in what the data asks.
    let alone = options.alone();
    let options = Options { save: None, load: None, device: None, precision: None, ..alone };
    let config = Config::resolve(options)?;
    folder_exists(&args.out)?;
    let synthetic = (config.data == Origin::Synthetic).then_some(SYNTHETIC_SAMPLES);
    let options = ProfileOptions {
        memory_bytes: args.memory,
        samples: args.samples.or(synthetic),
        hot_rows: args.hot_rows as usize,
    };
    let mut reading = Reading::new();
    let result = profile(&config, options, |samples| reading.samples(samples));
    let seconds = reading.finish();
    let profile = result?;
    write_file(&args.out, &workload_text(&profile.workload)?)?;
    if args.json {
        return json(&serde_json::json!({
            "out": args.out,
            "samples": profile.samples,
            "skipped_rows": profile.skipped,
            "seconds": seconds,
            "tables": profile.tables,
        }));
    }
    out(&summary(&profile, &args.out, seconds))
}

/// Refuses a file that could not be written before hours of reading.
fn folder_exists(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if folder.is_dir() {
        return Ok(());
    }
    Err(Error::Config(format!("--out {}: there is no such folder", path.display())))
}

fn summary(profile: &Profile, path: &Path, seconds: f64) -> String {
    let speed = profile.samples as f64 / seconds.max(1e-9);
    let mut head = vec![
        ("workload", format!("{}, written to {}", profile.workload.name, path.display())),
        (
            "samples",
            format!(
                "{} in {seconds:.1} s, {} a second",
                count(profile.samples),
                count(speed as u64)
            ),
        ),
    ];
    if profile.skipped.total() > 0 {
        head.push(("skipped lines", count(profile.skipped.total())));
    }
    let rows: Vec<Vec<String>> = profile
        .tables
        .iter()
        .map(|one| {
            vec![
                one.table.clone(),
                count(one.rows),
                distinct(one.seen),
                count(one.lookups),
                format!("{:.2}", one.pooling_factor),
                count(one.hot),
                percent(one.top_1_percent),
                percent(one.top_10_percent),
            ]
        })
        .collect();
    let titles = ["table", "rows", "seen", "look-ups", "pooling", "hot", "top 1 %", "top 10 %"];
    format!(
        "{}\n\n{}\n\nhot: the most frequent rows, listed in the file, each looked up twice or more\ntop: \
         look-ups that the most frequent rows take, of the rows seen",
        pairs(&head),
        table(&titles, &rows)
    )
}
