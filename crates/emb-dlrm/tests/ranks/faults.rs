//! What fails on one rank ends the run on all, in words that say what and where.

use crate::support::{Folder, criteo, options, run};
use emb_dlrm::Error;
use emb_dlrm::checkpoint::{self, Manifest};
use emb_dlrm::config::{BadRows, Config, IdPolicy, InitOptions, ModelKind, OptimizerKind, Options};
use emb_dlrm::train::{Event, Observer, train};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PLANS: [&str; 4] = ["table-wise", "row-wise", "column-wise", "data-parallel"];

/// Batches of 8 for 4 ranks, two samples each; saves to a folder that has a checkpoint.
fn base(folder: &Folder, text: &str) -> Options {
    let data = folder.file("train.txt", text);
    let options = Options {
        batch_size: Some(8),
        eval: vec![data.clone()],
        save: Some(folder.path("saved")),
        ..options(&data, ModelKind::Dlrm)
    };
    let good = folder.file("good.txt", &criteo(8, 9));
    run(Options { data: vec![good.clone()], eval: vec![good], ..options.clone() }).expect("a run");
    options
}

/// Every file of a folder.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), std::fs::read(path).expect("a file")))
        .collect();
    files.sort();
    files
}

/// Fails over 4 ranks with any plan, in time, with these words; the checkpoint stands.
#[track_caller]
fn fails(options: &Options, words: &[&str]) {
    for plan in PLANS {
        let dir = options.save.clone().expect("a folder");
        let before = files(&dir);
        let begun = Instant::now();
        let plan = Some(plan.to_owned());
        let error = run(Options { world: Some(4), plan, timeout: Some(20.0), ..options.clone() });
        let error = error.expect_err("the run fails");
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        assert!(matches!(error, Error::Rank(_)), "{error:?}");
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "{word:?} is missing from: {text}");
        }
        assert!(files(&dir) == before, "the checkpoint changed");
    }
}

/// One line of a text, changed.
fn changed(text: &str, number: usize, change: impl Fn(&str) -> String) -> String {
    let lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| if at == number { change(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// A line with other text in a column.
fn with(line: &str, column: usize, text: &str) -> String {
    let mut columns: Vec<&str> = line.split('\t').collect();
    columns[column] = text;
    columns.join("\t")
}

#[test]
fn an_id_outside_its_table() {
    let folder = Folder::new();
    // Small ids everywhere but in row 20: the third batch, samples of rank 2.
    let text = criteo(40, 1);
    let small = text.lines().map(|line| {
        let mut columns: Vec<&str> = line.split('\t').collect();
        columns[14..].fill("3");
        columns.join("\t")
    });
    let text = small.collect::<Vec<_>>().join("\n") + "\n";
    let text = changed(&text, 20, |line| with(line, 15, "ffff"));
    let options = Options { id_policy: Some(IdPolicy::Error), ..base(&folder, &text) };
    fails(&options, &["train.txt", "line 21", "column C2", "id 65535", "\"C2\"", "0..300"]);
}

#[test]
fn u40_a_malformed_line() {
    let folder = Folder::new();
    let text = changed(&criteo(40, 1), 21, |line| with(line, 3, "1.5"));
    let options = base(&folder, &text);
    fails(&options, &["train.txt", "line 22", "I3", "1.5"]);
}

#[test]
fn a_malformed_line_of_the_evaluation() {
    let folder = Folder::new();
    let options = base(&folder, &criteo(40, 1));
    let bad = folder.file("eval.txt", &changed(&criteo(40, 1), 30, |_| "no row".into()));
    let options = Options { eval: vec![bad], eval_every: Some(2), ..options };
    fails(&options, &["eval.txt", "line 31"]);
}

/// In the first step rows of the tables become huge; later ones look up others, but for one row of
/// the second batch, whose features multiply two of the huge ones.
fn explosive(folder: &Folder, at: usize) -> Options {
    let text = criteo(40, 1);
    let lines = text.lines().enumerate().map(|(row, line)| {
        let id = if row < 8 || row == at { "3" } else { "2" };
        let mut columns: Vec<&str> = line.split('\t').collect();
        columns[14..].fill(id);
        columns.join("\t")
    });
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    let mut options = base(folder, &text);
    options.optimizer = Some(OptimizerKind::Sgd);
    (options.lr, options.dense_lr) = (Some(1e30), Some(0.0));
    for table in &mut options.table {
        table.init = Some(InitOptions::Constant(0.5));
    }
    options
}

#[test]
fn a_loss_that_is_infinite_on_one_rank() {
    let folder = Folder::new();
    for (row, rank) in [(8, 0), (13, 2), (15, 3)] {
        let options = explosive(&folder, row);
        let words = ["step 2", &format!("rank {rank}"), "the loss is", "1e30", "first non-finite"];
        fails(&options, &words);
    }
}

#[test]
fn a_row_that_no_rank_can_train_leaves_no_partial_file() {
    let folder = Folder::new();
    let options = explosive(&folder, 13);
    let dir = folder.path("new");
    let options = Options { world: Some(4), save: Some(dir.clone()), ..options };
    run(options).expect_err("infinite");
    assert!(files(&dir).is_empty());
}

#[test]
fn more_ranks_than_samples() {
    let folder = Folder::new();
    for rows in [1, 2, 3, 7] {
        let data = folder.file("few.txt", &criteo(rows, 1));
        for plan in PLANS {
            let options = Options {
                world: Some(8),
                plan: Some(plan.into()),
                eval: vec![data.clone()],
                steps: Some(3),
                ..options(&data, ModelKind::Dlrm)
            };
            let report = run(options).expect("a run");
            assert_eq!((report.steps, report.samples), (3, 3 * rows as u64));
            assert_eq!(report.eval.expect("an evaluation").rows, rows as u64);
        }
    }
}

#[test]
fn a_file_without_rows() {
    let folder = Folder::new();
    let (good, none) = (folder.file("good.txt", &criteo(8, 1)), folder.file("none.txt", ""));
    let over = |data: &Path, eval: &Path| Options {
        world: Some(4),
        eval: vec![eval.to_owned()],
        ..options(data, ModelKind::Dlrm)
    };
    for options in [over(&none, &good), over(&good, &none)] {
        let error = run(options).expect_err("no rows").to_string();
        assert!(error.contains("none.txt") && error.contains("0 rows"), "{error}");
    }
}

#[test]
fn nothing_left_to_train_on() {
    let folder = Folder::new();
    let data = folder.file("few.txt", &criteo(7, 1));
    let base =
        Options { drop_last: Some(true), batch_size: Some(8), ..options(&data, ModelKind::Dlrm) };
    for world in [1, 4] {
        let error = run(Options { world: Some(world), ..base.clone() }).expect_err("no batch");
        let error = error.to_string();
        assert!(error.contains("no whole batch of 8") && error.contains("--drop-last"), "{error}");
    }
}

#[test]
fn the_program_ends_with_code_1_and_says_why_once() {
    let folder = Folder::new();
    let text = changed(&criteo(40, 1), 21, |line| with(line, 3, "1.5"));
    let data = folder.file("train.txt", &text).display().to_string();
    let save = folder.path("saved").display().to_string();
    let args = ["train", "--data", &data, "--world", "4", "--batch-size", "8", "--save", &save];
    let args = args.iter().chain(&["--rows-per-table", "50", "--dim", "4", "--bottom", "8"]);
    let output = Command::new(env!("CARGO_BIN_EXE_emb")).args(args).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.matches("line 22").count(), 1, "{text}");
    assert!(!text.contains("panicked"), "{text}");
    Manifest::read(&folder.path("saved")).expect_err("nothing was saved");
}

#[test]
fn a_score_that_is_no_number_on_one_rank() {
    let folder = Folder::new();
    let mut options = explosive(&folder, 13);
    // Rows 8 to 15 alone: row 5 of them is rank 2's.
    let text = std::fs::read_to_string(&options.data[0]).expect("rows");
    let eval = text.lines().skip(8).take(8).collect::<Vec<_>>().join("\n") + "\n";
    options.eval = vec![folder.file("eval.txt", &eval)];
    (options.steps, options.save) = (Some(1), None);
    for plan in PLANS {
        let plan = Some(plan.to_owned());
        let error = run(Options { world: Some(4), plan, ..options.clone() });
        let error = error.expect_err("NaN").to_string();
        assert!(error.contains("rank 2") && error.contains("row 5"), "{error}");
    }
}

/// An observer that panics in the second step.
struct Panics;

impl Observer for Panics {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Step { step: 2, .. } = event {
            panic!("out of paper");
        }
    }
}

/// Four ranks, in one dimension and in two.
fn layouts(base: &Options) -> [Options; 2] {
    [1, 2].map(|replicas| Options {
        world: Some(4),
        threads_per_rank: Some(1),
        plan: Some("row-wise".into()),
        replicas: Some(replicas),
        ..base.clone()
    })
}

#[test]
fn u28_a_panic_on_one_rank() {
    let folder = Folder::new();
    for options in layouts(&base(&folder, &criteo(40, 1))) {
        let before = files(&folder.path("saved"));
        let config = Config::resolve(options).expect("consistent");
        let error = train(&config, &mut Panics).expect_err("a panic").to_string();
        for word in ["rank 0", "step 2", "out of paper"] {
            assert!(error.contains(word), "{word:?} is missing from: {error}");
        }
        assert!(files(&folder.path("saved")) == before, "the checkpoint changed");
    }
}

#[test]
fn skipped_lines_are_counted_as_in_one_process() {
    let folder = Folder::new();
    let text = changed(&criteo(40, 1), 21, |_| "no row".into());
    let text = changed(&text, 3, |_| "no row".into());
    let data = folder.file("train.txt", &text);
    for length in [(Some(3), None), (None, Some(2)), (Some(7), None)] {
        let alone = Options {
            bad_rows: Some(BadRows::Skip),
            batch_size: Some(8),
            eval: vec![data.clone()],
            steps: length.0,
            epochs: length.1,
            ..options(&data, ModelKind::Dlrm)
        };
        let one = run(alone.clone()).expect("one process");
        let four = run(Options { world: Some(4), ..alone }).expect("ranks");
        assert_eq!((four.steps, four.samples), (one.steps, one.samples));
        assert_eq!(four.skipped_rows, one.skipped_rows);
        assert_eq!((four.skipped_eval_rows, one.skipped_eval_rows), (2, 2));
    }
}

/// An observer that sleeps in the second step, for so long.
struct Sleeps(Duration);

impl Observer for Sleeps {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Step { step: 2, .. } = event {
            std::thread::sleep(self.0);
        }
    }
}

#[test]
fn u28_a_rank_that_stalls() {
    let folder = Folder::new();
    let stall = "rank 0 is outside any collective in step 2";
    for options in layouts(&base(&folder, &criteo(40, 1))) {
        // Where processors are so busy that another rank is late, it is missed first.
        let mut timeouts = [0.5, 3.0, 10.0].into_iter();
        let (timeout, error) = loop {
            let timeout = timeouts.next().expect("one of the timeouts is long enough");
            let options = Options { timeout: Some(timeout), ..options.clone() };
            let config = Config::resolve(options).expect("consistent");
            let timeout = Duration::from_secs_f64(timeout);
            let error = train(&config, &mut Sleeps(2 * timeout)).expect_err("a stall").to_string();
            eprintln!("{error}");
            if error.contains(stall) {
                break (timeout, error);
            }
        };
        assert!(error.contains(&format!(" within {timeout:?}")), "{error}");
        checkpoint::verify(&folder.path("saved")).expect("the last checkpoint is whole");
    }
}

/// An observer that puts a file where the folder of the checkpoint was.
struct Blocks(PathBuf);

impl Observer for Blocks {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Step { step: 2, .. } = event {
            std::fs::remove_dir_all(&self.0).expect("a folder");
            std::fs::write(&self.0, "in the way").expect("a file");
        }
    }
}

#[test]
fn a_checkpoint_that_rank_0_can_not_write() {
    let folder = Folder::new();
    // With groups of one the others have no part in saving and wait in the evaluation.
    for (plan, replicas) in [("table-wise", Some(4)), ("row-wise", None)] {
        let dir = folder.path(plan);
        let options = Options {
            world: Some(4),
            threads_per_rank: Some(1),
            plan: Some(plan.into()),
            replicas,
            steps: Some(2),
            save: Some(dir.clone()),
            ..base(&folder, &criteo(40, 1))
        };
        let config = Config::resolve(options).expect("consistent");
        let begun = Instant::now();
        let error = train(&config, &mut Blocks(dir)).expect_err("no folder").to_string();
        assert!(begun.elapsed() < Duration::from_secs(15));
        assert!(error.contains("rank 0") && error.contains(plan), "{error}");
    }
}
