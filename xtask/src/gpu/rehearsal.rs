//! The script on the fake driver: everything it does, and no figure that means anything.

use super::package::Package;
use crate::Failure;
use crate::simt::{Machine, Schedule};
use crate::workspace::Workspace;
use serde_json::Value;

/// Parts that a machine without a GPU cannot run.
const NEED_A_GPU: [&str; 2] = ["compute-sanitizer", "pytorch bag"];

/// Seconds for the script here, where threads of the GPU take turns on a few cores.
const LIMIT: &str = "900";

/// Runs the script, then looks at what it wrote.
pub(crate) fn run(
    workspace: &Workspace,
    package: &Package,
    machine: &Machine,
) -> Result<(), Failure> {
    let mut script = workspace.command("bash");
    script.arg(package.folder.join("run.sh")).env("EMB_TINY", "1").env("EMB_LIMIT", LIMIT);
    machine.prepare(&mut script, Schedule { kind: "random", seed: 1 }, 2);
    let status = script.status()?;
    let file = package.folder.join("results/results.json");
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let results: Value = serde_json::from_str(&text)?;
    for problem in problems(&results) {
        eprintln!("{problem}");
    }
    if status.success() && problems(&results).is_empty() {
        return Ok(());
    }
    Err(format!("the rehearsal failed: {status}").into())
}

/// What in the results would be a surprise on a machine with a GPU.
fn problems(results: &Value) -> Vec<String> {
    let parts = results["parts"].as_array().cloned().unwrap_or_default();
    let mut problems = Vec::new();
    for part in &parts {
        let (name, result) = (&part["name"], &part["result"]);
        let data = part["detail"].as_str().is_some_and(|detail| detail.contains("EMB_DATA"));
        let may_be_skipped = data || NEED_A_GPU.iter().any(|needs| name == needs);
        if result != "ok" && !(result == "skipped" && may_be_skipped) {
            problems.push(format!("{name}: {result}: {}", part["detail"]));
        }
    }
    if !parts.iter().any(|part| part["name"] == "bench") {
        problems.push("no part is the bench".to_owned());
    }
    if results["bench"]["cells"].as_array().is_none_or(Vec::is_empty) {
        problems.push("the bench has no cells".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_needs_a_gpu_may_be_skipped() {
        let part =
            |name: &str, result: &str| json!({"name": name, "result": result, "detail": "x"});
        let fine = json!({"parts": [part("bench", "ok"), part("pytorch bag", "skipped")],
            "bench": {"cells": [{}]}});
        assert_eq!(problems(&fine), Vec::<String>::new());
        let bad = json!({"parts": [part("bench", "FAILED"), part("conformance", "skipped")],
            "bench": null});
        let expected = [
            "\"bench\": \"FAILED\": \"x\"",
            "\"conformance\": \"skipped\": \"x\"",
            "the bench has no cells",
        ];
        assert_eq!(problems(&bad), expected);
    }
}
