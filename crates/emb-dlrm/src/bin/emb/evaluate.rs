//! `emb eval`.

use crate::args::{EvalArgs, ScoreArgs};
use crate::output::{json, out};
use crate::text::{count, pairs};
use emb_dlrm::Result;
use emb_dlrm::train::{Peers, Saved, ScoreOptions};

pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    Peers::refuse("emb eval")?;
    let mut saved = load(&args.score)?;
    let (report, skipped) = saved.evaluate()?;
    if args.json {
        return json(&serde_json::json!({
            "device": saved.device(),
            "steps": saved.step(),
            "skipped_rows": skipped,
            "eval": report,
        }));
    }
    let number =
        |value: Option<f64>| value.map_or("undefined".into(), |value| format!("{value:.6}"));
    out(&pairs(&[
        ("device", saved.device().to_string()),
        ("trained steps", count(saved.step())),
        ("rows", count(report.rows)),
        ("skipped lines", count(skipped)),
        ("positives", count(report.positives)),
        ("negatives", count(report.negatives)),
        ("AUC", number(report.auc)),
        ("loss", number(report.loss)),
        ("NE", number(report.normalized_entropy)),
    ]))
}

/// Loads the model that the arguments name.
pub(crate) fn load(args: &ScoreArgs) -> Result<Saved> {
    Saved::load(
        &args.load,
        ScoreOptions {
            data: args.data.clone(),
            bad_rows: args.bad_rows,
            batch_size: args.batch_size as usize,
            device: args.device,
            precision: args.precision,
            threads: args.threads.map(|threads| threads as usize),
        },
    )
}
