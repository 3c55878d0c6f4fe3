//! `emb launch` with small programs in the place of training, on this host.

mod restart;
mod support;

use std::process::Command;
use std::time::{Duration, Instant};
use support::{Launched, Program};

#[test]
fn standard_output_is_that_of_rank_0_and_all_else_says_its_rank() {
    let run = Program::new("output", "echo out of $RANK; echo err of $RANK >&2").run(3, &[]);
    run.ended(0);
    assert_eq!(run.out, "out of 0\n");
    for line in ["[0] err of 0", "[1] err of 1", "[1] out of 1", "[2] err of 2", "[2] out of 2"] {
        assert!(run.err.lines().any(|said| said == line), "{line:?} is missing: {}", run.err);
    }
    assert_eq!(run.err.lines().count(), 5, "{}", run.err);
}

#[test]
fn ranks_are_told_their_place_as_torchrun_tells_it() {
    let say = "echo $RANK $LOCAL_RANK of $WORLD_SIZE $LOCAL_WORLD_SIZE at $MASTER_ADDR; echo $*";
    let run = Program::new("place", say).run(2, &[]);
    run.ended(0);
    assert_eq!(
        run.out,
        "0 0 of 2 2 at 127.0.0.1\n\
         train --data synthetic --device=cuda --transport=nccl --world=2\n"
    );
    assert!(run.err.contains("[1] 1 1 of 2 2 at 127.0.0.1\n"), "{}", run.err);
}

#[test]
fn lines_are_never_torn_and_much_output_holds_nobody_up() {
    // More than pipes and sockets keep, and a last line without an end.
    let say = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); \
               echo $RANK:$i:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; \
               done; printf $RANK:end >&2";
    let run = Program::new("lines", say).run(3, &[]);
    run.ended(0);
    let mut next = [0; 3];
    for line in run.err.lines() {
        let (rank, said) = line.split_once("] ").expect("a rank in front");
        let rank: usize = rank.trim_start_matches('[').parse().expect("a rank");
        let parts: Vec<&str> = said.split(':').collect();
        assert_eq!(parts[0], rank.to_string(), "{line}");
        next[rank] += 1;
        match next[rank] {
            3001 => assert_eq!(parts[1..], ["end"]),
            at => assert_eq!((parts[1], parts[2].len()), (&*at.to_string(), 66), "{line}"),
        }
    }
    assert_eq!(next, [3001; 3]);
}

#[test]
fn u28_a_killed_rank_is_named_with_its_step_and_all_are_ended() {
    let program = Program::new(
        "killed",
        "printf 00000000000000000037 | dd of=$EMB_STATUS conv=notrunc 2>/dev/null
         if [ $RANK = 2 ]; then touch $FOLDER/killed; kill -9 $$; fi; exec sleep 1000",
    );
    let run = program.run(4, &["--timeout-to-end", "0.1"]);
    let after = program.since("killed");
    run.ended(137);
    let said = run.note("launch: rank 2 (pid ");
    assert!(said.contains("was killed by signal 9 (SIGKILL) after "), "{said}");
    assert!(said.ends_with(" s, in step 37"), "{said}");
    assert!(said.contains(&format!("(pid {} on ", program.pid(2))), "{said}");
    // Noticed within 2 s, and all ended.
    assert!(after < Duration::from_secs(3), "{after:?}");
    program.nobody_is_left(4);
}

#[test]
fn u28_the_exit_code_is_that_of_the_first_cause_and_survivors_say_what_they_saw() {
    // The others lost a peer, and say so before the cause ends.
    let say = "if [ $RANK = 1 ]; then sleep 0.2; echo 'error: line 7 is bad' >&2; exit 3; fi
               echo 'error: rank 1 gave up' >&2; exit 75";
    let run = Program::new("cause", say).run(3, &[]);
    run.ended(3);
    assert!(run.note("launch: rank 1 (pid ").contains("ended with exit code 3"), "{}", run.err);
    assert!(run.err.contains("[1] error: line 7 is bad"), "{}", run.err);
    // Whoever of the others is first says it for both.
    let said = |rank| run.err.contains(&format!("[{rank}] error: rank 1 gave up"));
    assert!(said(0) != said(2), "{}", run.err);
    let (first, other) = if said(0) { (0, 2) } else { (2, 0) };
    run.note(&format!("launch: rank {other} said the same as rank {first}: rank 1 gave up"));
}

#[test]
fn u28_a_rank_that_stalls_while_the_others_give_up_is_named_and_ended() {
    let program = Program::new(
        "stalled",
        "if [ $RANK = 1 ]; then kill -STOP $$; fi; sleep 0.1
         printf ' 1\\n' | dd of=$EMB_STATUS conv=notrunc bs=1 seek=20 2>/dev/null; exit 75",
    );
    let run = program.run(3, &["--timeout-to-end", "0.2"]);
    run.ended(75);
    assert!(run.note("launch: rank 1 (pid ").contains("came no further"), "{}", run.err);
    program.nobody_is_left(3);
}

#[test]
fn what_a_rank_started_does_not_stay_behind() {
    let program = Program::new("children", "sleep 1000 & echo $! > $FOLDER/9.pid; exit 0");
    let run = program.run(1, &[]);
    run.ended(0);
    program.is_gone(9);
}

#[test]
fn an_interrupt_ends_all_ranks_and_is_told_by_the_exit_code() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let program = Program::new(&format!("interrupt-{signal}"), "exec sleep 1000");
        let run = program.start(3, &[]);
        program.all_are_there(3);
        run.signal(signal);
        let run = run.wait();
        run.ended(code);
        assert!(run.err.contains(&format!("launch: SIG{signal}: ending all ranks")), "{}", run.err);
        program.nobody_is_left(3);
    }
}

#[test]
fn ranks_that_do_not_heed_a_request_to_end_are_killed_by_the_second() {
    let took = || {
        let program = Program::new("deaf", "trap '' TERM INT; while :; do sleep 0.05; done");
        let run = program.start(2, &[]);
        program.all_are_there(2);
        let asked = Instant::now();
        // Two that come before the launcher looks are one: where processors are busy it may look late.
        for _ in 0..4 {
            run.signal("INT");
            std::thread::sleep(Duration::from_millis(300));
        }
        run.wait().ended(130);
        program.nobody_is_left(2);
        asked.elapsed()
    };
    // Those who are asked once have 3 seconds, before they are killed, however often it is tried; where
    // processors are busy the second may take as long, but not each time.
    let soon = Duration::from_millis(2900);
    assert!((0..4).any(|_| took() < soon), "not within {soon:?}");
}

#[test]
fn ranks_do_not_outlive_a_launcher_that_is_killed() {
    let program = Program::new("orphans", "exec sleep 1000");
    let run = program.start(3, &[]);
    program.all_are_there(3);
    run.signal("KILL");
    assert_eq!(run.wait().code, None);
    program.nobody_is_left(3);
}

#[test]
fn a_rank_does_not_outlive_its_keeper_and_counts_as_lost() {
    let say = "if [ $RANK = 0 ]; then echo $PPID > $FOLDER/9.pid; echo here; fi; exec sleep 1000";
    let program = Program::new("keeper", say);
    let mut run = program.start(2, &["--timeout-to-end", "0.1"]);
    program.all_are_there(2);
    // A keeper that was heard of is meant.
    run.hears("here");
    Launched::kill(program.pid(9), "KILL");
    let run = run.wait();
    run.ended(1);
    assert!(run.err.contains("is gone: the connection to its host broke"), "{}", run.err);
    program.nobody_is_left(2);
    // What a rank says of itself lies in no folder.
    assert_eq!(program.files(".status"), [""; 0]);
}

#[test]
fn an_error_of_all_ranks_is_printed_once_and_the_others_are_counted() {
    let say = "echo \"error: rank $RANK on node$RANK: day.tsv: opening: no such file\" >&2; exit 2";
    let run = Program::new("same", say).run(5, &[]);
    run.ended(2);
    let printed = run.err.lines().filter(|line| line.contains("] error: rank "));
    assert_eq!(printed.count(), 1, "{}", run.err);
    let said = run.note("launch: ranks ");
    assert!(said.contains(" said the same as rank "), "{said}");
    assert!(said.ends_with(": day.tsv: opening: no such file"), "{said}");
}

#[test]
fn a_folder_for_files_of_a_moment_that_is_none_is_said_before_anything_starts() {
    let program = Program::new("tmpdir", "touch $FOLDER/started");
    let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
    command.args(["launch", "-n", "2", "--transport", "mpi", "--program"]);
    command.arg(program.path("program")).args(["--mpirun", "/bin/sh", "--", "train"]);
    command.args(["--data", "synthetic"]);
    let nowhere = program.path("nowhere");
    let run = program.start_command_in(command, &nowhere).wait();
    run.ended(2);
    let says = format!("TMPDIR={}: there is no such folder", nowhere.display());
    assert!(run.err.contains(&says) && run.err.contains("set TMPDIR to a folder"), "{}", run.err);
}

#[test]
fn a_keeper_that_is_killed_at_once_is_not_waited_for() {
    for turn in 0..3 {
        let program = Program::new(&format!("at-once-{turn}"), "kill -9 $PPID; exec sleep 1000");
        let run = program.run(2, &["--timeout-to-end", "0.1"]);
        assert!(![Some(0), None].contains(&run.code), "{:?} {}", run.code, run.err);
        assert!(run.seconds < 15.0, "{} s: {}", run.seconds, run.err);
        program.nobody_is_left(2);
    }
}

#[test]
fn output_that_cannot_be_written_is_said_and_fails_the_run() {
    let program = Program::new("full", "echo report");
    let command = "exec \"$0\" launch -n 1 --transport nccl --program \"$1\" -- train --data synthetic >/dev/full";
    let mut shell = Command::new("sh");
    shell.args(["-c", command, env!("CARGO_BIN_EXE_emb")]).arg(program.path("program"));
    let run = program.start_command(shell).wait();
    run.ended(1);
    run.note("error: standard output: writing: No space left on device");
}

#[test]
fn u41_what_cannot_be_started_is_refused_by_flag() {
    let refused = |own: &[&str], train: &[&str], says: &str| {
        let run = support::launch(own, train);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains(says), "{says:?} is missing: {}", run.err);
        assert_eq!(run.out, "");
    };
    let train = ["train", "--data", "synthetic"];
    let with = |more: &[&'static str]| [&train[..], more].concat();
    refused(&["-n", "2"], &["train", "--dta", "synthetic"], "--dta");
    refused(&["-n", "2"], &["inspect", "--load", "x"], "emb inspect is for one process");
    refused(&["-n", "3"], &["doctor", "--world", "3"], "doctor --world 3 is of threads");
    let calibrate = ["calibrate", "--world", "3", "--out", "x"];
    refused(&["-n", "3"], &calibrate, "calibrate --world 3 is of threads");
    refused(&["-n", "0"], &train, "--ranks");
    refused(&["--transport", "mpi"], &train, "give -n N");
    refused(&["-n", "2"], &with(&["--world", "3"]), "train --world is 3, but 2 ranks");
    refused(&["-n", "2"], &with(&["--transport", "local"]), "train --transport local");
    refused(&["-n", "2", "--restart"], &train, "--save DIR");
    let load = with(&["--save", "x", "--load", "y"]);
    refused(&["-n", "2", "--restart"], &load, "--load");
    let nccl = ["-n", "2", "--transport", "nccl"];
    refused(&[&nccl[..], &["--hosts", "a,b"]].concat(), &train, "srun");
    refused(&[&nccl[..], &["--mpirun", "x"]].concat(), &train, "--mpirun");
    refused(&nccl, &with(&["--device", "cpu"]), "--device cpu");
    refused(&["-n", "2", "--timeout-to-end", "2e6"], &train, "--timeout-to-end");
    refused(&["--hosts", "a,a"], &train, "host a stands there twice");
    let tells = if cfg!(feature = "mpi") {
        "--mpirun /nowhere/mpirun"
    } else {
        "build with --features mpi"
    };
    refused(&["-n", "2", "--mpirun", "/nowhere/mpirun"], &train, tells);
}
