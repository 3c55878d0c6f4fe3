//! Rows of the table of the failure contract, which its harnesses write.

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
    /// How much later than the fault the last survivor was told, or the job was over.
    pub(crate) after: Option<Duration>,
    /// What a survivor or the launcher said.
    pub(crate) message: Option<String>,
    /// What breaks the contract.
    pub(crate) findings: Vec<String>,
}

impl Row {
    /// Of what ranks were told of a fault that fell at a time.
    pub(crate) fn of(
        transport: &'static str,
        case: Case,
        told: &[Option<Told>],
        fell: Duration,
        findings: Vec<String>,
    ) -> Self {
        let survivors = || told.iter().flatten().filter(|told| told.rank != CULPRIT);
        let last = survivors().map(|told| told.at).max();
        let after = last.map(|last| last.saturating_sub(fell));
        let message = survivors().next().map(|told| told.message.clone());
        Self { transport, case, after, message, findings }
    }

    /// Prints it, and adds it to the file that `EMB_CONTRACT` names.
    pub(crate) fn write(&self) {
        let row = json!({
            "transport": self.transport,
            "sets": self.case.sets.name(),
            "fault": self.case.fault.name(),
            "fails": CULPRIT,
            "after_ms": self.after.map(|after| after.as_secs_f64() * 1e3),
            "message": self.message,
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
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}
