//! What harnesses of the failure contract share: rows of its table.

pub(crate) mod threads;

use emb_comm::conformance::contract::{CULPRIT, Case, Told};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

/// What a case came to.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) transport: &'static str,
    pub(crate) case: Case,
    /// When it happened; the last survivor was told this much later.
    pub(crate) fell: Duration,
    pub(crate) told: Vec<Option<Told>>,
    /// What breaks the contract.
    pub(crate) findings: Vec<String>,
}

impl Row {
    fn survivors(&self) -> impl Iterator<Item = &Told> {
        self.told.iter().flatten().filter(|told| told.rank != CULPRIT)
    }

    /// Milliseconds until the last survivor was told.
    pub(crate) fn after_ms(&self) -> Option<f64> {
        let last = self.survivors().map(|told| told.at).max();
        last.map(|last| last.saturating_sub(self.fell).as_secs_f64() * 1e3)
    }

    /// Prints it, and adds it to the file that `EMB_CONTRACT` names.
    pub(crate) fn write(&self, message: Option<&str>, after_ms: Option<f64>) {
        let said = self.survivors().next().map(|told| told.message.as_str());
        let row = json!({
            "transport": self.transport,
            "sets": self.case.sets.name(),
            "fault": self.case.fault.name(),
            "fails": CULPRIT,
            "after_ms": after_ms.or_else(|| self.after_ms()),
            "message": message.or(said),
            "findings": self.findings,
        });
        eprintln!("{row}");
        if let Ok(file) = std::env::var("EMB_CONTRACT") {
            let file = OpenOptions::new().create(true).append(true).open(file);
            let written = file.and_then(|mut file| file.write_all(format!("{row}\n").as_bytes()));
            written.expect("the file of EMB_CONTRACT can be written");
        }
    }
}

/// Fails if a row has a finding.
pub(crate) fn assert_kept(rows: &[Row]) {
    let lines = rows.iter().flat_map(|row| {
        let name = format!("{} {}", row.transport, row.case.name());
        row.findings.iter().map(move |finding| format!("{name}: {finding}"))
    });
    let lines: Vec<String> = lines.collect();
    assert!(lines.is_empty(), "{} of the contract:\n{}", lines.len(), lines.join("\n"));
}
