//! Training over ranks from the command line.

use super::support::{Folder, emb, refused, rows, stderr, stdout};
use serde_json::Value;
use std::process::Output;

const SMALL: &[&str] = &["--rows-per-table", "100", "--dim", "4", "--bottom", "8", "--top", "8"];

fn train(more: &[&str]) -> Output {
    let mut args = vec!["train"];
    args.extend_from_slice(SMALL);
    args.extend_from_slice(more);
    emb(&args)
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("one JSON object")
}

#[test]
fn ranks_evaluate_every_row_once_and_say_what_they_exchange() {
    let folder = Folder::new("ranks");
    let (data, test) = (folder.file("train.tsv", &rows(100)), folder.file("test.tsv", &rows(37)));
    let timeline = folder.path("run.json");
    let files = ["--data", &data, "--eval", &test, "--batch-size", "16", "--json"];
    let alone = json(&train(&files));
    let ranks = ["--world", "4", "--replicas", "2", "--nodes", "2", "--plan", "table-wise"];
    let more =
        ["--eval-every", "3", "--sync-every", "2", "--check-replicas", "--timeline", &timeline];
    let output = train(&[&files[..], &ranks, &more].concat());
    let many = json(&output);
    for key in ["steps", "samples"] {
        assert_eq!(many[key], alone[key], "{key}");
    }
    for key in ["rows", "positives", "negatives"] {
        assert_eq!(many["eval"][key], alone["eval"][key], "{key}");
    }
    assert_eq!(many["exchange"]["world"], 4);
    // Strided groups of 4 ranks on two nodes span both.
    assert!(many["exchange"]["inter_node_bytes_per_step"].as_f64() > Some(0.0), "{many}");
    let text = stderr(&output);
    for words in ["4 ranks, 2 nodes, 2 x replicas, scaling moment", "touched rows/2", "ranks 0..=3"]
    {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }

    let text = std::fs::read_to_string(&timeline).expect("a timeline");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    for rank in 0..4 {
        let of = |name: &str| {
            let own = events.iter().filter(|event| event["pid"] == rank && event["name"] == name);
            own.count()
        };
        assert_eq!(of("process_name"), 1, "rank {rank}");
        for phase in ["tables forward", "dense forward", "dense backward", "tables backward"] {
            assert_eq!(of(phase), 7, "rank {rank}: {phase}");
        }
        for name in ["all_to_all_v", "exchange_counts", "all_reduce", "sync", "evaluate"] {
            assert!(of(name) > 0, "rank {rank}: no {name}");
        }
    }
    // Syncs of replicas go on beside as well.
    let beside = |event: &&Value| event["tid"].as_u64() > Some(1) && event["name"] == "all_reduce";
    let sums = events.iter().filter(beside).count();
    assert_eq!(sums, 4 * 7 * 2, "two parts of the dense gradients a step and rank");
}

#[test]
fn a_plan_file_places_tables_and_is_refused_for_another_world() {
    let folder = Folder::new("plan");
    let data = folder.file("train.tsv", &rows(40));
    let output = train(&["--data", &data, "--world", "2", "--plan", "rowwise"]);
    refused(&output, &["rowwise", "did you mean row-wise?"]);
    let output = train(&["--data", &data, "--world", "3", "--replicas", "2"]);
    refused(&output, &["--replicas is 2: 3 ranks are not shared out evenly"]);
    let output = train(&["--data", &data, "--replicas", "2"]);
    refused(&output, &["--replicas has no effect on one rank: give --world 2 or more"]);
}

#[test]
fn a_bad_line_fails_every_rank_by_file_and_line_and_leaves_no_checkpoint() {
    let folder = Folder::new("bad");
    let mut text = rows(60);
    text.push_str("not a row\n");
    let data = folder.file("train.tsv", &text);
    let save = folder.path("model");
    let args = ["--data", &data, "--world", "3", "--batch-size", "8", "--save", &save];
    let output = train(&args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for word in ["rank ", "step ", "train.tsv, line 61"] {
        assert!(text.contains(word), "{word:?} is missing from: {text}");
    }
    assert!(!folder.0.join("model/manifest.json").exists());
}

#[test]
fn a_checkpoint_of_ranks_is_scored_and_trained_on_by_one_process() {
    let folder = Folder::new("save");
    let data = folder.file("train.tsv", &rows(64));
    let save = folder.path("model");
    let args = ["--data", &data, "--batch-size", "8", "--json"];
    let ranks = ["--world", "4", "--replicas", "2", "--save", &save];
    json(&train(&[&args[..], &ranks].concat()));
    let scored = json(&emb(&["eval", "--data", &data, "--load", &save, "--json"]));
    assert_eq!(scored["eval"]["rows"].as_u64().or(scored["rows"].as_u64()), Some(64), "{scored}");
    let onward = ["--data", &data, "--load", &save, "--epochs", "2", "--world", "1", "--json"];
    assert_eq!(json(&emb(&[&["train"], &onward[..]].concat()))["loaded_steps"], 8);
}

#[test]
fn a_model_that_diverged_replaces_no_checkpoint() {
    let folder = Folder::new("diverged");
    let data = folder.file("train.tsv", &rows(64));
    let save = folder.path("model");
    for ranks in [&["--world", "1"][..], &["--world", "3"]] {
        let args = ["--data", &data, "--eval", &data, "--batch-size", "16", "--save", &save];
        json(&train(&[&args[..], ranks, &["--json"]].concat()));
        let worse = ["--lr", "1e30", "--dense-lr", "1e30", "--steps", "1", "--load", &save];
        let output = train(&[&args[..], ranks, &worse].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("NaN"), "{}", stderr(&output));
        let scored = emb(&["eval", "--data", &data, "--load", &save, "--json"]);
        assert!(scored.status.success(), "{ranks:?}: {}", stderr(&scored));
    }
}

#[test]
fn two_runs_that_save_to_one_folder_take_turns() {
    let folder = Folder::new("turns");
    let data = folder.file("train.tsv", &rows(64));
    let save = folder.path("model");
    std::thread::scope(|scope| {
        let runs: Vec<_> = ["1", "2", "3"]
            .map(|seed| {
                let args = ["--data", &data, "--save", &save, "--seed", seed, "--json"];
                scope.spawn(move || json(&train(&[&args[..], &["--world", "2"]].concat())))
            })
            .into_iter()
            .collect();
        for run in runs {
            assert_eq!(run.join().expect("no panic")["steps"], 1);
        }
    });
    json(&emb(&["eval", "--data", &data, "--load", &save, "--json"]));
}

#[test]
fn the_same_number_of_ranks_keeps_what_a_checkpoint_says_of_them() {
    let folder = Folder::new("same");
    let data = folder.file("train.tsv", &rows(64));
    let save = folder.path("model");
    let ranks = ["--world", "4", "--replicas", "2", "--plan", "row-wise"];
    let first = train(&[&["--data", &data, "--save", &save, "--json"][..], &ranks].concat());
    json(&first);
    let onward = ["train", "--load", &save, "--world", "4", "--json"];
    let output = emb(&onward);
    json(&output);
    assert!(stderr(&output).contains("2 x replicas"), "{}", stderr(&output));
    assert!(stderr(&output).contains("row_wise"), "{}", stderr(&output));
    let output = emb(&["train", "--load", &save, "--world", "2", "--json"]);
    json(&output);
    assert!(!stderr(&output).contains("row_wise"), "{}", stderr(&output));
}

#[test]
fn exchange_figures_are_of_training_alone() {
    let folder = Folder::new("figures");
    let data = folder.file("train.tsv", &rows(64));
    let save = folder.path("model");
    let args = ["--data", &data, "--world", "2", "--batch-size", "8", "--json"];
    let alone = json(&train(&args));
    let more = ["--eval", &data, "--eval-every", "3", "--save", &save];
    let saved = json(&train(&[&args[..], &more].concat()));
    for key in ["collectives_per_step", "intra_node_bytes_per_step"] {
        assert_eq!(alone["exchange"][key], saved["exchange"][key], "{key}");
    }
}

#[test]
fn the_health_of_ranks_is_a_line_every_n_steps_and_the_last_look_in_json() {
    let folder = Folder::new("health");
    let data = folder.file("train.tsv", &rows(64));
    let args = ["--data", &data, "--world", "2", "--nodes", "2", "--batch-size", "8"];
    let ranks = ["--plan", "row-wise", "--health", "4", "--json"];
    let output = train(&[&args[..], &ranks].concat());
    let report = json(&output);
    assert_eq!((&report["health"]["step"], &report["health"]["steps"]), (&8.into(), &4.into()));
    let counted = report["health"]["exchange_bytes"]["counted"]["inter_node"].as_f64();
    let planned = report["health"]["exchange_bytes"]["planned"]["inter_node"].as_f64();
    assert!(counted > Some(0.0) && planned > Some(0.0), "{report}");
    let text = stderr(&output);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("health: ")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for words in ["communication exposed ", "waiting ", "between nodes (planned "] {
        assert!(lines[0].contains(words), "{words:?} is missing from: {}", lines[0]);
    }
    let never = train(&[&args[..], &["--health", "0", "--json"]].concat());
    assert_eq!(json(&never)["health"], Value::Null);
    for (value, words) in [("often", "invalid value 'often'"), ("-1", "invalid value '-1'")] {
        refused(&train(&[&args[..], &["--health", value]].concat()), &[words, "--health"]);
    }
    let config = folder.file("bad.toml", "health = \"often\"\n");
    let output = emb(&["train", "--data", &data, "--config", &config]);
    refused(&output, &["bad.toml:1:10", "health"]);
}
