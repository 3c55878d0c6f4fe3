//! `emb doctor` and `emb calibrate` over processes.

use serde_json::Value;
use std::process::{Command, Output};

/// Runs the program on `ranks` processes.
fn mpirun(ranks: &str, args: &[&str]) -> Output {
    let mut command = Command::new("mpirun");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["--oversubscribe", "--bind-to", "none", "-n", ranks]);
    command.arg(env!("CARGO_BIN_EXE_emb")).args(args);
    command.output().expect("mpirun runs")
}

/// The one JSON object that all processes together print.
fn value(output: &Output) -> Value {
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&out).unwrap_or_else(|bad| panic!("{bad}: {out}{error}"))
}

#[test]
fn the_doctor_exchanges_over_processes_and_prints_once() {
    let report = value(&mpirun("2", &["doctor", "--seconds", "0.3", "--json"]));
    assert_eq!(report["exchange"]["hosts"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["exchange"]["wrong"], Value::Array(Vec::new()));
    let checks = report["hosts"][0]["checks"].as_array().expect("checks");
    let found = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("no check {name}"))["found"].as_str().unwrap_or_default()
    };
    assert!(found("place").contains("rank 0 of 2"), "{}", found("place"));
    assert!(found("library").contains("MPI"), "{}", found("library"));
}

#[test]
fn calibration_over_processes_writes_a_topology() {
    let file = std::env::temp_dir().join(format!("emb-calibrate-{}.toml", std::process::id()));
    let out = file.display().to_string();
    let report = value(&mpirun("2", &["calibrate", "--seconds", "1", "--out", &out, "--json"]));
    assert_eq!(report["topology"]["ranks"], 2);
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::remove_file(&file).expect("it is ours");
    assert!(text.starts_with("# Measured by emb calibrate") && text.contains("[[levels]]"));
    let refused = mpirun("2", &["calibrate", "--world", "2", "--out", &out]);
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("--world 2 asks for threads"), "{error}");
}
