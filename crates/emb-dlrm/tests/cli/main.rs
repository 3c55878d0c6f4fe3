//! The `emb` program as a person meets it.

mod calibrate;
mod devices;
mod doctor;
mod launched;
mod plan;
mod profile;
mod ranks;
mod simulate;
mod support;

use std::path::Path;
use std::process::Output;
use support::{Folder, emb, refused, rows, stderr, stdout};

/// Every line of a text, changed.
fn lines(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(change).collect::<Vec<_>>().join("\n") + "\n"
}

/// Small tables and layers: these tests are about words, not about learning.
const SMALL: &[&str] =
    &["--rows-per-table", "100", "--dim", "4", "--bottom", "8", "--top", "8", "--threads", "1"];

fn train(more: &[&str]) -> Output {
    let mut args = vec!["train"];
    args.extend_from_slice(SMALL);
    args.extend_from_slice(more);
    emb(&args)
}

#[test]
fn u41_a_misspelt_flag_is_an_error_with_the_nearest_match() {
    refused(&train(&["--data", "synthetic", "--bach-size", "5"]), &["--bach-size", "--batch-size"]);
}

#[test]
fn u41_a_misspelt_word_is_an_error_with_the_nearest_match() {
    refused(&train(&["--data", "synthetic", "--optimizer", "adagard"]), &["adagard", "adagrad"]);
}

#[test]
fn u41_a_misspelt_key_of_a_file_is_an_error_with_line_and_nearest_match() {
    let folder = Folder::new("key");
    let file = folder.file("c.toml", "data = [\"synthetic\"]\nbatch-sise = 4\n");
    refused(
        &emb(&["train", "--config", &file]),
        &["c.toml:2:1: \"batch-sise\": did you mean \"batch-size\"?"],
    );
    let file = folder.file("t.toml", "data = [\"synthetic\"]\n[[table]]\nname = \"a\"\nrowz = 4\n");
    refused(&emb(&["train", "--config", &file]), &["t.toml:4:1: \"rowz\": did you mean \"rows\"?"]);
}

#[test]
fn u41_synthetic_data_only_when_asked_for() {
    refused(&train(&[]), &["--data", "synthetic"]);
}

#[test]
fn u41_the_given_file_is_the_one_that_trains_and_is_named_with_its_rows() {
    let folder = Folder::new("given");
    let file = folder.file("f.txt", &rows(300));
    let output = train(&["--data", &file, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains(&file), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert_eq!(report["samples"], 300);
    assert_eq!(report["steps"], 3);
    assert!(report["eval"].is_null());
    let missing = train(&["--data", &folder.path("absent.txt")]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("absent.txt"), "{}", stderr(&missing));
}

#[test]
fn u41_flags_without_effect_are_refused() {
    let folder = Folder::new("void");
    let file = folder.file("f.txt", &rows(10));
    let cases: &[(&[&str], &str)] = &[
        (&["--data", "synthetic", "--epochs", "2"], "--epochs"),
        (&["--data", "synthetic", "--eval", "x"], "--eval"),
        (&["--data", "synthetic", "--bad-rows", "skip"], "--bad-rows"),
        (&["--data", "synthetic", "--dcn-layers", "2"], "--dcn-layers"),
        (&["--data", "synthetic", "--decay", "l2"], "--decay"),
        (&["--data", "synthetic", "--rounding", "nearest"], "--rounding"),
        (
            &[
                "--data",
                "synthetic",
                "--optimizer",
                "sgd",
                "--dense-optimizer",
                "sgd",
                "--eps",
                "1",
            ],
            "--eps",
        ),
        (&["--data", &file, "--epochs", "2", "--steps", "2"], "--epochs"),
        (&["--data", &file, "--eval-every", "2"], "--eval-every"),
        (&["--data", &file, "synthetic"], "synthetic"),
    ];
    for (flags, name) in cases {
        refused(&train(flags), &[name]);
    }
}

#[test]
fn u18_decay_that_a_rule_does_not_take_is_refused_at_start() {
    let output = train(&["--data", "synthetic", "--max-norm", "-1"]);
    refused(&output, &["max_norm"]);
}

#[test]
fn options_of_a_file_are_used_and_flags_win() {
    let folder = Folder::new("merge");
    let data = folder.file("f.txt", &rows(64));
    let config = folder.file(
        "c.toml",
        &format!(
            "data = [{data:?}]\nbatch-size = 8\nlr = 0.5\ndim = 4\nbottom = [8]\ntop = [8]\nthreads = 1\n\
             [[table]]\nname = \"shared\"\nrows = 97\noptimizer = \"adagrad\"\ninit = 0.0\n\
             [[feature]]\nname = \"C1\"\ntable = \"shared\"\n\
             [[feature]]\nname = \"other\"\ncolumn = \"C2\"\ntable = \"shared\"\npooling = \"mean\"\n"
        ),
    );
    let save = folder.path("model");
    let output =
        emb(&["train", "--config", &config, "--batch-size", "16", "--save", &save, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert_eq!(report["steps"], 4, "the flag's batch size");
    let inspected = emb(&["inspect", "--load", &save, "--json"]);
    let manifest: serde_json::Value =
        serde_json::from_str(stdout(&inspected).trim()).expect("JSON");
    let tensors = manifest["tensors"].as_array().expect("tensors");
    let shape = |name: &str| {
        let tensor = tensors.iter().find(|tensor| tensor["name"] == name);
        tensor.unwrap_or_else(|| panic!("no {name}"))["shape"].clone()
    };
    assert_eq!(shape("shared/weight"), serde_json::json!([98, 4]));
    assert_eq!(shape("shared/sum"), serde_json::json!([98, 4]));
    assert_eq!(manifest["options"]["lr"], 0.5);
}

#[test]
fn a_saved_model_scores_as_it_did_and_predicts_in_order_without_labels() {
    let folder = Folder::new("score");
    let data = folder.file("f.txt", &rows(200));
    let save = folder.path("model");
    let output = train(&["--data", &data, "--eval", &data, "--save", &save, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    let output = emb(&["eval", "--data", &data, "--load", &save, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let again: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert_eq!(report["eval"], again["eval"]);

    let labelled = stdout(&emb(&["predict", "--data", &data, "--load", &save]));
    let scores: Vec<f64> = labelled.lines().map(|line| line.parse().expect("a score")).collect();
    assert_eq!(scores.len(), 200);
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
    let bare = lines(&rows(200), |line| line[2..].to_owned());
    let bare = folder.file("bare.txt", &bare);
    let output = emb(&["predict", "--data", &bare, "--load", &save, "--batch-size", "7"]);
    assert_eq!(labelled, stdout(&output), "{}", stderr(&output));
}

#[test]
fn training_in_two_parts_equals_training_at_once() {
    let folder = Folder::new("parts");
    let all = rows(256);
    let middle = all.match_indices('\n').nth(127).expect("256 lines").0 + 1;
    let (half, rest) = (all[..middle].to_owned(), all[middle..].to_owned());
    let (all, half, rest) = (
        folder.file("all.txt", &all),
        folder.file("half.txt", &half),
        folder.file("rest.txt", &rest),
    );
    for rule in ["row-wise-adagrad", "adagrad", "adam", "row-wise-adam", "sgd"] {
        let flags =
            ["--batch-size", "32", "--optimizer", rule, "--dense-optimizer", "adam", "--json"];
        let run = |more: &[&str]| {
            let output = train(&[&flags[..], more].concat());
            assert!(output.status.success(), "{}", stderr(&output));
        };
        let (once, first, second) =
            (folder.path("once"), folder.path("first"), folder.path("second"));
        run(&["--data", &all, "--save", &once]);
        run(&["--data", &half, "--save", &first]);
        run(&["--data", &rest, "--load", &first, "--save", &second]);
        let tensors = |dir: &str| {
            let output = emb(&["inspect", "--load", dir, "--json"]);
            let manifest: serde_json::Value =
                serde_json::from_str(stdout(&output).trim()).expect("JSON");
            (manifest["step"].clone(), manifest["tensors"].clone())
        };
        assert_eq!(tensors(&once), tensors(&second), "{rule}: every tensor, bit for bit");
    }
}

#[test]
fn u22_a_loss_that_is_not_finite_stops_the_run_by_name_and_writes_no_checkpoint() {
    let folder = Folder::new("nan");
    let data = folder.file("f.txt", &rows(400));
    let save = folder.path("model");
    let good = train(&["--data", &data, "--save", &save]);
    assert!(good.status.success(), "{}", stderr(&good));
    let before = std::fs::read(Path::new(&save).join("manifest.json")).expect("a manifest");
    let flags = ["--data", &data, "--lr", "1e30", "--dense-lr", "1e30", "--save", &save, "--json"];
    let output = train(&[&flags[..], &["--optimizer", "sgd", "--dense-optimizer", "sgd"]].concat());
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for word in ["step ", "loss is", "1e30", "first non-finite tensor: "] {
        assert!(text.contains(word), "{word:?} is missing from: {text}");
    }
    assert_eq!(before, std::fs::read(Path::new(&save).join("manifest.json")).expect("a manifest"));
    let output = emb(&["eval", "--data", &data, "--load", &save, "--json"]);
    assert!(output.status.success(), "the earlier checkpoint loads: {}", stderr(&output));
}

#[test]
fn u39_one_class_only_leaves_auc_undefined_and_exits_well() {
    let folder = Folder::new("oneclass");
    let data = folder.file("f.txt", &rows(128));
    let ones = lines(&rows(20), |line| format!("1{}", &line[1..]));
    let ones = folder.file("ones.txt", &ones);
    let output = train(&["--data", &data, "--eval", &ones, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert!(report["eval"]["auc"].is_null());
    assert_eq!(report["eval"]["rows"], 20);
    let text = stderr(&output);
    assert!(text.contains("20 positive") && text.contains("0 negative"), "{text}");
}

#[test]
fn json_prints_one_object_and_nothing_else() {
    let output = train(&["--data", "synthetic", "--steps", "3", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    let report: serde_json::Value = serde_json::from_str(text.trim()).expect("JSON");
    for key in ["steps", "samples", "loss", "samples_per_second", "eval", "teacher_auc"] {
        assert!(report.get(key).is_some(), "{key} is missing from {text}");
    }
    assert_eq!(report["eval"]["rows"], 50_000);
    assert!(report["eval"]["auc"].is_number() && report["eval"]["normalized_entropy"].is_number());
}

#[test]
fn a_damaged_checkpoint_is_refused_by_file_and_tensor() {
    let folder = Folder::new("damage");
    let data = folder.file("f.txt", &rows(64));
    let save = folder.path("model");
    assert!(train(&["--data", &data, "--save", &save]).status.success());
    let file = std::fs::read_dir(&save)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .expect("a file");
    let mut bytes = std::fs::read(&file).expect("bytes");
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    std::fs::write(&file, &bytes).expect("written");
    let output = emb(&["eval", "--data", &data, "--load", &save]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("sha256") && text.contains("C26/"), "{text}");
    bytes.truncate(bytes.len() - 3);
    std::fs::write(&file, &bytes).expect("written");
    let text = stderr(&emb(&["eval", "--data", &data, "--load", &save]));
    assert!(text.contains("truncated"), "{text}");
}

#[test]
fn a_checkpoint_of_another_shape_is_refused_with_both_shapes() {
    let folder = Folder::new("shape");
    let data = folder.file("f.txt", &rows(64));
    let save = folder.path("model");
    assert!(train(&["--data", &data, "--save", &save]).status.success());
    let output = emb(&[
        "train",
        "--data",
        &data,
        "--load",
        &save,
        "--rows-per-table",
        "50",
        "--dim",
        "4",
        "--bottom",
        "8",
        "--top",
        "8",
    ]);
    let text = stderr(&output);
    assert!(!output.status.success());
    assert!(
        text.contains("C1/weight") && text.contains("[101, 4]") && text.contains("[51, 4]"),
        "{text}"
    );
}

#[test]
fn inspect_names_rows_bytes_and_check_sum() {
    let folder = Folder::new("inspect");
    let data = folder.file("f.txt", &rows(10));
    let output = emb(&["inspect", "--data", &data]);
    let text = stdout(&output);
    for word in ["sha256", "rows", "C26", "I13", "10"] {
        assert!(text.contains(word), "{word:?} is missing from: {text}");
    }
}

#[test]
fn u41_every_flag_of_the_readme_is_in_the_help() {
    let readme = include_str!("../../README.md");
    let root = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"))
        .expect("the README");
    let commands = [
        "train",
        "eval",
        "predict",
        "inspect",
        "profile",
        "plan",
        "simulate",
        "launch",
        "doctor",
        "calibrate",
    ];
    let helps: String = commands.iter().map(|command| stdout(&emb(&[command, "--help"]))).collect();
    let cargo = [
        "--release",
        "--workspace",
        "--example",
        "--package",
        "--bench",
        "--features",
        "--no-default-features",
        "--all-features",
        "--bin",
        "--test",
        "--nocapture",
    ];
    for line in readme.lines().chain(root.lines()) {
        for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
            if word.len() > 2 && word.starts_with("--") && !word[2..].starts_with('-') {
                let known = cargo.contains(&word) || helps.contains(word);
                assert!(known, "{word} of a README is in no --help");
            }
        }
    }
}

#[test]
fn thread_counts_change_no_bit() {
    let folder = Folder::new("threads");
    let data = folder.file("f.txt", &rows(300));
    let digest = |threads: &str| {
        let save = folder.path(&format!("model-{threads}"));
        let output = emb(&[
            "train",
            "--data",
            &data,
            "--save",
            &save,
            "--threads",
            threads,
            "--batch-size",
            "64",
            "--dim",
            "8",
            "--rows-per-table",
            "50",
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        let output = emb(&["inspect", "--load", &save, "--json"]);
        let manifest: serde_json::Value =
            serde_json::from_str(stdout(&output).trim()).expect("JSON");
        manifest["tensors"].clone()
    };
    assert_eq!(digest("1"), digest("2"));
    assert_eq!(digest("2"), digest("2"));
}

#[test]
fn values_that_are_no_numbers_are_refused_by_name_from_files_and_flags_alike() {
    let folder = Folder::new("nonumber");
    let data = folder.file("f.txt", &rows(10));
    let head = format!("data = [{data:?}]\ndim = 4\nbottom = [8]\ntop = [8]\n");
    for (line, name) in [
        ("lr = nan", "lr"),
        ("max-norm = inf", "max_norm"),
        ("[[table]]\nname = \"C1\"\ninit = nan", "init"),
        ("[[table]]\nname = \"C1\"\ninit = 1e39", "init"),
        ("[[table]]\nname = \"C1\"\ninit = [0.0, 1e38, 2.0]", "init"),
        ("[[table]]\nname = \"C1\"\ninit = 70000.0\ntype = \"f16\"", "init"),
        ("[[table]]\nname = \"C1\"\nlr = nan", "lr"),
        ("[[table]]\nname = \"C1\"\n[[table]]\nname = \"C1\"", "two [[table]]s"),
        ("[[table]]\nname = \"C1\"\nlr = 0.1\noptimizer = \"sgd\"", "--lr"),
    ] {
        let file = folder.file("c.toml", &format!("{head}{line}\n"));
        let mut args = vec!["train", "--config", &file];
        if name == "--lr" {
            args.extend(["--lr", "0.5"]);
        }
        refused(&emb(&args), &[name]);
    }
    let file = folder.file("c.toml", &head);
    refused(&emb(&["train", "--config", &file, "--lr", "NaN"]), &["--lr"]);
}

#[test]
fn a_length_on_the_command_line_displaces_that_of_the_file() {
    let folder = Folder::new("length");
    let data = folder.file("f.txt", &rows(64));
    let text = format!(
        "data = [{data:?}]\nepochs = 3\ndim = 4\nbottom = [8]\ntop = [8]\nbatch-size = 32\n"
    );
    let file = folder.file("c.toml", &text);
    let output = emb(&["train", "--config", &file, "--steps", "1", "--json"]);
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert_eq!(report["steps"], 1);
}

#[test]
fn saving_leaves_other_files_alone_and_refuses_a_folder_of_another_program() {
    let folder = Folder::new("foreign");
    let data = folder.file("f.txt", &rows(64));
    let save = folder.path("model");
    std::fs::create_dir(&save).expect("a folder");
    let foreign = Path::new(&save).join("model-00001-of-00002.safetensors");
    std::fs::write(&foreign, b"mine").expect("a file");
    for _ in 0..2 {
        assert!(train(&["--data", &data, "--save", &save]).status.success());
    }
    assert_eq!(std::fs::read(&foreign).expect("still there"), b"mine");
    std::fs::write(Path::new(&save).join("manifest.json"), b"{\"mine\": 1}").expect("a file");
    let output = train(&["--data", &data, "--save", &save]);
    assert!(
        !output.status.success() && stderr(&output).contains("another folder"),
        "{}",
        stderr(&output)
    );
    let text = stderr(&train(&["--data", &data, "--save", &data]));
    assert!(text.contains("creating") && !text.contains("step "), "before any training: {text}");
}

#[test]
fn a_run_that_would_train_on_nothing_is_an_error() {
    let folder = Folder::new("nothing");
    let data = folder.file("f.txt", &rows(64));
    let output = train(&["--data", &data, "--batch-size", "100", "--drop-last", "--json"]);
    refused(&output, &["nothing was trained", "--drop-last"]);
}

#[test]
fn a_resumed_run_goes_on_in_the_middle_of_an_epoch() {
    let folder = Folder::new("middle");
    let data = folder.file("f.txt", &rows(100));
    let (once, part, rest) = (folder.path("once"), folder.path("part"), folder.path("rest"));
    let run = |more: &[&str]| {
        let output = train(&[&["--data", &data, "--batch-size", "16"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    };
    run(&["--steps", "11", "--save", &once]);
    run(&["--steps", "3", "--save", &part]);
    run(&["--steps", "8", "--load", &part, "--save", &rest]);
    let tensors = |dir: &str| {
        let output = emb(&["inspect", "--load", dir, "--json"]);
        let manifest: serde_json::Value =
            serde_json::from_str(stdout(&output).trim()).expect("JSON");
        (manifest["samples"].clone(), manifest["row"].clone(), manifest["tensors"].clone())
    };
    assert_eq!(tensors(&once), tensors(&rest));
}

#[test]
fn the_last_step_is_saved_once_and_a_run_that_is_done_says_so() {
    let (small, one) = SMALL.split_at(SMALL.len() - 2);
    for ranks in [one, &["--world", "2", "--threads-per-rank", "1"]] {
        let folder = Folder::new("once");
        let data = folder.file("f.txt", &rows(48));
        let save = folder.path("model");
        let run = |more: &[&str]| {
            let flags = ["--data", &data, "--batch-size", "16", "--save", &save];
            let output = emb(&[&["train"], small, &flags[..], ranks, more].concat());
            assert!(output.status.success(), "{}", stderr(&output));
            stderr(&output)
        };
        let text = run(&["--save-every", "1"]);
        let saved: Vec<&str> = text.lines().filter(|line| line.contains("  saved: ")).collect();
        assert_eq!(saved.len(), 3, "{saved:?}");
        // It is over: what goes on reads from the beginning.
        let output = emb(&["inspect", "--load", &save, "--json"]);
        let manifest: serde_json::Value =
            serde_json::from_str(stdout(&output).trim()).expect("JSON");
        let at = ["step", "row", "epoch"].map(|name| manifest[name].as_u64());
        assert_eq!(at, [Some(3), Some(0), Some(1)]);
        let again = run(&["--resume"]);
        let says = "--resume finds step 3 done, and --epochs is 1: nothing is left to train";
        assert!(again.contains(says) && again.contains("give more --epochs"), "{again}");
        let more = run(&["--resume", "--epochs", "2"]);
        assert!(more.contains("--resume goes on from step 3") && !more.contains("left"), "{more}");
        let done = run(&["--resume", "--epochs", "2"]);
        assert!(done.contains("finds step 6 done"), "{done}");
    }
}

#[test]
fn skipped_lines_are_counted_wherever_lines_are_read() {
    let folder = Folder::new("skipped");
    let text = rows(40).replacen('\t', "\tx", 1);
    let data = folder.file("f.txt", &text);
    let good = folder.file("good.txt", &rows(40));
    let save = folder.path("model");
    let flags = ["--data", &data, "--eval", &data, "--bad-rows", "skip", "--save", &save, "--json"];
    let output = train(&[&flags[..], &["--steps", "1", "--batch-size", "8"]].concat());
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert_eq!((&report["skipped_rows"], &report["skipped_eval_rows"]), (&1.into(), &1.into()));
    let output = emb(&["eval", "--data", &data, "--load", &save, "--bad-rows", "skip", "--json"]);
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert_eq!((&report["skipped_rows"], &report["eval"]["rows"]), (&1.into(), &39.into()));
    let output = emb(&["predict", "--data", &data, "--load", &save, "--bad-rows", "skip"]);
    assert_eq!(stdout(&output).lines().count(), 39);
    assert!(stderr(&output).contains("1 lines were skipped"), "{}", stderr(&output));
    let output = emb(&["predict", "--data", &good, "--load", &save]);
    assert_eq!((stdout(&output).lines().count(), stderr(&output)), (40, String::new()));
}

#[test]
fn a_run_that_goes_on_takes_the_options_it_was_saved_with() {
    let folder = Folder::new("goon");
    let data = folder.file("f.txt", &rows(64));
    let save = folder.path("model");
    let flags = ["--data", &data, "--optimizer", "adam", "--batch-size", "32", "--save", &save];
    assert!(train(&flags).status.success());
    let output = emb(&["train", "--load", &save, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
    assert_eq!((&report["steps"], &report["loaded_steps"]), (&4.into(), &2.into()));
    let output = emb(&["train", "--load", &save, "--dim", "8", "--json"]);
    let text = stderr(&output);
    assert!(text.contains("another model") && text.contains("more"), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.len() < 800), "{text}");
    let output = emb(&["train", "--load", &save, "--data", "synthetic", "--steps", "2"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn files_may_name_one_path_and_words_have_their_neighbours() {
    let folder = Folder::new("words");
    let data = folder.file("f.txt", &rows(20));
    let small = "dim = 4\nbottom = [8]\ntop = [8]\n";
    let file = folder.file("c.toml", &format!("data = {data:?}\n{small}"));
    assert!(emb(&["train", "--config", &file]).status.success());
    let file = folder.file("c.toml", &format!("data = {data:?}\noptimizer = \"Adagrat\"\n"));
    refused(
        &emb(&["train", "--config", &file]),
        &["c.toml:2:13: \"Adagrat\": did you mean \"adagrad\"?"],
    );
    refused(&train(&["--data", "synthtic"]), &["synthtic", "did you mean --data synthetic"]);
}
