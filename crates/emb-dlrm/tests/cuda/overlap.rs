//! What goes on beside the backward pass of a batch, as the fake driver traces it.

use crate::support::{Folder, criteo, devices};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const STEPS: usize = 6;

/// Work of the first rank's device: queued or run, on which stream, in the order of the trace.
struct Event {
    run: bool,
    stream: i64,
    what: String,
}

/// The trace of a run; `None`, with a printed reason, where the driver writes none.
fn trace(data: &Path, more: &[&str]) -> Option<Vec<Event>> {
    let folder = Folder::new();
    let file = folder.path("trace.jsonl");
    let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
    command.env("SIMT_TRACE", &file).args(["train", "--device", "cuda", "--data"]).arg(data);
    command.args(["--steps", &STEPS.to_string(), "--batch-size", "8", "--rows-per-table", "100"]);
    command.args(["--dim", "4", "--bottom", "4", "--top", "4"]).args(more);
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let Ok(text) = std::fs::read_to_string(&file) else {
        eprintln!("skipped: this driver writes no trace of its streams");
        return None;
    };
    let events = text.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let (run, stream) = (line["event"] == "run", line["stream"].as_i64()?);
        let what = line["what"].as_str()?.to_owned();
        (line["device"] == 0).then_some(Event { run, stream, what })
    });
    Some(events.collect())
}

/// Positions of what is queued, or run, under a name.
fn positions(events: &[Event], run: bool, name: &str) -> Vec<usize> {
    let fits = |event: &Event| event.run == run && event.what.contains(name);
    (0..events.len()).filter(|&at| fits(&events[at])).collect()
}

/// In every step but the last, `wanted` is queued on another stream than what computes, after the
/// step's loss and before the device is through with its backward pass.
fn assert_beside(events: &[Event], wanted: &str) {
    let losses = positions(events, false, "emb_bce_with_logits");
    // The gradients of a step are whole when the rule of the dense part runs.
    let updates = positions(events, true, "emb_dense_update");
    assert_eq!((losses.len(), updates.len()), (STEPS, STEPS));
    for (step, (&loss, &update)) in losses.iter().zip(&updates).enumerate().take(STEPS - 1) {
        let backward = |at: &usize| {
            let Event { run, what, .. } = &events[*at];
            *run && (what.contains("matmul") || what.contains("_backward"))
        };
        let end = (loss..update).rfind(backward).expect("a backward pass");
        let beside = |at: usize| {
            let Event { run, stream, what } = &events[at];
            !*run && what.contains(wanted) && *stream != events[loss].stream
        };
        assert!((loss..end).any(beside), "step {}: no {wanted:?} beside", step + 1);
    }
}

#[test]
fn ids_of_the_next_batch_travel_and_are_sorted_beside_the_backward_pass() {
    let Some(data) = criteo("train").filter(|_| devices(2)) else { return };
    let nccl = ["--world", "2", "--plan", "row-wise", "--transport", "nccl"];
    let Some(events) = trace(&data, &nccl) else { return };
    // Ids are the only 64-bit integers that travel; their counts go by other means.
    assert_beside(&events, "i64;");
    assert_beside(&events, "emb_keys");
    assert_beside(&events, "emb_sort_scatter");
}
