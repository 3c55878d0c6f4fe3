//! Devices and transports by their words.

use super::support::{Folder, emb, refused, rows, stderr, stdout};
use super::{SMALL, train};
use serde_json::Value;

#[test]
fn u41_a_misspelt_device_transport_or_precision_is_an_error_with_the_nearest_match() {
    let data = ["--data", "synthetic"];
    for (flag, word, near) in [
        ("--device", "cudda", "cuda"),
        ("--transport", "ncll", "nccl"),
        ("--precision", "bf61", "bf16"),
    ] {
        let output = train(&[&data[..], &[flag, word]].concat());
        refused(&output, &[word, &format!("did you mean {near:?}?")]);
    }
    let folder = Folder::new("device-word");
    let file = folder.file("c.toml", "data = \"synthetic\"\ndevice = \"gpu\"\n");
    refused(&emb(&["train", "--config", &file]), &["c.toml:2:10", "gpu", "cuda"]);
}

#[test]
fn u41_options_of_devices_without_effect_are_refused() {
    let data = ["--data", "synthetic"];
    let cases: [(&[&str], &str); 4] = [
        (&["--precision", "bf16"], "--precision bf16 has no effect on the processor"),
        (&["--transport", "nccl"], "--transport nccl carries between GPUs: give --device cuda"),
        (&["--transport", "nccl", "--world", "2"], "give --device cuda"),
        (&["--transport", "nccl", "--device", "cpu"], "give --device cuda"),
    ];
    for (flags, words) in cases {
        refused(&train(&[&data[..], flags].concat()), &[words]);
    }
}

#[test]
fn a_run_names_its_device_and_transport() {
    let folder = Folder::new("device");
    let data = folder.file("f.txt", &rows(40));
    let json = |more: &[&str]| {
        let output =
            emb(&[&["train"][..], &SMALL[..8], &["--data", &data, "--json"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_str(stdout(&output).trim()).expect("JSON");
        (report, stderr(&output))
    };
    let (report, text) = json(&["--threads", "1"]);
    assert_eq!((&report["device"], &report["transport"]), (&"cpu".into(), &Value::Null));
    assert!(report["device_name"].as_str().is_some_and(|name| name.contains("1 thread")));
    assert!(text.contains("device      cpu\n"), "{text}");
    let (report, text) = json(&["--world", "2", "--device", "cpu", "--transport", "local"]);
    assert_eq!((&report["device"], &report["transport"]), (&"cpu".into(), &"local".into()));
    assert!(text.contains("transport   local\n"), "{text}");
}

/// A model that was trained anywhere is loaded anywhere.
#[test]
fn a_saved_model_forgets_what_it_was_trained_on() {
    let folder = Folder::new("forget");
    let (data, save) = (folder.file("f.txt", &rows(40)), folder.path("model"));
    let output = train(&["--data", &data, "--save", &save, "--device", "cpu"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let manifest = std::path::Path::new(&save).join("manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    let elsewhere = text.replace("\"device\":\"cpu\"", "\"device\":\"cuda\"");
    let elsewhere = elsewhere.replace("\"device\": \"cpu\"", "\"device\": \"cuda\"");
    assert_ne!(elsewhere, text);
    std::fs::write(&manifest, elsewhere).expect("a manifest");
    let more = train(&["--data", &data, "--load", &save, "--json"]);
    assert!(more.status.success(), "{}", stderr(&more));
    let score = emb(&["eval", "--load", &save, "--data", &data, "--json"]);
    assert!(score.status.success(), "{}", stderr(&score));
    let report: Value = serde_json::from_str(stdout(&score).trim()).expect("JSON");
    assert_eq!(report["device"], "cpu");
}

#[cfg(not(feature = "cuda"))]
mod without_cuda {
    use super::{Folder, SMALL, emb, refused, rows, stderr, train};

    const LINE: &str = "error: this build has no cuda: build with --features cuda\n";

    #[test]
    fn u42_a_build_without_cuda_says_so_in_one_line() {
        let folder = Folder::new("no-cuda");
        let (data, save) = (folder.file("f.txt", &rows(40)), folder.path("model"));
        assert!(train(&["--data", &data, "--save", &save]).status.success());
        let output =
            emb(&[&["train"][..], &SMALL[..8], &["--data", &data, "--device", "cuda"]].concat());
        refused(&output, &[]);
        assert_eq!(stderr(&output), LINE);
        for command in ["eval", "predict"] {
            let output = emb(&[command, "--load", &save, "--data", &data, "--device", "cuda"]);
            refused(&output, &[]);
            assert_eq!(stderr(&output), LINE, "{command}");
        }
    }

    #[test]
    fn auto_takes_the_processor_and_says_why() {
        let folder = Folder::new("auto");
        let data = folder.file("f.txt", &rows(40));
        let output = train(&["--data", &data, "--device", "auto", "--precision", "bf16"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let words = "device      cpu (auto took cpu: this build has no cuda: build with --features \
             cuda; --precision bf16 has no effect)\n";
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}
