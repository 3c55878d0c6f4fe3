//! From measured exchanges, or those that nccl-tests has printed, to a topology that plans.

use super::support::{Folder, emb, refused, stderr, stdout};
use serde_json::Value;
use std::fmt::Write as _;

#[test]
fn what_is_measured_is_a_topology_that_plans() {
    let folder = Folder::new("calibrate");
    let file = folder.path("t.toml");
    let flags = ["calibrate", "--world", "2", "--seconds", "0.2", "--out", &file];
    let output = emb(&[&flags[..], &["--name", "here", "--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("one JSON object");
    assert_eq!(
        (&report["topology"]["name"], &report["topology"]["ranks"]),
        (&"here".into(), &2.into())
    );
    let residuals = report["residuals"].as_array().expect("residuals");
    assert!(residuals.iter().any(|row| row["held_out"] == true));
    let tables = folder.file("t.csv", "workload,table,rows,dim,pooling\nclicks,ads,40000,16,4\n");
    let more = ["--topology", &file, "--batch-size", "64", "--json"];
    let output = emb(&[&["plan", "--workload", &tables][..], &more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_table_of_nccl_tests_becomes_a_topology_and_nonsense_is_refused() {
    let folder = Folder::new("nccl");
    let mut text =
        String::from("# Rank  0 Pid 1 on a device 0 X\n# Rank  1 Pid 2 on a device 1 X\n");
    text.push_str("#  size  count  type  redop  root  time  algbw  busbw  #wrong\n");
    for power in 10..24 {
        let size = 1_u64 << power;
        let micros = 10.0 + size as f64 / 2.0 / 1e11 * 1e6;
        writeln!(text, "{size} 1 float none -1 {micros:.3} 1.0 0.5 0").expect("text");
    }
    let (table, out) = (folder.file("alltoall.txt", &text), folder.path("t.toml"));
    let flags = ["calibrate", "--from", &table, "--like", "dgx-h100", "--out", &out];
    let output = emb(&flags);
    assert!(output.status.success(), "{}", stderr(&output));
    for words in ["held out", "predicted", "largest error", "emb plan --topology"] {
        assert!(stdout(&output).contains(words), "{words:?} is missing from: {}", stdout(&output));
    }
    let made: toml_file::Topology = toml_file::read(&out);
    assert!((made.bandwidth / 1e11 - 1.0).abs() < 0.05 && (made.latency / 1e-5 - 1.0).abs() < 0.05);
    let none = folder.file("none.txt", "hello\n");
    let flags = ["calibrate", "--from", &none, "--like", "dgx-h100", "--out", &out];
    refused(&emb(&flags), &["none.txt", "no table of nccl-tests", "expected a header"]);
    refused(&emb(&["calibrate", "--from", &table, "--out", &out]), &["--like"]);
    let flags = ["calibrate", "--from", &table, "--like", "dgx-h1000", "--out", &out];
    refused(&emb(&flags), &["dgx-h1000"]);
    // What can't be written is refused before anything is measured.
    refused(
        &emb(&["calibrate", "--out", &folder.path("no/t.toml")]),
        &["there is no folder", "no"],
    );
    refused(&emb(&["calibrate", "--out", &folder.path("")]), &["is a folder"]);
}

/// The two numbers of the file's level.
mod toml_file {
    pub(super) struct Topology {
        pub(super) bandwidth: f64,
        pub(super) latency: f64,
    }

    pub(super) fn read(path: &str) -> Topology {
        let text = std::fs::read_to_string(path).expect("a file");
        let links = text.split("[[levels]]").nth(1).expect("a level");
        let number = |key: &str| {
            let line = links.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.expect("the key").parse().expect("a number")
        };
        Topology { bandwidth: number("bandwidth"), latency: number("latency") }
    }
}
