//! Looking at the machine, and timing an exchange, from the command line.

use super::support::{emb, refused, stderr, stdout};
use serde_json::Value;

#[test]
fn the_doctor_says_what_is_there_and_times_every_operation() {
    let output = emb(&["doctor", "--world", "2", "--seconds", "0.1", "--json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("one JSON object");
    let problems = report["problems"].as_u64().expect("a count");
    assert_eq!(output.status.code(), Some(i32::from(problems > 0)), "{}", stderr(&output));
    let checks = report["hosts"][0]["checks"].as_array().expect("checks");
    for name in ["features", "cores", "available", "/dev/shm", "open files", "mpirun", "place"] {
        let check = checks.iter().find(|check| check["name"] == name);
        let check = check.unwrap_or_else(|| panic!("no check {name}"));
        let fine = check["verdict"] == "ok" || check["verdict"] == "unknown";
        assert_eq!(fine, check["fix"].is_null(), "{check}");
    }
    let rows = report["exchange"]["operations"].as_array().expect("operations");
    for operation in ["all_to_all_v", "all_reduce", "all_gather_v", "broadcast", "barrier"] {
        assert!(rows.iter().any(|row| row["operation"] == operation), "{operation}");
    }
    assert_eq!(report["exchange"]["wrong"], Value::Array(Vec::new()));
    assert_eq!(report["exchange"]["pairs"]["rates"].as_array().map(Vec::len), Some(2));
}

#[test]
fn without_an_exchange_the_doctor_prints_an_aligned_table() {
    let output = emb(&["doctor", "--seconds", "0"]);
    let text = stdout(&output);
    for words in ["processor  cores", "memory     available", "problems, ", "built in: "] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
    refused(&emb(&["doctor", "--seconds", "-1"]), &["--seconds"]);
    refused(&emb(&["doctor", "--wrold", "2"]), &["--wrold", "--world"]);
}
