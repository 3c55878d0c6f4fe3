//! Measuring look-ups from the command line.

use super::support::{Folder, emb, refused, rows, stderr, stdout};
use serde_json::Value;
use std::io::Write as _;
use std::process::Output;

fn profile(more: &[&str]) -> Output {
    emb(&[&["profile", "--rows-per-table", "50"][..], more].concat())
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("one JSON object")
}

fn read(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

#[test]
fn a_profile_counts_hashed_ids_by_table_and_is_a_workload() {
    let folder = Folder::new("profile");
    let data = folder.file("clicks.tsv", &rows(200));
    let out = folder.path("stats.json");
    let report = json(&profile(&["--data", &data, "--out", &out, "--dim", "8", "--json"]));
    assert_eq!(
        (&report["samples"], &report["skipped_rows"]),
        (&200.into(), &serde_json::json!({}))
    );
    let tables = report["tables"].as_array().expect("tables");
    assert_eq!(tables.len(), 26);
    // C1 is a bit; C2 is (12 i) mod 97 of 200 rows, of which ids 50..97 wrap.
    assert_eq!(tables[0]["seen"], serde_json::json!({ "exact": 2 }));
    assert_eq!(tables[1]["seen"], serde_json::json!({ "exact": 50 }));
    for table in tables {
        assert_eq!((&table["rows"], &table["lookups"]), (&51.into(), &200.into()));
        assert_eq!(table["pooling_factor"], 1.0);
    }
    let stats = read(&out);
    assert_eq!((&stats["name"], &stats["batch"]["global"]), (&"clicks".into(), &128.into()));
    assert_eq!(stats["state"], serde_json::json!({ "per_row": 4, "per_element": 0 }));
    assert_eq!(
        (&stats["tables"][0]["name"], &stats["tables"][0]["dim"]),
        (&"C1".into(), &8.into())
    );
    let buckets = stats["tables"][0]["access"]["histogram"].as_array().expect("buckets");
    let sum = |key: &str| -> u64 {
        buckets.iter().map(|bucket| bucket[key].as_u64().expect("a number")).sum()
    };
    assert_eq!((sum("rows"), sum("lookups")), (2, 200));
    // 12 i mod 97 of 200 rows has every id twice, so that every row is looked up twice.
    assert_eq!((&tables[0]["hot"], &tables[1]["hot"]), (&2.into(), &50.into()));
    let hot = |stats: &Value| stats["tables"][1]["hot"].as_array().cloned();
    let all = hot(&stats).expect("rows");
    assert_eq!(all.len(), 50);
    let flags = ["--data", &data, "--out", &out, "--json", "--hot-rows"];
    json(&profile(&[&flags[..], &["3"]].concat()));
    assert_eq!(hot(&read(&out)).expect("rows")[..], all[..3]);
    json(&profile(&[&flags[..], &["0"]].concat()));
    assert_eq!(hot(&read(&out)), None);
}

#[test]
fn a_profile_in_words_aligns_a_line_for_each_table() {
    let folder = Folder::new("words");
    let data = folder.file("clicks.tsv", &rows(60));
    let out = folder.path("stats.json");
    let output = profile(&["--data", &data, "--out", &out]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    for words in ["written to", "60 in", "table", "look-ups", "top 10 %", "C26"] {
        assert!(text.contains(words), "{words:?} is missing from: {text}");
    }
    let of_tables = |line: &&str| line.starts_with('C') || line.starts_with("table");
    let widths: Vec<usize> = text.lines().filter(of_tables).map(str::len).collect();
    assert_eq!(widths.len(), 27);
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
}

#[test]
fn a_profile_takes_the_file_of_a_run_and_compressed_data_is_no_other() {
    let folder = Folder::new("config");
    let data = folder.file("clicks.tsv", &rows(64));
    let text = format!(
        "data = [{data:?}]\nbatch-size = 16\nworld = 4\nreplicas = 2\nepochs = 3\nlr = 0.5\n\
         optimizer = \"adam\"\ndim = 4\n[[table]]\nname = \"shared\"\nrows = 97\n\
         [[feature]]\nname = \"C1\"\ntable = \"shared\"\n\
         [[feature]]\nname = \"C2\"\ntable = \"shared\"\n"
    );
    let config = folder.file("run.toml", &text);
    let out = folder.path("stats.json");
    let report = json(&emb(&["profile", "--config", &config, "--out", &out, "--json"]));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(rows(64).as_bytes()).expect("in memory");
    let packed = packed.finish().expect("in memory");
    let gz = folder.path("clicks.tsv.gz");
    std::fs::write(&gz, packed).expect("a file");
    let flags = ["profile", "--config", &config, "--data", &gz, "--out", &out, "--json"];
    assert_eq!(json(&emb(&flags))["tables"], report["tables"]);
    assert_eq!(report["tables"][0]["lookups"], 128, "two features share the table");
    let stats = read(&out);
    assert_eq!(stats["tables"][0]["features"], serde_json::json!(["C1", "C2"]));
    assert_eq!(stats["tables"][0]["pooling_factor"], 1.0, "of one bag of one feature");
    assert_eq!(stats["batch"]["global"], 16);
    assert_eq!(stats["state"], serde_json::json!({ "per_row": 0, "per_element": 8 }));
}

#[test]
fn synthetic_data_ends_where_it_is_told_to() {
    let folder = Folder::new("synthetic");
    let out = folder.path("stats.json");
    let flags = ["--data", "synthetic", "--out", &out, "--samples", "5000", "--json"];
    let report = json(&profile(&flags));
    assert_eq!(report["samples"], 5000);
    let first = &report["tables"][0];
    assert!(first["top_10_percent"].as_f64() > first["top_1_percent"].as_f64(), "{first}");
}

#[test]
fn a_bad_line_is_named_and_nothing_is_written() {
    let folder = Folder::new("badline");
    let data = folder.file("clicks.tsv", &(rows(9) + "not a row\n"));
    let out = folder.path("stats.json");
    let output = profile(&["--data", &data, "--out", &out]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("clicks.tsv, line 10"), "{}", stderr(&output));
    assert!(!std::path::Path::new(&out).exists());
    let report = json(&profile(&["--data", &data, "--out", &out, "--bad-rows", "skip", "--json"]));
    assert_eq!((&report["samples"], &report["skipped_rows"]["fields"]), (&9.into(), &1.into()));
}

#[test]
fn what_a_profile_cannot_honour_is_refused_before_it_reads() {
    let folder = Folder::new("refused");
    let data = folder.file("clicks.tsv", &rows(9));
    let out = folder.path("stats.json");
    let nowhere = folder.path("no/such/stats.json");
    let cases: &[(&[&str], &[&str])] = &[
        (&["--data", &data], &["--out"]),
        (&["--out", &out], &["--data"]),
        (&["--data", &data, "--out", &nowhere], &["no such folder", "no/such"]),
        (&["--data", &data, "--out", &out, "--memory", "1GB"], &["--memory", "GiB"]),
        (&["--data", &data, "--out", &out, "--memory", "1MiB"], &["--memory", "26 tables"]),
        (&["--data", &data, "--out", &out, "--samples", "0"], &["--samples"]),
        (&["--data", &data, "--out", &out, "--memroy", "1"], &["--memroy", "--memory"]),
        (&["--data", &data, "--out", &out, "--optimizer", "adma"], &["adma", "adam"]),
    ];
    for (flags, words) in cases {
        refused(&profile(flags), words);
    }
}
