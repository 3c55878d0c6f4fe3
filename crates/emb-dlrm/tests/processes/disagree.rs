//! Ranks that were started otherwise, or read something else, are named, by all, in time.

use crate::support::{Folder, mpirun, rows, small, with};

/// One rank with these options among three with those: every rank says so.
#[track_caller]
fn differ(base: &[String], one: &str, others: &str, words: &[&str]) {
    let run = mpirun(&[(2, with(base, others)), (1, with(base, one)), (1, with(base, others))]);
    run.fails_on_all(4, words);
    assert_eq!(run.lines().len(), 4, "one line each: {}", run.errors());
}

#[test]
fn other_options_are_named_with_their_ranks() {
    let folder = Folder::new();
    let data = folder.file("data.tsv", &rows(100));
    let base = with(&small(), &format!("--data {data} --plan row-wise"));
    differ(
        &base,
        "--seed 1",
        "--seed 2",
        &["rank 2 was started with --seed 1, ranks 0, 1 and 3 with 2"],
    );
    let other = "rank 2 was started with --batch-size 64, ranks 0, 1 and 3 with 128";
    differ(&base, "--batch-size 64", "", &[other]);
    differ(&base, "--steps 5", "--epochs 2", &["--steps 5, ranks 0, 1 and 3 with --epochs 2"]);
    differ(
        &base,
        "--sync gradients --replicas 2",
        "",
        &["rank 2 was started with", "--replicas 2"],
    );
    differ(&base, "--health 5", "", &["--health 5", "no --health"]);
    // A default that is said is no difference.
    mpirun(&[(1, with(&base, "--seed 1")), (1, base)]).report();
}

#[test]
fn u26_other_data_is_named_and_nothing_hangs() {
    let folder = Folder::new();
    let text = rows(100);
    let data = folder.file("data.tsv", &text);
    let short = folder.file("short.tsv", &rows(40));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let label = if lines[70].starts_with('1') { "0" } else { "1" };
    lines[70].replace_range(..1, label);
    let changed = folder.file("changed.tsv", &(lines.join("\n") + "\n"));
    // As many bytes, in fewer rows.
    let joined = text.replacen('\n', " ", 1).replacen("\n0", " 0", 3);
    let base = with(&small(), "--batch-size 16 --plan row-wise");
    let of = |file: &str| format!("--data {file}");
    differ(
        &base,
        &of(&short),
        &of(&data),
        &["rank 2 reads 1 training file of", "ranks 0, 1 and 3 read"],
    );
    differ(
        &base,
        &of(&changed),
        &of(&data),
        &["step 4: rank 2 has other data than ranks 0, 1 and 3"],
    );
    let eval = |file: &str| format!("--data {data} --eval {file}");
    differ(&base, &eval(&changed), &eval(&data), &["evaluation: rank 2 has other data than"]);
    let fewer = folder.file("fewer.tsv", &joined);
    let skip = with(&base, "--bad-rows skip");
    differ(&skip, &of(&fewer), &of(&data), &["rank 2 has other data than ranks 0, 1 and 3"]);
    // A line that one rank can't read: in the first batch, in a later one, and where all save after.
    for (line, when) in [(3, ""), (70, "step 4: ")] {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[line].replace_range(..1, "x");
        let bad = folder.file("bad.tsv", &(lines.join("\n") + "\n"));
        let place = format!("{when}{bad}, line {}, column label", line + 1);
        differ(&base, &of(&bad), &of(&data), &[&place]);
    }
    let saves = with(&base, &format!("--save {}", folder.path("saved")));
    let bad = ["evaluation: ", "bad.tsv, line 71", "ranks 0, 1 and 3 can read on"];
    differ(&saves, &eval(&folder.path("bad.tsv")), &eval(&data), &bad);
    // Options that one host lacks.
    let file = format!("--data {data} --config {}", folder.path("none.toml"));
    differ(&base, &file, &of(&data), &["none.toml: reading: No such file"]);
    // A file that one host lacks.
    differ(&base, &of(&folder.path("none.tsv")), &of(&data), &["none.tsv: No such file"]);
}

#[test]
fn every_rank_names_a_line_that_cannot_be_read() {
    let folder = Folder::new();
    let mut lines: Vec<String> = rows(100).lines().map(str::to_owned).collect();
    lines[50].replace_range(..1, "x");
    let data = folder.file("bad.tsv", &(lines.join("\n") + "\n"));
    let base = with(&small(), &format!("--data {data} --batch-size 16 --plan row-wise"));
    mpirun(&[(4, base.clone())]).fails_on_all(4, &["bad.tsv, line 51, column label"]);
    let skip = mpirun(&[(4, with(&base, "--bad-rows skip"))]).report();
    assert_eq!(skip["samples"], 99);
    assert_eq!(skip["skipped_rows"], 1);
}

#[test]
fn processes_that_would_not_know_of_each_other_are_refused_with_the_remedy() {
    let folder = Folder::new();
    let data = folder.file("data.tsv", &rows(50));
    let base = with(&small(), &format!("--data {data}"));
    let two = mpirun(&[(2, with(&base, "--world 3"))]);
    assert!(
        two.errors().contains("--world is 3, but 2 processes were started"),
        "{}",
        two.errors()
    );
    assert_eq!(mpirun(&[(1, base)]).report()["steps"], 1);
    let scored = mpirun(&[(2, with(&[], &format!("eval --data {data} --load nowhere")))]);
    let errors = scored.errors();
    assert!(errors.contains("rank 0 of 2 by mpirun: emb eval is of one process"), "{errors}");
    assert_eq!(scored.output.status.code(), Some(2), "{errors}");
}
