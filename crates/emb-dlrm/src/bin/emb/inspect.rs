//! `emb inspect`.

use crate::args::InspectArgs;
use crate::output::{json, out};
use crate::text::{bytes, count, distinct, pairs, table};
use emb_dlrm::Result;
use emb_dlrm::checkpoint::verify;
use emb_dlrm::data::inspect::{FileReport, inspect};
use std::path::Path;

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    match &args.load {
        Some(dir) => checkpoint(dir, args.json),
        None => files(args),
    }
}

fn files(args: &InspectArgs) -> Result<()> {
    let reports = inspect(&args.data)?;
    if args.json {
        return json(&serde_json::json!({ "files": reports }));
    }
    for report in &reports {
        out(&file(report))?;
    }
    if reports.len() > 1 {
        let rows: u64 = reports.iter().map(|report| report.rows).sum();
        let size: u64 = reports.iter().map(|report| report.bytes).sum();
        out(&format!("{} files, {} rows, {}", reports.len(), count(rows), bytes(size)))?;
    }
    Ok(())
}

fn file(report: &FileReport) -> String {
    let mut head = vec![
        ("file", report.path.display().to_string()),
        ("rows", count(report.rows)),
        ("bytes", format!("{} ({})", count(report.bytes), report.compression.unwrap_or("plain"))),
        ("sha256", report.sha256.clone()),
        ("fields", report.fields.to_string()),
    ];
    if let Some(labels) = &report.labels {
        let soft =
            if labels.soft > 0 { format!(", {} soft", count(labels.soft)) } else { String::new() };
        let text = format!(
            "{} zeros, {} ones{soft}, mean {:.4}",
            count(labels.zeros),
            count(labels.ones),
            labels.mean
        );
        head.push(("labels", text));
    }
    if report.bad_rows.total() > 0 {
        let reasons: Vec<String> = report
            .bad_rows
            .counts()
            .map(|(reason, rows)| format!("{} {reason}", count(rows)))
            .collect();
        head.push((
            "bad rows",
            format!("{}: {}", count(report.bad_rows.total()), reasons.join(", ")),
        ));
    }
    if let Some(first) = &report.first_bad_row {
        head.push(("first", first.clone()));
    }
    let value = |value: Option<i32>| value.map_or("-".to_owned(), |value| value.to_string());
    let integers: Vec<Vec<String>> = report
        .integers
        .iter()
        .map(|column| {
            vec![
                column.column.clone(),
                count(column.missing),
                count(column.negative),
                value(column.min),
                value(column.max),
            ]
        })
        .collect();
    let ids: Vec<Vec<String>> = report
        .ids
        .iter()
        .map(|column| {
            let max = column.max.map_or("-".to_owned(), |id| format!("{id:08x}"));
            vec![column.column.clone(), count(column.missing), distinct(column.distinct), max]
        })
        .collect();
    format!(
        "{}\n\n{}\n\n{}\n",
        pairs(&head),
        table(&["integers", "missing", "negative", "least", "greatest"], &integers),
        table(&["ids", "missing", "distinct", "greatest"], &ids)
    )
}

fn checkpoint(dir: &Path, as_json: bool) -> Result<()> {
    let manifest = verify(dir)?;
    if as_json {
        return json(&manifest);
    }
    let head = pairs(&[
        ("checkpoint", dir.display().to_string()),
        ("file", manifest.file.clone()),
        ("steps", count(manifest.step)),
        ("samples", count(manifest.samples)),
        ("bytes", format!("{} ({})", count(manifest.bytes), bytes(manifest.bytes))),
        (
            "tensors",
            format!("{}, every byte as it was written", count(manifest.tensors.len() as u64)),
        ),
    ]);
    let rows: Vec<Vec<String>> = manifest
        .tensors
        .iter()
        .map(|tensor| {
            let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
            vec![
                tensor.name.clone(),
                shape.join(" x "),
                bytes(tensor.bytes),
                tensor.sha256[..tensor.sha256.len().min(16)].to_owned(),
            ]
        })
        .collect();
    out(&format!(
        "{head}\n\n{}",
        table(&["tensor", "shape", "bytes", "sha256 (first 8 bytes)"], &rows)
    ))
}
