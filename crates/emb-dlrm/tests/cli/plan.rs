//! Planning from the command line.

use super::support::{Folder, emb, refused, rows, stderr, stdout};
use serde_json::{Value, json};
use std::process::Output;

const TABLES: &str = "workload,table,rows,dim,pooling\n\
    clicks,ads,100000,16,20\nclicks,day,7,16,1\nclicks,users,5000,16,1.5\n\
    other,items,1000,8,1\n";

fn plan(more: &[&str]) -> Output {
    emb(&[&["plan"], more].concat())
}

fn value(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("one JSON object")
}

/// The flags of a plan of the workload `clicks` in `TABLES`.
fn clicks<'a>(tables: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flags = ["--workload", tables, "--workload-name", "clicks", "--batch-size", "512"];
    [&flags[..], &["--topology", "cpu:4"], more].concat()
}

#[test]
fn a_plan_made_from_a_profile_trains_as_any_other() {
    let folder = Folder::new("endtoend");
    let data = folder.file("clicks.tsv", &rows(128));
    let (stats, file) = (folder.path("stats.json"), folder.path("plan.json"));
    let small = ["--rows-per-table", "100", "--dim", "4"];
    let profile = ["profile", "--data", &data, "--out", &stats];
    assert!(emb(&[&profile[..], &small].concat()).status.success());
    let flags = ["--workload", &stats, "--topology", "cpu:4", "--out", &file];
    let more = ["--batch-size", "16", "--for-training", "--json"];
    let report = value(&plan(&[&flags[..], &more].concat()));
    assert_eq!((&report["feasible"], &report["ranks"]), (&true.into(), &4.into()));
    let train = |more: &[&str]| {
        let layers = ["--bottom", "8", "--top", "8", "--batch-size", "16", "--json"];
        value(&emb(&[&["train", "--data", &data], &small[..], &layers, more].concat()))
    };
    let planned = train(&["--world", "4", "--plan", &file]);
    let alone = train(&[]);
    assert_eq!((&planned["steps"], &planned["samples"]), (&alone["steps"], &alone["samples"]));
    let (a, b) = (planned["loss"].as_f64(), alone["loss"].as_f64());
    let (a, b) = (a.expect("a loss"), b.expect("a loss"));
    assert!((a / b - 1.0).abs() < 1e-4, "{a} and {b}");
    let predicted = report["intra_node_bytes_per_rank"].as_f64().expect("bytes");
    let counted = planned["exchange"]["intra_node_bytes_per_step"].as_f64().expect("bytes");
    assert!((predicted / counted - 1.0).abs() < 0.02, "{predicted} predicted, {counted} counted");
}

#[test]
fn a_plan_of_synthetic_data_with_replicas_trains() {
    let folder = Folder::new("replicas");
    let (stats, file) = (folder.path("stats.json"), folder.path("plan.json"));
    let small = ["--data", "synthetic", "--rows-per-table", "100", "--dim", "4"];
    let profile = ["profile", "--out", &stats, "--samples", "1000"];
    assert!(emb(&[&profile[..], &small].concat()).status.success());
    let flags = ["--workload", &stats, "--topology", "cpu:4", "--out", &file, "--json"];
    let more = ["--replicas", "2", "--kinds", "table-wise", "--for-training"];
    let report = value(&plan(&[&flags[..], &more].concat()));
    assert_eq!(report["replicas"], 2);
    let more = ["--bottom", "8", "--top", "8", "--steps", "3", "--world", "4", "--json"];
    let output = emb(&[&["train"], &small[..], &more, &["--plan", &file]].concat());
    assert_eq!(value(&output)["steps"], 3);
    assert!(stderr(&output).contains("2 x replicas"), "{}", stderr(&output));
}

#[test]
fn the_json_of_a_plan_has_every_figure() {
    let folder = Folder::new("json");
    let tables = folder.file("t.csv", TABLES);
    let output = plan(&clicks(&tables, &["--zipf", "1.1", "--json"]));
    let report = value(&output);
    assert_eq!(stdout(&output).lines().count(), 1);
    for key in [
        "planning_seconds",
        "step_seconds",
        "lower_bound_seconds",
        "embark_cost",
        "max_over_mean",
        "inter_node_bytes_per_rank",
        "intra_node_bytes_per_rank",
        "replicas",
    ] {
        assert!(report[key].is_number(), "{key} is missing from {report}");
    }
    for key in ["max_rank", "weights", "state", "buffers"] {
        assert!(report["peak_bytes"][key].is_number(), "{key} is missing from {report}");
    }
    let names: Vec<&Value> =
        report["tables"].as_array().expect("tables").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!("ads"), &json!("day"), &json!("users")]);
    let day = &report["tables"][1]["placement"];
    assert!(day.as_str().is_some_and(|text| !text.is_empty()), "{report}");
    let (step, bound) = (&report["step_seconds"], &report["lower_bound_seconds"]);
    assert!(bound.as_f64() <= step.as_f64(), "{report}");
    assert_eq!((&report["batch"], &report["workload"]), (&512.into(), &"clicks".into()));
}

#[test]
fn every_planner_answers_to_its_name() {
    let folder = Folder::new("names");
    let tables = folder.file("t.csv", TABLES);
    let text = stderr(&plan(&clicks(&tables, &["--planner", "nobody"])));
    let (_, names) = text.trim().split_once("one of: ").expect("a list of names");
    let names: Vec<&str> = names.split(", ").collect();
    for name in ["lattice", "flexshard", "embark", "torchrec", "beam", "random", "greedy-size"] {
        assert!(names.contains(&name), "{name} is missing from: {text}");
    }
    for name in ["greedy-dim", "greedy-lookup", "greedy-size-lookup", "table-row-wise", "auto"] {
        assert!(names.contains(&name), "{name} is missing from: {text}");
    }
    for name in names {
        let report = value(&plan(&clicks(&tables, &["--planner", name, "--json"])));
        assert_eq!((&report["planner"], &report["feasible"]), (&name.into(), &true.into()));
        assert_eq!(report["lower_bound_seconds"].is_number(), name == "lattice", "{name}");
        assert_eq!(report["tables"].as_array().map(Vec::len), Some(3), "{name}");
    }
}

#[test]
fn plans_whose_rows_travel_are_for_training_too() {
    let folder = Folder::new("sequence");
    let text = r#"{"name": "w", "batch": {"global": 64}, "tables": [
        {"name": "seen", "rows": 1000, "dim": 8, "pooling_factor": 20, "pooling": "none"}]}"#;
    let (tables, out) = (folder.file("w.json", text), folder.path("plan.json"));
    let flags = ["--workload", &tables, "--topology", "cpu:4", "--planner", "greedy-size"];
    let output = plan(&[&flags[..], &["--out", &out]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let report = value(&plan(&[&flags[..], &["--for-training", "--json"]].concat()));
    let place = report["tables"][0]["placement"].as_str().expect("words");
    assert!(place.contains("unique"), "{place}");
}

#[test]
fn rows_that_were_measured_to_be_hot_fill_the_tiers_of_a_plan_that_trains() {
    let folder = Folder::new("hot");
    let (stats, file) = (folder.path("stats.json"), folder.path("plan.json"));
    let small = ["--data", "synthetic", "--rows-per-table", "2000", "--dim", "4"];
    let profile = ["profile", "--out", &stats, "--samples", "4000"];
    assert!(emb(&[&profile[..], &small].concat()).status.success());
    let flags = ["--workload", &stats, "--topology", "cpu:4", "--out", &file, "--for-training"];
    let more = ["--planner", "flexshard-unique", "--batch-size", "64", "--json"];
    let output = plan(&[&flags[..], &more].concat());
    let report = value(&output);
    assert_eq!(stderr(&output), "", "every hot row is known");
    let place = report["tables"][0]["placement"].as_str().expect("words");
    assert!(place.contains("data_parallel") && place.contains("hot rows first"), "{place}");
    let read = |path: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
    };
    let (planned, measured) = (read(&file), read(&stats));
    let first = planned["tables"][0]["order"]["hot"].as_array().expect("hot rows");
    let all = measured["tables"][0]["hot"].as_array().expect("hot rows");
    assert!(!first.is_empty());
    assert_eq!(first[..], all[..first.len()]);
    assert_eq!(planned["tables"][0]["tiers"][1]["rows"][0], first.len());

    // Saved by ranks with tiers, gone on with by one process: as if one had done it all.
    let train = |more: &[&str]| {
        let layers = ["--bottom", "8", "--top", "8", "--batch-size", "64", "--steps", "3"];
        value(&emb(&[&["train"], &small[..], &layers, &["--json"], more].concat()))
    };
    let (tiered, alone) = (folder.path("tiered"), folder.path("alone"));
    let tiers = train(&["--world", "4", "--plan", &file, "--save", &tiered]);
    assert_eq!(tiers["steps"], 3);
    train(&["--save", &alone]);
    let loss = |saved: &str| {
        let more = train(&["--load", saved, "--world", "1"]);
        assert_eq!(more["steps"], 6);
        (more["loss"].as_f64().expect("a loss"), more["eval"]["loss"].as_f64().expect("a loss"))
    };
    let (tiered, alone) = (loss(&tiered), loss(&alone));
    assert!((tiered.0 / alone.0 - 1.0).abs() < 1e-5, "{tiered:?} and {alone:?}");
    assert!((tiered.1 / alone.1 - 1.0).abs() < 1e-5, "{tiered:?} and {alone:?}");
}

#[test]
fn tiers_without_hot_rows_to_fill_them_are_told() {
    let folder = Folder::new("tiers");
    let (stats, file) = (folder.path("stats.json"), folder.path("plan.json"));
    let flags = ["--topology", "cpu:4", "--planner", "flexshard", "--out", &file];
    let tables = folder.file("t.csv", TABLES);
    let more = ["--workload-name", "clicks", "--batch-size", "512", "--zipf", "1.2"];
    let output = plan(&[&flags[..], &["--workload", &tables], &more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("\"ads\"") && text.contains("order of frequency"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");

    let small = ["--data", "synthetic", "--rows-per-table", "2000", "--dim", "4"];
    let profile = ["profile", "--out", &stats, "--samples", "4000", "--hot-rows", "2"];
    assert!(emb(&[&profile[..], &small].concat()).status.success());
    let output = plan(&[&flags[..], &["--workload", &stats, "--json"]].concat());
    let report = value(&output);
    let text = stderr(&output);
    assert!(text.contains("\"C1\" and 25 more") && text.contains("to the 2 that"), "{text}");
    let short = report["hot_rows_short"].as_array().expect("tables");
    assert_eq!((short.len(), &short[0]["known"]), (26, &json!(2)));
    assert!(short[0]["wanted"].as_u64() > Some(2), "{report}");
}

#[test]
fn flags_change_what_a_workload_says() {
    let folder = Folder::new("flags");
    let tables = folder.file("t.csv", TABLES);
    let weights = |more: &[&str]| {
        let report = value(&plan(&clicks(&tables, &[&["--json"], more].concat())));
        let peak = &report["peak_bytes"];
        let bytes = |key: &str| peak[key].as_f64().expect("a number");
        (bytes("weights"), bytes("state"), bytes("buffers"))
    };
    let (plain, half) = (weights(&[]), weights(&["--rows", "bf16"]));
    assert_eq!(plain.0, 2.0 * half.0);
    assert_eq!(plain.1, 0.0);
    let adam = weights(&["--optimizer", "adam"]);
    assert_eq!(adam.1, 2.0 * adam.0, "two moments of four bytes a weight");
    assert!(weights(&["--ids", "i32"]).2 < plain.2);
    assert!(weights(&["--outputs", "f16"]).2 < plain.2);
}

#[test]
fn a_plan_in_words_says_time_bytes_and_memory_and_explains_itself() {
    let folder = Folder::new("explain");
    let tables = folder.file("t.csv", TABLES);
    let text = stdout(&plan(&clicks(&tables, &[])));
    for words in ["3 tables", "4 ranks", "max/mean", "between nodes", "fullest rank", "weights"] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
    assert!(!text.contains("data_parallel"), "{text}");
    let text = stdout(&plan(&clicks(&tables, &["--planner", "auto", "--explain"])));
    for words in ["output exchange", "update", "data_parallel", "bandwidth", "look-ups a sample"] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
    for words in ["next best", "what if replicas", "smallest world that fits: 1 rank", "buffers"] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
    let report = value(&plan(&clicks(&tables, &["--explain", "--json"])));
    let tables = report["explanation"]["tables"].as_array().expect("tables");
    assert!(
        tables.iter().all(|table| table["others"].as_array().is_some_and(|all| !all.is_empty()))
    );
    let what_if = report["what_if"]["replicas"].as_array().expect("points");
    let replicas: Vec<&Value> = what_if.iter().map(|point| &point["replicas"]).collect();
    assert_eq!(replicas, [&json!(1), &json!(2), &json!(4)]);
}

#[test]
fn the_smallest_world_is_found_between_nodes() {
    let folder = Folder::new("smallest");
    // Weights of 256 GB: four ranks of 80 GB, so one node; of 1.28 TB: three nodes.
    for (rows, nodes) in [(500_000_000_u64, 1), (2_500_000_000, 3)] {
        let text = format!("workload,table,rows,dim,pooling\nw,big,{rows},128,1\n");
        let tables = folder.file("t.csv", &text);
        let flags = ["--workload", &tables, "--batch-size", "512", "--topology", "dgx-h100:8"];
        let report = value(&plan(&[&flags[..], &["--explain", "--json"]].concat()));
        assert_eq!(report["what_if"]["smallest_world"], 8 * nodes, "{rows} rows");
    }
}

#[test]
fn u30_tables_that_do_not_fit_are_named_with_the_bytes_they_are_short_of() {
    let folder = Folder::new("u30");
    let tables = folder.file("t.csv", "workload,table,rows,dim,pooling\nw,big,3000000000,128,1\n");
    let out = folder.path("plan.json");
    let flags = ["--workload", &tables, "--batch-size", "64", "--topology", "dgx-h100:1"];
    let output = plan(&[&flags[..], &["--out", &out]].concat());
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for words in ["\"big\"", "short 112,000,000,000", "the smallest world for row_wise is 20"] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
    let output = plan(&[&flags[..], &["--out", &out, "--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["feasible"], false);
    assert!(report["reason"].as_str().expect("a reason").contains("\"big\""), "{report}");
    assert!(!std::path::Path::new(&out).exists(), "no plan, no file");
}

#[test]
fn buffers_that_do_not_fit_beside_the_tables_are_refused() {
    let folder = Folder::new("buffers");
    let text = "workload,table,rows,dim,pooling\nw,wide,1000000,1024,4\n";
    let tables = folder.file("t.csv", text);
    let flags = ["--workload", &tables, "--topology", "cpu:2", "--batch-size", "400000000"];
    let output = plan(&[&flags[..], &["--planner", "auto", "--json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stderr(&output);
    for words in ["of buffers", "short ", "\"wide\"", "--batch-size"] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
}

#[test]
fn tables_may_be_given_less_memory_than_there_is() {
    let folder = Folder::new("tablebytes");
    let tables = folder.file("t.csv", TABLES);
    let peak = |more: &[&str]| {
        let report = value(&plan(&clicks(&tables, &[&["--json"], more].concat())));
        let peak = &report["peak_bytes"];
        peak["weights"].as_f64().expect("bytes") + peak["state"].as_f64().expect("bytes")
    };
    assert!(peak(&["--table-bytes", "2MiB"]) <= 2.0 * 1024.0 * 1024.0);
    let output = plan(&clicks(&tables, &["--table-bytes", "1MiB"]));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("\"ads\""), "{}", stderr(&output));
}

#[test]
fn what_a_plan_cannot_honour_is_refused_by_name() {
    let folder = Folder::new("planrefused");
    let tables = folder.file("t.csv", TABLES);
    let cases: &[(&[&str], &[&str])] = &[
        (&["--planner", "latice"], &["latice", "did you mean \"lattice\"?"]),
        (&["--kinds", "row-wice"], &["--kinds", "row_wise"]),
        (&["--pin", "ads"], &["--pin", "TABLE=POSITION"]),
        (&["--pin", "adz=1"], &["\"adz\""]),
        (&["--pin", "ads=9"], &["\"ads\"", "position 9", "4 ranks"]),
        (&["--pin", "ads=1", "--pin", "ads=2"], &["ads", "pinned"]),
        (&["--layout", "contiguous"], &["--replicas"]),
        (&["--replicas", "3"], &["3 replicas", "4 ranks"]),
        (&["--replicas", "2", "--max-replicas", "2"], &["--replicas", "--max-replicas"]),
        (&["--reserve-bytes", "4GB"], &["--reserve-bytes", "GiB"]),
        (&["--objective", "sped"], &["--objective", "step-seconds"]),
        (&["--outputs", "f61"], &["f61", "f16"]),
        (&["--zipf", "99"], &["99"]),
        (&["--zipf", "1", "--stats", "x"], &["--zipf", "--stats"]),
        (&["--explian"], &["--explian", "--explain"]),
    ];
    for (flags, words) in cases {
        refused(&plan(&clicks(&tables, flags)), words);
    }
    refused(&plan(&["--workload", &tables]), &["--topology"]);
}

#[test]
fn a_topology_is_refused_with_the_nearest_preset_or_the_line() {
    let folder = Folder::new("topology");
    let tables = folder.file("t.csv", "workload,table,rows,dim,pooling\nw,t,1000,8,1\n");
    let good = "name = \"lab\"\nranks = 4\nmemory_bytes = 1000000000\nmemory_bandwidth = 1e11\n\
                flops = 1e12\n[[levels]]\nname = \"node\"\nranks = 4\nbandwidth = 1e10\nlatency = 1e-6\n";
    let on = |topology: &str| {
        plan(&["--workload", &tables, "--batch-size", "64", "--topology", topology, "--json"])
    };
    assert_eq!(value(&on(&folder.file("lab.toml", good)))["topology"], "lab");
    let misspelt = folder.file("bad.toml", &good.replace("latency", "latancy"));
    refused(&on(&misspelt), &["bad.toml:10:1", "did you mean \"latency\"?"]);
    let parted = folder.file("parted.toml", &good.replacen("ranks = 4", "ranks = 6", 1));
    refused(&on(&parted), &["\"lab\"", "6 ranks"]);
    let json = folder.file("bad.json", "{\n  \"name\": \"lab\",\n  \"ranks\": true\n}");
    refused(&on(&json), &["bad.json:3:"]);
    refused(&on("dgx-h10:2"), &["did you mean \"dgx-h100\"?"]);
    refused(&on("dgx-h100"), &["how many", "dgx-h100:2"]);
    refused(&on("cpu:0"), &["1..="]);
    refused(&on("absent.toml"), &["no file absent.toml"]);
}

#[test]
fn a_list_of_tables_is_refused_by_line_and_column() {
    let folder = Folder::new("csv");
    let on = |text: &str, more: &[&str]| {
        let file = folder.file("t.csv", text);
        let flags = ["--workload", &file, "--topology", "cpu:2", "--json"];
        plan(&[&flags[..], more].concat())
    };
    let batch = ["--batch-size", "64"];
    let head = "workload,table,rows,dim,pooling\n";
    let line = |line: &str| format!("{head}w,first,10,8,1\n{line}\n");
    refused(&on(&line("w,t,many,8,1"), &batch), &["t.csv:3: column 3"]);
    refused(&on(&line("w,t,10,8"), &batch), &["t.csv:3: 4 fields"]);
    refused(&on(&line("w,first,10,8,1"), &batch), &["\"first\""]);
    refused(&on(&line("w,t,0,8,1"), &batch), &["\"t\"", "0 rows"]);
    refused(&on("workload,table,rowz,dim,pooling\n", &batch), &["t.csv:1", "\"rows\""]);
    refused(&on("workload,table,rows,dim\n", &batch), &["t.csv:1", "pooling"]);
    refused(&on(head, &batch), &["no tables"]);
    refused(&on(&line("w,t,10,8,1"), &[]), &["--batch-size"]);
    refused(&on(TABLES, &batch), &["2 workloads", "clicks", "other"]);
    let misspelt = ["--batch-size", "64", "--workload-name", "click"];
    refused(&on(TABLES, &misspelt), &["did you mean \"clicks\"?"]);
    let file = folder.file("two.csv", TABLES);
    let chosen = format!("{file}#other");
    let flags = ["--workload", &chosen, "--topology", "cpu:2", "--batch-size", "64", "--json"];
    assert_eq!(value(&plan(&flags))["tables"][0]["name"], "items");
}

#[test]
fn workloads_are_read_from_json_and_toml_alike() {
    let folder = Folder::new("formats");
    let toml = "name = \"w\"\nbatch = { per_rank = 32 }\naccess = { zipf = { exponent = 1.05 } }\n\
                [[tables]]\nname = \"ads\"\nrows = 1000\ndim = 8\npooling_factor = 2.5\n";
    let json = r#"{"name": "w", "batch": {"per_rank": 32}, "access": {"zipf": {"exponent": 1.05}},
        "tables": [{"name": "ads", "rows": 1000, "dim": 8, "pooling_factor": 2.5}]}"#;
    let of = |file: &str| {
        let mut report = value(&plan(&["--workload", file, "--topology", "cpu:2", "--json"]));
        report["planning_seconds"] = Value::Null;
        report
    };
    let (toml, json) = (folder.file("w.toml", toml), folder.file("w.json", json));
    assert_eq!(of(&toml), of(&json));
    assert_eq!(of(&toml)["batch"], 64);
    let bad = folder
        .file("bad.json", "{\"name\": \"w\",\n \"batch\": {\"global\": 4},\n \"tabels\": []}");
    let flags = ["--workload", &bad, "--topology", "cpu:2"];
    refused(&plan(&flags), &["bad.json:3:", "did you mean \"tables\"?"]);
    let flags = ["--workload", &json, "--workload-name", "w", "--topology", "cpu:2"];
    refused(&plan(&flags), &["no effect"]);
    refused(&plan(&["--workload", "absent", "--topology", "cpu:2"]), &["absent"]);
}

#[test]
fn measured_look_ups_are_taken_by_name() {
    let folder = Folder::new("stats");
    let data = folder.file("clicks.tsv", &rows(60));
    let stats = folder.path("stats.json");
    let profile = ["profile", "--data", &data, "--rows-per-table", "50", "--out", &stats];
    assert!(emb(&profile).status.success());
    let on = |names: &[&str]| {
        let lines: Vec<String> = names.iter().map(|name| format!("w,{name},51,8,1\n")).collect();
        let text = "workload,table,rows,dim,pooling\n".to_owned() + &lines.concat();
        let tables = folder.file("t.csv", &text);
        let flags = ["--workload", &tables, "--batch-size", "64", "--topology", "cpu:2"];
        plan(&[&flags[..], &["--stats", &stats, "--json"]].concat())
    };
    assert_eq!(value(&on(&["C1", "C7"]))["tables"][1]["name"], "C7");
    refused(&on(&["C1", "CC7"]), &["\"CC7\"", "nearest"]);
}

#[test]
fn a_difference_of_plans_names_tables_and_both_placements() {
    let folder = Folder::new("diff");
    let tables = folder.file("t.csv", TABLES);
    let make = |name: &str, more: &[&str]| {
        let path = folder.path(name);
        let flags = clicks(&tables, more);
        let more = ["--planner", "auto", "--out", &path, "--json"];
        value(&plan(&[&flags[..], &more].concat()));
        path
    };
    let (a, b) = (make("a.json", &["--pin", "ads=1"]), make("b.json", &["--pin", "ads=3"]));
    let text = stdout(&plan(&["diff", &a, &a]));
    assert_eq!(text.trim(), "3 tables, all placed alike");
    let report = value(&plan(&["diff", &a, &b, "--json"]));
    let ads = json!({ "table": "ads", "first": "table_wise on 1", "second": "table_wise on 3" });
    assert_eq!(report["tables"][0], ads);
    let text = stdout(&plan(&["diff", &a, &b]));
    assert!(text.contains("ads  table_wise on 1  ->  table_wise on 3"), "{text}");

    let flags = ["--workload", &tables, "--workload-name", "other", "--batch-size", "512"];
    let other = folder.path("other.json");
    value(&plan(&[&flags[..], &["--topology", "cpu:4", "--out", &other, "--json"]].concat()));
    refused(&plan(&["diff", &a, &other]), &["\"items\"", "different tables"]);
    let twice = std::fs::read_to_string(&a).expect("a plan").replace("\"users\"", "\"ads\"");
    refused(&plan(&["diff", &folder.file("twice.json", &twice), &a]), &["twice.json", "\"ads\""]);
    refused(&plan(&["diff", &a, &folder.file("no.json", "{\n\"version\": }")]), &["no.json:2:"]);
    refused(&plan(&["diff", &a]), &["B.json"]);
}
