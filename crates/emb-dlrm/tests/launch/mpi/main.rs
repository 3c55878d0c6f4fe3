//! `emb launch` with training over MPI: one process a rank, killed and stopped.

mod support;

use emb_dlrm::checkpoint::Manifest;
use support::{Folder, Launched, emb, rows, signal};

/// Samples of the data, and of a step.
const SAMPLES: u64 = 6000;
const BATCH: &str = "20";

/// Small tables and layers, and a wait that is short enough for a test.
const SMALL: &[&str] = &[
    "--rows-per-table",
    "50",
    "--dim",
    "4",
    "--bottom",
    "8",
    "--top",
    "8",
    "--threads-per-rank",
    "1",
    "--batch-size",
    BATCH,
];

fn launch<'a>(folder: &'a Folder, ranks: &str, own: &[&str], train: &[&str]) -> Launched<'a> {
    let own = [&["-n", ranks, "--timeout-to-end", "1"][..], own].concat();
    let data = folder.path("data");
    let train = [SMALL, &["--timeout", "5", "--data", &data][..], train].concat();
    Launched::start(folder, &own, &train)
}

/// The weights of a folder, by name, as checksums.
fn weights(dir: &std::path::Path) -> Vec<(String, String)> {
    let manifest = Manifest::read(dir).expect("a checkpoint");
    manifest.tensors.into_iter().map(|tensor| (tensor.name, tensor.sha256)).collect()
}

/// Trains in one process with threads to `step` on four ranks, then on three to the end.
fn planned_to_lose_one(folder: &Folder, step: u64, more: &[&str]) {
    let (data, steps) = (folder.path("data"), step.to_string());
    let (half, whole) = (folder.path("half"), folder.path("planned"));
    let first = ["--world", "4", "--data", &data, "--steps", &steps, "--save", &half];
    emb(&[&["train"], SMALL, &first[..], more].concat());
    let then = ["train", "--world", "3", "--data", &data, "--load", &half, "--save", &whole];
    emb(&[&then[..], &["--threads-per-rank", "1"]].concat());
}

#[test]
fn u28_killing_one_of_four_processes_ends_on_three_as_if_that_had_been_planned() {
    let folder = Folder::new("killed");
    folder.file("data", &rows(SAMPLES as usize));
    let model = folder.path("model");
    let save = ["--save", &model, "--save-every", "20", "--json"];
    let run = launch(&folder, "4", &["--restart"], &save);
    signal(run.rank_after(2, 20), "KILL");
    let run = run.wait();
    run.ended(0);
    let said = run.note("launch: rank 2 (pid ");
    assert!(said.contains("was killed by signal 9 (SIGKILL)"), "{said}");
    // What mpirun makes of it is known better.
    assert!(!run.err.contains("mpirun has"), "{}", run.err);
    let said = run.note("launch: rank 2 was lost in step ");
    let words: Vec<&str> = said.split(' ').collect();
    let lost: u64 = words[7].trim_end_matches(';').parse().expect("a step");
    let from: u64 = words[15].parse().expect("a step");
    assert!(said.ends_with("on 3 ranks"), "{said}");
    assert!(from >= 20 && from.is_multiple_of(20) && from <= lost && lost < 300, "{said}");
    // Every sample once, in all and in what is printed.
    let manifest = Manifest::read(folder.0.join("model").as_path()).expect("a checkpoint");
    assert_eq!((manifest.samples, manifest.step), (SAMPLES, 300));
    let report: serde_json::Value = serde_json::from_str(run.out.trim()).expect("JSON");
    assert_eq!(report["samples"], SAMPLES);
    planned_to_lose_one(&folder, from, &[]);
    assert_eq!(weights(&folder.0.join("model")), weights(&folder.0.join("planned")));
}

#[test]
fn u28_a_stopped_process_is_named_by_the_others_and_left_out() {
    let folder = Folder::new("stopped");
    folder.file("data", &rows(SAMPLES as usize));
    let model = folder.path("model");
    let save = ["--save", &model, "--save-every", "20", "--replicas", "2"];
    let run = launch(&folder, "4", &["--restart"], &save);
    signal(run.rank_after(1, 20), "STOP");
    let run = run.wait();
    run.ended(0);
    let said = run.note("launch: rank 1 (pid ");
    assert!(said.contains("came no further; the others gave up on it"), "{said}");
    assert!(run.note("launch: rank 1 was lost").ends_with("on 3 ranks"), "{}", run.err);
    assert!(run.err.contains("2 replicas do not divide 3 ranks: taking 1"), "{}", run.err);
    // The others said whom they missed, in which collective; who said the same was counted.
    let counted = || run.err.lines().filter(|line| line.contains(" said the same as rank "));
    for rank in [0, 2, 3] {
        // As its error, or as its last words where its messages do not end.
        let of_rank = format!("[{rank}] ");
        let mut lines = run.err.lines().filter(|line| line.starts_with(&of_rank));
        let said = lines.any(|line| line.contains(" did not ") && line.contains("rank 1 "));
        let same = counted().any(|line| line.contains(&rank.to_string()));
        assert!(said || same, "{}", run.err);
    }
    let manifest = Manifest::read(folder.0.join("model").as_path()).expect("a checkpoint");
    assert_eq!(manifest.samples, SAMPLES);
}

#[test]
fn u28_a_training_that_lost_all_of_its_ranks_goes_on_with_one() {
    let folder = Folder::new("all");
    folder.file("data", &rows(SAMPLES as usize));
    let model = folder.path("model");
    let own = ["--restart", "--hosts", "localhost:2"];
    let run = launch(&folder, "2", &own, &["--save", &model, "--save-every", "20"]);
    let ranks = [0, 1].map(|rank| run.rank_after(rank, 20));
    for pid in ranks {
        signal(pid, "KILL");
    }
    let run = run.wait();
    run.ended(0);
    assert!(run.note("launch: ranks 0 and 1 were lost in step").ends_with("on 1 rank"));
    let manifest = Manifest::read(folder.0.join("model").as_path()).expect("a checkpoint");
    assert_eq!(manifest.samples, SAMPLES);
}

#[test]
fn a_bad_line_of_data_is_not_tried_again_and_its_exit_code_is_that_of_the_run() {
    let folder = Folder::new("bad");
    let text = rows(200) + "no row\n";
    folder.file("data", &text);
    let model = folder.path("model");
    let save = ["--save", &model, "--save-every", "2"];
    let run = launch(&folder, "3", &["--restart"], &save).wait();
    run.ended(1);
    assert!(run.err.contains("not starting again: it would fail again"), "{}", run.err);
    assert!(run.err.contains("line 201"), "{}", run.err);
    // The checkpoint before it is whole.
    let manifest = Manifest::read(folder.0.join("model").as_path()).expect("a checkpoint");
    assert_eq!(manifest.step, 10);
}

/// Starts a world on two hosts, and kills what `mpirun` has on the second: alone, or with all that it
/// started there.
fn loses_a_helper(folder: &Folder, with_children: bool) -> support::Run {
    // What mpirun reaches other hosts by: it runs what it is told here, each with the folder that it
    // would have to itself on a host of its own. Two in one folder may crash.
    let ssh = "while [ \"${1#-}\" != \"$1\" ]; do shift; done; export TMPDIR=$EMB_TEST_FOLDER/on-$1; \
               shift; mkdir -p $TMPDIR; exec sh -c \"$*\"";
    folder.program("ssh", ssh);
    let again = "case \"$*\" in *restart.toml*) echo $OMPI_COMM_WORLD_RANK of \
                 $OMPI_COMM_WORLD_SIZE; exit 0;; esac; touch $EMB_TEST_FOLDER/$OMPI_COMM_WORLD_RANK; \
                 exec sleep 1000";
    folder.program("program", again);
    let (ssh, program, model) = (folder.path("ssh"), folder.path("program"), folder.path("model"));
    let own = [
        "--hosts",
        "127.0.0.2:2,127.0.0.3:2",
        "--transport",
        "mpi",
        "--restart",
        "--program",
        &program,
        "--timeout-to-end",
        "1",
        "--mpirun-arg=--mca",
        "--mpirun-arg=plm_rsh_agent",
        "--mpirun-arg",
        &ssh,
    ];
    let run = Launched::start(folder, &own, &["--data", "synthetic", "--save", &model]);
    let run = run.wait_for(&["0", "1", "2", "3"]);
    // The second helper of mpirun, which is on the second host, and the keepers it started.
    let all = folder.helper_and_children(2);
    for &pid in if with_children { &all[..] } else { &all[..1] } {
        signal(pid, "KILL");
    }
    let run = run.wait();
    run.ended(0);
    folder.nobody_is_left();
    run
}

#[test]
fn u28_a_helper_of_mpirun_that_is_killed_is_no_loss_of_ranks() {
    let run = loses_a_helper(&Folder::new("helper"), false);
    let said =
        "launch: no rank is at fault; there is no checkpoint yet: beginning anew on all 4 ranks";
    assert_eq!(run.note("launch: no rank"), said, "{}", run.err);
    assert_eq!(run.out, "0 of 4\n");
}

#[test]
fn u28_a_host_that_is_gone_is_left_out_with_its_ranks() {
    let run = loses_a_helper(&Folder::new("hosts"), true);
    assert!(run.note("launch: rank ").contains("is gone: the connection to its host broke"));
    let said =
        "launch: ranks 2 and 3 were lost; there is no checkpoint yet: beginning anew on 2 ranks";
    assert_eq!(run.note("launch: ranks"), said, "{}", run.err);
    assert_eq!(run.out, "0 of 2\n");
}

#[test]
fn nobody_is_left_behind_when_the_launcher_is_killed() {
    let folder = Folder::new("orphans");
    folder.file("data", &rows(SAMPLES as usize));
    let model = folder.path("model");
    let run = launch(&folder, "3", &[], &["--save", &model, "--save-every", "20"]);
    run.rank_after(0, 20);
    signal(run.pid(), "KILL");
    assert_eq!(run.wait().code, None);
    folder.nobody_is_left();
}

#[test]
fn an_mpirun_that_hangs_does_not_outlast_a_request_to_end() {
    let folder = Folder::new("hangs");
    folder.program("mpirun", "touch \"$EMB_TEST_FOLDER/there\"; trap '' INT TERM; exec sleep 1000");
    let run = launch(&folder, "2", &["--mpirun", &folder.path("mpirun")], &[]);
    let run = run.wait_for(&["there"]);
    signal(run.pid(), "INT");
    run.wait().ended(130);
    folder.nobody_is_left();
}

#[test]
fn an_mpirun_that_does_nothing_is_named_with_its_exit_code() {
    let folder = Folder::new("nothing");
    folder.program("mpirun", "exit 0");
    let run = launch(&folder, "2", &["--mpirun", &folder.path("mpirun")], &[]).wait();
    run.ended(1);
    run.note("launch: mpirun ended with exit code 0 before ranks 0 and 1 started");
    // With hosts, they are named.
    let mpirun = folder.path("mpirun");
    let own = ["--mpirun", &mpirun, "--hosts", "127.0.0.2,127.0.0.3"];
    let run = launch(&folder, "2", &own, &[]).wait();
    run.ended(1);
    run.note(
        "launch: mpirun ended with exit code 0 before rank 0 on 127.0.0.2, rank 1 on 127.0.0.3",
    );
}

/// A program that leaves the number of its process, and becomes `mpirun`.
const REAL: &str = "echo $$ > \"$EMB_TEST_FOLDER/new\"; mv \"$EMB_TEST_FOLDER/new\" \"$EMB_TEST_FOLDER/pid\"; exec mpirun \"$@\"";

/// Ends an `mpirun` in the midst of training; what the launcher made of it.
fn ends_mpirun(folder: &Folder, name: &str, own: &[&str]) -> support::Run {
    folder.file("data", &rows(SAMPLES as usize));
    let model = folder.path("model");
    folder.program("mpirun", REAL);
    let mpirun = folder.path("mpirun");
    let own = [&["--mpirun", &mpirun][..], own].concat();
    let run = launch(folder, "2", &own, &["--save", &model, "--save-every", "20"]);
    let waits = run.rank_after(1, 20);
    // The training is not over before it is noticed.
    signal(waits, "STOP");
    let pid = std::fs::read_to_string(folder.path("pid")).expect("a process");
    signal(pid.trim().parse().expect("a number"), name);
    let run = run.wait();
    folder.nobody_is_left();
    run
}

#[test]
fn an_mpirun_that_cannot_start_all_has_its_say_and_the_others_are_no_cause() {
    let folder = Folder::new("abandoned");
    folder.program("program", "touch \"$EMB_TEST_FOLDER/there\"; exec sleep 1000");
    // As mpirun does where a host has no such program: ends the others, then says why.
    let partly = "case $1 in --version) echo 'mpirun (Open MPI) 4'; exit;; esac; \
                  while [ \"$2\" != launch-rank ]; do shift; done; \
                  OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 \"$@\" & \
                  while [ ! -e \"$EMB_TEST_FOLDER/there\" ]; do sleep 0.01; done; \
                  kill -TERM $!; wait $!; echo 'no such program on node b' >&2; exit 7";
    folder.program("mpirun", partly);
    let (mpirun, program) = (folder.path("mpirun"), folder.path("program"));
    let own = ["--mpirun", &mpirun, "--program", &program, "--hosts", "localhost,127.0.0.2"];
    let save = ["--save", &folder.path("model")];
    let run = launch(&folder, "2", &[&own[..], &["--restart"]].concat(), &save).wait();
    run.ended(7);
    run.note("no such program on node b");
    let said = run.note("launch: mpirun ended with exit code 7 before rank 1 on 127.0.0.2 started");
    assert!(said.contains("`ssh -o BatchMode=yes 127.0.0.2 "), "{said}");
    assert!(!run.err.contains("was killed"), "{}", run.err);
    folder.nobody_is_left();
}

#[test]
fn an_mpirun_of_another_mpi_is_told_by_what_it_calls_itself() {
    let folder = Folder::new("hydra");
    folder.program("mpirun", "case $1 in --version) echo 'HYDRA build details:';; esac; exit 255");
    let run = launch(&folder, "2", &["--mpirun", &folder.path("mpirun")], &[]).wait();
    run.ended(255);
    let said = run.note("launch: mpirun ended with exit code 255 before ranks 0 and 1 started");
    assert!(said.contains("\"HYDRA build details:\"") && said.contains("--mpirun PATH"), "{said}");
}

#[test]
fn an_mpirun_that_is_killed_is_named_and_its_signal_is_that_of_the_run() {
    let run = ends_mpirun(&Folder::new("mpirun"), "KILL", &[]);
    run.ended(137);
    run.note("launch: mpirun was killed by signal 9");
    assert!(!run.err.contains("not starting again"), "{}", run.err);
}

#[test]
fn u28_a_training_whose_mpirun_was_ended_goes_on_on_all_ranks() {
    for name in ["KILL", "TERM"] {
        let folder = Folder::new(&format!("unharmed-{name}"));
        let run = ends_mpirun(&folder, name, &["--restart"]);
        run.ended(0);
        let said = run.note("launch: no rank is at fault; going on from the checkpoint of step ");
        assert!(said.ends_with(" on all 2 ranks"), "{said}");
        let manifest = Manifest::read(folder.0.join("model").as_path()).expect("a checkpoint");
        assert_eq!(manifest.samples, SAMPLES);
        // Nothing is lost: the weights are those of a run that nothing happened to.
        let (data, whole) = (folder.path("data"), folder.path("whole"));
        let alone = ["train", "--world", "2", "--data", &data, "--save", &whole];
        emb(&[&alone[..], SMALL].concat());
        assert_eq!(weights(&folder.0.join("model")), weights(&folder.0.join("whole")));
    }
}
