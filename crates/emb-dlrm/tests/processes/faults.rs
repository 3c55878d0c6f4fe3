//! Training whose ranks are processes, one of which fails or is started otherwise: every other one
//! ends soon and says which, and the last checkpoint is whole.

mod job;

use job::{Ended, Folder, Job, rows};
use std::time::{Duration, Instant};

/// The rank at fault.
const CULPRIT: usize = 2;

/// How long ranks wait for each other.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How much later than the timeout a job is over: ranks ask each other where they are, say what
/// happened, and wait up to 1.5 s for those that do not; the launcher takes a second to end these.
const GRACE: Duration = Duration::from_secs(5);

/// Ways to lay tables out over four ranks: one dimension, and two groups of two.
const LAYOUTS: [(&str, &[&str]); 2] =
    [("1D", &["--plan", "row-wise"]), ("2D", &["--plan", "row-wise", "--replicas", "2"])];

/// Training on a file for ever, in small.
fn training(folder: &Folder, layout: &[&str], more: &[&str]) -> Vec<String> {
    let data = folder.file("rows.txt", &rows(640));
    let mut words = vec!["train", "--data", &data, "--batch-size", "64", "--epochs", "100000"];
    words.extend(["--rows-per-table", "100", "--dim", "4", "--bottom", "8", "--top", "8"]);
    words.extend(["--threads-per-rank", "1", "--transport", "mpi", "--timeout", "2"]);
    words.extend(layout);
    words.extend(more);
    words.into_iter().map(str::to_owned).collect()
}

/// The other ranks, or those of them that the launcher let speak, name the rank at fault.
fn named(ended: &Ended, culprit: usize, all: bool) -> String {
    let errors = ended.errors();
    let others: Vec<usize> = (0..4).filter(|&rank| rank != culprit).collect();
    for rank in others.iter().filter(|rank| all || errors.contains_key(rank)) {
        let error = errors.get(rank).unwrap_or_else(|| panic!("rank {rank} is silent: {ended}"));
        assert!(error.contains(&format!("rank {culprit}")), "rank {rank}: {error}");
    }
    errors.into_iter().find(|(rank, _)| *rank != culprit).map_or(String::new(), |found| found.1)
}

#[test]
fn u28_a_process_that_is_killed_ends_the_job_and_the_last_checkpoint_loads() {
    // Rank 0 is the one that speaks, and saves.
    for ((sets, layout), culprit) in LAYOUTS.into_iter().zip([CULPRIT, 0]) {
        let folder = Folder::new("killed");
        let saved = folder.path("saved");
        let more = ["--save", &saved, "--save-every", "5"];
        let mut job = Job::start_speechless(&folder, &training(&folder, layout, &more));
        job.wait_for(&folder.path("saved/manifest.json"));
        let killed = Instant::now();
        job.signal(culprit, "KILL");
        let ended = job.end(job::soon(GRACE));
        let after = killed.elapsed();
        assert!(after < job::soon(Duration::from_secs(2)), "noticed after {after:?}: {ended}");
        assert!(!ended.succeeded, "{ended}");
        let launcher = ended.line(&format!("process rank {culprit} "));
        assert!(launcher.contains("signal 9"), "{ended}");
        named(&ended, culprit, false);
        folder.loads("saved");
        job::row(sets, "kill -9", culprit, after, &launcher);
    }
}

#[test]
fn u28_a_process_that_is_stopped_is_named_by_all_others_and_the_last_checkpoint_loads() {
    for ((sets, layout), culprit) in LAYOUTS.into_iter().zip([CULPRIT, 0]) {
        let folder = Folder::new("stopped");
        let saved = folder.path("saved");
        let more = ["--save", &saved, "--save-every", "5"];
        let mut job = Job::start(&folder, &training(&folder, layout, &more), None);
        job.wait_for(&folder.path("saved/manifest.json"));
        let stopped = Instant::now();
        job.signal(culprit, "STOP");
        let ended = job.end(TIMEOUT + job::soon(GRACE));
        let after = stopped.elapsed();
        assert!(!ended.succeeded, "{ended}");
        let message = named(&ended, culprit, true);
        assert!(message.contains("in step "), "{message}");
        folder.loads("saved");
        job::row(sets, "SIGSTOP", culprit, after, &message);
    }
}

#[test]
fn u28_a_process_that_is_stopped_for_less_than_the_timeout_goes_on() {
    for (sets, layout) in LAYOUTS {
        let folder = Folder::new("paused");
        let saved = folder.path("saved");
        let mut words = training(&folder, layout, &["--save", &saved, "--save-every", "20"]);
        set(&mut words, "--epochs", "20");
        let mut job = Job::start(&folder, &words, None);
        job.wait_for(&folder.path("saved/manifest.json"));
        let stopped = Instant::now();
        job.signal(CULPRIT, "STOP");
        std::thread::sleep(TIMEOUT / 2);
        job.signal(CULPRIT, "CONT");
        // Nothing says how long a training takes; one that hangs fails.
        let ended = job.end(job::soon(Duration::from_mins(1)));
        assert!(ended.succeeded, "{ended}");
        folder.loads("saved");
        job::row(sets, "SIGSTOP, SIGCONT", CULPRIT, stopped.elapsed(), "goes on");
    }
}

/// Ranks of which the one at fault is started with other words, or data, than the others.
fn started_otherwise(fault: &str, change: impl Fn(&Folder, &mut Vec<String>), texts: &[&str]) {
    otherwise(fault, |folder, layout| training(folder, layout, &[]), change, texts);
}

/// The same of a training of other `words`. All of its ranks say the `texts`.
fn otherwise(
    fault: &str,
    words: impl Fn(&Folder, &[&str]) -> Vec<String>,
    change: impl Fn(&Folder, &mut Vec<String>),
    texts: &[&str],
) {
    for (sets, layout) in LAYOUTS {
        let folder = Folder::new("otherwise");
        let words = words(&folder, layout);
        let mut other = words.clone();
        change(&folder, &mut other);
        let began = Instant::now();
        let ended =
            Job::start(&folder, &words, Some((CULPRIT, &other))).end(TIMEOUT + job::soon(GRACE));
        let after = began.elapsed();
        assert!(!ended.succeeded, "{ended}");
        let message = named(&ended, CULPRIT, true);
        for (rank, error) in ended.errors() {
            for text in texts {
                assert!(error.contains(text), "rank {rank}: {error:?} does not say {text:?}");
            }
        }
        job::row(sets, fault, CULPRIT, after, &message);
    }
}

/// The names of a folder's files.
fn files(dir: &str) -> Vec<String> {
    let all = std::fs::read_dir(dir).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
    let mut all: Vec<String> =
        all.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

/// Replaces the word after a flag.
fn set(words: &mut [String], flag: &str, value: &str) {
    let at = words.iter().position(|word| word == flag).expect("a flag of every rank");
    value.clone_into(&mut words[at + 1]);
}

#[test]
fn a_rank_with_another_seed_is_named_by_all() {
    let change = |_: &Folder, words: &mut Vec<String>| words.push("--seed=9".to_owned());
    started_otherwise("other --seed", change, &["--seed 9", "ranks 0, 1 and 3 with 1"]);
}

#[test]
fn a_rank_with_another_batch_size_is_named_by_all() {
    let change = |_: &Folder, words: &mut Vec<String>| set(words, "--batch-size", "32");
    started_otherwise("other --batch-size", change, &["--batch-size 32", "ranks 0, 1 and 3"]);
}

#[test]
fn a_rank_with_another_plan_is_named_by_all() {
    let change = |_: &Folder, words: &mut Vec<String>| set(words, "--plan", "table-wise");
    started_otherwise("other --plan", change, &["--plan table-wise", "ranks 0, 1 and 3"]);
}

#[test]
fn a_rank_with_a_shorter_file_is_named_by_all() {
    let change = |folder: &Folder, words: &mut Vec<String>| {
        set(words, "--data", &folder.file("short.txt", &rows(400)));
    };
    started_otherwise("shorter data file", change, &["training file of"]);
}

/// A file of as many bytes, with a line that nobody can read.
fn bad_file(folder: &Folder) -> String {
    let mut lines: Vec<String> = rows(640).lines().map(str::to_owned).collect();
    lines[300].replace_range(..1, "x");
    folder.file("bad.txt", &(lines.join("\n") + "\n"))
}

#[test]
fn u40_a_line_that_one_rank_alone_cannot_read_is_named_by_all_with_its_file() {
    let texts = ["bad.txt, line 301, column label", "ranks 0, 1 and 3 can read on"];
    let change = |folder: &Folder, words: &mut Vec<String>| {
        set(words, "--data", &bad_file(folder));
    };
    started_otherwise("bad line of one rank", change, &texts);
    // Of the evaluation, where a checkpoint is to be saved after it: nobody saves.
    let change = |folder: &Folder, words: &mut Vec<String>| {
        set(words, "--eval", &bad_file(folder));
    };
    let evaluates = |folder: &Folder, layout: &[&str]| {
        let data = folder.file("rows.txt", &rows(640));
        let saved = folder.path("saved");
        let mut words = training(folder, layout, &["--eval", &data, "--save", &saved]);
        set(&mut words, "--epochs", "1");
        words
    };
    otherwise("bad line of one rank's evaluation", evaluates, change, &texts);
}

#[test]
fn u40_a_line_that_cannot_be_read_is_named_by_every_rank_with_its_file() {
    for (sets, layout) in LAYOUTS {
        let folder = Folder::new("bad");
        let mut words = training(&folder, layout, &[]);
        set(&mut words, "--data", &bad_file(&folder));
        let began = Instant::now();
        let ended = Job::start(&folder, &words, None).end(TIMEOUT + job::soon(GRACE));
        let after = began.elapsed();
        assert!(!ended.succeeded, "{ended}");
        let errors = ended.errors();
        for rank in 0..4 {
            let error = errors.get(&rank).unwrap_or_else(|| panic!("{rank} is silent: {ended}"));
            assert!(error.contains("bad.txt, line 301, column label"), "rank {rank}: {error}");
        }
        job::row(sets, "bad line of all ranks", 0, after, &errors[&1]);
    }
}

#[test]
fn a_disk_that_is_full_for_rank_0_is_told_to_all() {
    for (sets, layout) in LAYOUTS {
        let folder = Folder::new("full");
        let Some(disk) = folder.small_disk("disk", "64k") else { return };
        let saved = folder.path("disk/saved");
        let more = ["--save", &saved, "--save-every", "5"];
        let began = Instant::now();
        let job = Job::start(&folder, &training(&folder, layout, &more), None);
        let ended = job.end(TIMEOUT + job::soon(GRACE));
        let after = began.elapsed();
        let left = files(&saved);
        drop(disk);
        assert!(!ended.succeeded, "{ended}");
        assert_eq!(left, [""; 0], "nothing is left of a checkpoint that does not fit");
        let errors = ended.errors();
        for rank in 0..4 {
            let error = errors.get(&rank).unwrap_or_else(|| panic!("{rank} is silent: {ended}"));
            for text in ["model-5.safetensors.partial", "No space left on device", "65536 are free"]
            {
                assert!(error.contains(text), "rank {rank}: {error:?} does not say {text:?}");
            }
            assert!(rank == 0 || error.contains("rank 0"), "rank {rank}: {error}");
        }
        job::row(sets, "disk full for rank 0", 0, after, &errors[&1]);
    }
}

#[test]
fn u40_files_that_may_be_no_longer_for_rank_0_are_told_to_all_with_the_remedy() {
    for (sets, layout) in LAYOUTS {
        let folder = Folder::new("limit");
        let saved = folder.path("saved");
        let words = training(&folder, layout, &["--save", &saved, "--save-every", "5"]);
        let began = Instant::now();
        // 16 KiB, and an error in the place of the signal.
        let job = Job::start_after(&folder, "trap '' XFSZ; ulimit -f 32;", &words);
        let ended = job.end(TIMEOUT + job::soon(GRACE));
        let after = began.elapsed();
        assert!(!ended.succeeded, "{ended}");
        let errors = ended.errors();
        for rank in 0..4 {
            let error = errors.get(&rank).unwrap_or_else(|| panic!("{rank} is silent: {ended}"));
            for text in ["model-5.safetensors.partial", "File too large", "ulimit -f unlimited"] {
                assert!(error.contains(text), "rank {rank}: {error:?} does not say {text:?}");
            }
        }
        assert_eq!(files(&saved), [""; 0]);
        job::row(sets, "file size limit", 0, after, &errors[&1]);
    }
}
