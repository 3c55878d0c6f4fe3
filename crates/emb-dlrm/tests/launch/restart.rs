//! Starting again with the ranks that are left, with programs that save a checkpoint of a small model.

use crate::support::{Program, Run};

/// Rank 0 of four trains two steps by itself and saves; then rank 2 is killed. Ranks that start anew
/// say with which options.
const LOSES_RANK_2: &str = r#"
case "$*" in *restart.toml*) cat "$3"; echo "$@"; exit 0;; esac
if [ $RANK = 0 ]; then
  env -u RANK -u WORLD_SIZE "$EMB" train --data synthetic --steps 2 --batch-size 8 --rows-per-table 20 --dim 2 --bottom 4 \
    --top 4 --threads 1 --save "$FOLDER/model" 2> /dev/null > /dev/null
  touch "$FOLDER/saved"
fi
while [ ! -e "$FOLDER/saved" ]; do sleep 0.02; done
if [ $RANK = 2 ]; then
  printf 00000000000000000003 | dd of=$EMB_STATUS conv=notrunc 2>/dev/null
  kill -9 $$
fi
exec sleep 1000
"#;

fn restarts(program: &Program, own: &[&str], train: &[&str]) -> Run {
    let save = program.path("model").display().to_string();
    let train = [&["train", "--data", "synthetic", "--save", &save][..], train].concat();
    let own = [&["--timeout-to-end", "0.1"][..], own].concat();
    program.start_with(4, &own, &train).wait()
}

fn program(name: &str, text: &str) -> Program {
    Program::new(name, &format!("EMB='{}'\n{text}", env!("CARGO_BIN_EXE_emb")))
}

#[test]
fn u28_a_lost_rank_is_left_out_and_training_goes_on_from_the_checkpoint() {
    let program = program("restart", LOSES_RANK_2);
    let run = restarts(&program, &["--restart"], &["--replicas", "2", "--sync", "weights"]);
    run.ended(0);
    let said =
        "launch: rank 2 was lost in step 3; going on from the checkpoint of step 2 on 3 ranks";
    assert!(run.err.lines().any(|line| line == said), "{}", run.err);
    assert!(run.err.contains("2 replicas do not divide 3 ranks: taking 1"), "{}", run.err);
    // What the ranks were given: this run's options, for three ranks, from the checkpoint.
    for line in ["world = 3", "resume = true", "data = [\"synthetic\"]"] {
        assert!(run.out.lines().any(|said| said == line), "{line:?} is missing: {}", run.out);
    }
    assert!(!run.out.contains("replicas") && !run.out.contains("sync"), "{}", run.out);
    let options = program.path("model.restart.toml").display().to_string();
    let line = format!("train --config {options} --device=cuda --transport=nccl");
    assert!(run.out.lines().any(|said| said == line), "{line:?} is missing: {}", run.out);
    assert!(run.err.contains(&format!("[2] {line}")) && !run.err.contains("[3] "), "{}", run.err);
}

#[test]
fn a_checkpoint_that_was_there_before_is_not_taken_for_one_of_this_run() {
    let early = "case \"$*\" in *restart.toml*) cat \"$3\"; exit 0;; esac
                 if [ $RANK = 2 ]; then kill -9 $$; fi; exec sleep 1000";
    let stale = program("stale", early);
    let model = stale.path("model").display().to_string();
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_emb"))
        .args(["train", "--data", "synthetic", "--steps", "1", "--batch-size", "8"])
        .args(["--rows-per-table", "20", "--dim", "2", "--bottom", "4", "--top", "4"])
        .args(["--threads", "1", "--save", &model])
        .output()
        .expect("the program runs");
    assert!(made.status.success());
    let run = restarts(&stale, &["--restart"], &[]);
    run.ended(0);
    assert!(
        run.err.contains("there is no checkpoint yet: beginning anew on 3 ranks"),
        "{}",
        run.err
    );
    assert!(!run.out.contains("resume"), "{}", run.out);
    // With --resume it is this training's.
    let run = restarts(&stale, &["--restart"], &["--resume"]);
    run.ended(0);
    assert!(run.err.contains("going on from the checkpoint of step 1 on 3 ranks"), "{}", run.err);
    assert!(run.out.contains("resume = true"), "{}", run.out);
}

#[test]
fn a_checkpoint_that_was_damaged_is_named_with_what_is_wrong_and_what_to_do() {
    let damages = [
        // A head that is none, and a head whose weights are cut.
        ("manifest", "echo '{' > \"$FOLDER/model/manifest.json\"", "manifest.json: not a manifest"),
        ("cut", "for f in \"$FOLDER\"/model/*.safetensors; do echo x > \"$f\"; done", "truncated?"),
    ];
    for (name, damage, says) in damages {
        let damages = LOSES_RANK_2
            .replace("touch \"$FOLDER/saved\"", &format!("{damage}\n touch \"$FOLDER/saved\""));
        let program = program(&format!("damaged-{name}"), &damages);
        let run = restarts(&program, &["--restart"], &[]);
        run.ended(137);
        let said =
            run.note("launch: not starting again: the checkpoint to go on from is damaged: ");
        let remedy = format!("remove {} to begin anew", program.path("model").display());
        for words in [says, "start with train --resume", &remedy] {
            assert!(said.contains(words), "{words:?} is missing: {said}");
        }
    }
}

#[test]
fn weights_that_ranks_could_not_load_are_named_by_the_launcher() {
    let fails = LOSES_RANK_2.replace(
        "cat \"$3\"; echo \"$@\"; exit 0",
        "for f in \"$FOLDER\"/model/*.safetensors; do printf x | dd of=\"$f\" bs=1 conv=notrunc \
         seek=$(($(wc -c < \"$f\") - 1)) 2>/dev/null; done; exit 1",
    );
    let run = restarts(&program("weights", &fails), &["--restart"], &[]);
    run.ended(1);
    let said = run.note("launch: not starting again: the checkpoint to go on from is damaged: ");
    assert!(said.contains("model-2.safetensors"), "{said}");
}

#[test]
fn a_failure_that_would_come_again_is_not_tried_again() {
    for (name, code) in [("usage", 2), ("data", 1), ("panic", 101)] {
        let fails = format!("if [ $RANK = 1 ]; then exit {code}; fi; sleep 0.1; exit 75");
        let run = restarts(&program(name, &fails), &["--restart"], &[]);
        run.ended(code);
        assert!(run.err.contains("not starting again: it would fail again"), "{}", run.err);
        assert!(!run.err.contains("was lost"), "{}", run.err);
    }
}

#[test]
fn ranks_are_lost_until_the_times_are_used_up() {
    // Every time the last rank is lost.
    let fails = "if [ $RANK = $((WORLD_SIZE-1)) ]; then kill -9 $$; fi; exec sleep 1000";
    let run = restarts(&program("times", fails), &["--restart=2"], &[]);
    run.ended(137);
    for line in ["rank 3 was lost; ", "rank 2 was lost; ", "as often as --restart says"] {
        assert!(run.err.contains(line), "{line:?} is missing: {}", run.err);
    }
    assert!(!run.err.contains("rank 1 was lost"), "{}", run.err);
    // And without --restart, not at all.
    let run = restarts(&program("never", fails), &[], &[]);
    run.ended(137);
    assert!(!run.err.contains("was lost"), "{}", run.err);
}
