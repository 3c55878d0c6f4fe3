//! Simulating from the command line.

use super::support::{Folder, emb, refused, stderr, stdout};
use serde_json::Value;
use std::process::Output;

const TABLES: &str = "workload,table,rows,dim,pooling\n\
    clicks,ads,4000000,64,20\nclicks,day,7,64,1\nclicks,users,500000,64,1.5\n";

fn simulate(tables: &str, more: &[&str]) -> Output {
    let flags = ["simulate", "--workload", tables, "--topology", "dgx-h100", "--zipf", "1.05"];
    emb(&[&flags[..], more].concat())
}

fn value(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("one JSON object")
}

fn number(point: &Value, key: &str) -> f64 {
    point[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {point}"))
}

#[test]
fn every_number_of_ranks_meets_every_number_of_replicas() {
    let folder = Folder::new("simulate");
    let tables = folder.file("t.csv", TABLES);
    let more = ["--gpus", "8,16,32", "--replicas", "1,2,auto", "--batch-per-rank", "512", "--json"];
    let output = simulate(&tables, &more);
    let report = value(&output);
    assert_eq!((&report["workload"], &report["planner"]), (&"clicks".into(), &"lattice".into()));
    let points = report["points"].as_array().expect("points");
    let gpus: Vec<u64> = points.iter().map(|point| number(point, "gpus") as u64).collect();
    assert_eq!(gpus, [8, 8, 8, 16, 16, 16, 32, 32, 32]);
    let first = number(&points[0], "samples_per_second");
    for point in points {
        assert_eq!(point["feasible"], true, "{point}");
        let (step, speed) = (number(point, "step_seconds"), number(point, "samples_per_second"));
        let samples = 512.0 * number(point, "gpus");
        assert!((speed * step / samples - 1.0).abs() < 1e-9, "{point}");
        assert!((number(point, "scaling") / (speed / first) - 1.0).abs() < 1e-9, "{point}");
        let parts = point["step_parts"].as_object().expect("parts");
        let sum: f64 = parts.values().map(|part| part.as_f64().expect("seconds")).sum();
        assert!((sum / step - 1.0).abs() < 1e-9, "{point}");
        let share = number(point, "comm_share") + number(point, "sync_share");
        assert!((0.0..=1.0).contains(&share), "{point}");
        assert!(number(point, "max_over_mean") >= 1.0 && number(point, "peak_bytes") > 0.0);
        assert!(point["limit"].as_str().is_some_and(|limit| !limit.is_empty()), "{point}");
    }
    for trio in points.chunks(3) {
        assert_eq!((&trio[0]["replicas"], &trio[1]["replicas"]), (&1.into(), &2.into()));
        let found = number(&trio[2], "step_seconds");
        let given = number(&trio[0], "step_seconds");
        assert!(found <= given * 1.001, "free to choose, it is no worse: {found} and {given}");
    }
    assert!(stderr(&output).contains("9/9  32 ranks"), "{}", stderr(&output));
}

#[test]
fn a_point_that_does_not_fit_names_the_table_and_is_no_error() {
    let folder = Folder::new("nofit");
    let tables = folder.file("t.csv", "workload,table,rows,dim,pooling\nw,big,3000000000,128,1\n");
    let more = ["--gpus", "8,64", "--batch-per-rank", "512"];
    let report = value(&simulate(&tables, &[&more[..], &["--json"]].concat()));
    let points = report["points"].as_array().expect("points");
    assert_eq!((&points[0]["feasible"], &points[1]["feasible"]), (&false.into(), &true.into()));
    assert_eq!((&points[0]["limit"], &points[0]["step_seconds"]), (&"memory".into(), &Value::Null));
    let reason = points[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("\"big\"") && reason.contains("short "), "{reason}");
    assert_eq!(points[1]["scaling"], 1.0, "relative to the first point that fits");
    let text = stdout(&simulate(&tables, &more));
    for words in ["8 ranks: table \"big\" does not fit", "samples/s", "output exchange", "memory"] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
}

#[test]
fn a_chart_has_axes_a_legend_and_a_line_for_each_number_of_replicas() {
    let folder = Folder::new("chart");
    let tables = folder.file("t.csv", TABLES);
    let chart = folder.path("scaling.svg");
    let more = ["--gpus", "8,16", "--replicas", "1,2", "--batch-size", "8192", "--chart", &chart];
    let output = simulate(&tables, &more);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(&chart).expect("a chart");
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
    for words in ["clicks, planned by lattice", "ranks", "ideal", "1 replica", "2 replicas", "16"] {
        assert!(text.contains(words), "{words:?} is missing from the chart");
    }
    // Of the ideal, both numbers of replicas, and of each in the legend.
    assert!(text.matches("<polyline").count() >= 6, "{text}");
    assert_eq!(text.matches("<circle").count(), 4);
}

#[test]
fn machines_of_a_file_grow_with_the_ranks_where_units_are_equal() {
    let folder = Folder::new("grow");
    let tables = folder.file("t.csv", TABLES);
    let text = "name = \"lab\"\nranks = 8\nmemory_bytes = 80000000000\nmemory_bandwidth = 2e12\n\
                flops = 3e14\n[[levels]]\nname = \"node\"\nranks = 4\nbandwidth = 3e11\nlatency = 3e-6\n\
                [[levels]]\nname = \"cluster\"\nranks = 8\nbandwidth = 2e10\nlatency = 1e-5\n";
    let lab = folder.file("lab.toml", text);
    let on = |topology: &str, gpus: &str| {
        let flags = ["simulate", "--workload", &tables, "--batch-size", "8192", "--gpus", gpus];
        emb(&[&flags[..], &["--topology", topology, "--json"]].concat())
    };
    let report = value(&on(&lab, "8,16,64"));
    assert_eq!(report["points"][2]["gpus"], 64);
    refused(&on(&lab, "6"), &["\"lab\"", "6 ranks"]);
    let unequal = folder.file("unequal.toml", &text.replacen("ranks = 4", "ranks = [5, 3]", 1));
    assert_eq!(value(&on(&unequal, "8"))["points"][0]["feasible"], true);
    refused(&on(&unequal, "16"), &["\"node\"", "one by one"]);
    refused(&on("dgx-h100", "12"), &["--gpus 12", "8 ranks"]);
    assert_eq!(value(&on("dgx-h100:2", "16"))["points"][0]["gpus"], 16);
    refused(&on("dgx-h100:2", "32"), &["dgx-h100:2 has 16 ranks"]);
    let (node, _) = text.split_once("[[levels]]\nname = \"cluster\"").expect("two levels");
    let node = folder.file("node.toml", &node.replace("ranks = 4", "ranks = 8"));
    assert_eq!(value(&on(&node, "8"))["points"][0]["feasible"], true);
    refused(&on(&node, "16"), &["--gpus 16", "one level"]);
}

#[test]
fn what_a_simulation_cannot_honour_is_refused_by_name() {
    let folder = Folder::new("simrefused");
    let tables = folder.file("t.csv", TABLES);
    let batch = ["--batch-size", "8192"];
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["--gpus"]),
        (&["--gpus", "8,many"], &["--gpus", "many"]),
        (&["--gpus", "8", "--replicas", "atuo"], &["--replicas", "auto"]),
        (&["--gpus", "8", "--replicas", "0"], &["--replicas", "1 or more"]),
        (&["--gpus", "8", "--layout", "strided"], &["--layout", "no effect"]),
        (&["--gpus", "8", "--batch-per-rank", "5"], &["--batch-per-rank", "--batch-size"]),
        (&["--gpus", "8", "--planner", "latice"], &["did you mean \"lattice\"?"]),
        (&["--gpus", "8", "--charts", "x"], &["--charts", "--chart"]),
    ];
    for (flags, words) in cases {
        let output = simulate(&tables, &[&batch[..], flags].concat());
        refused(&output, words);
    }
    let more = ["--gpus", "8", "--replicas", "3", "--json"];
    let report = value(&simulate(&tables, &[&batch[..], &more].concat()));
    assert_eq!(report["points"][0]["feasible"], false, "three do not divide eight: a point");
}
