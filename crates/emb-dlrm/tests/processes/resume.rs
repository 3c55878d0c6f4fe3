//! An interrupted training of processes goes on as if nothing had happened.

use crate::support::{Folder, mpirun, rows, small, tensors, with};

#[test]
fn a_resumed_training_equals_one_that_was_not_interrupted_bit_by_bit() {
    let folder = Folder::new();
    let data = folder.file("data.tsv", &rows(200));
    let [whole, parts] = ["whole", "parts"].map(|name| folder.path(name));
    let base = with(&small(), "--batch-size 30 --plan row-wise --replicas 2 --sync-every 2");
    let base = with(&base, "--save-every 3 --lr-warmup 9 --dense-optimizer adam --resume");
    for (case, length, total) in [
        ("files", format!("--data {data} --epochs 2"), 14),
        ("synthetic", "--data synthetic --steps 14".to_owned(), 14),
    ] {
        let [whole, parts] = [&whole, &parts].map(|name| format!("{name}-{case}"));
        let base = with(&base, &length);
        assert_eq!(
            mpirun(&[(4, with(&base, &format!("--save {whole}")))]).report()["steps"],
            total
        );
        let halves = with(&base, &format!("--save {parts}"));
        let first: Vec<String> = match case {
            // Steps in the place of epochs, and of more steps.
            "files" => {
                halves.iter().map(|word| word.replace("--epochs", "--steps").clone()).collect()
            }
            _ => halves.clone(),
        };
        let length = first.iter().position(|word| word == "--steps").expect("a length") + 1;
        let mut first = first;
        first[length] = "9".to_owned();
        assert_eq!(mpirun(&[(4, first)]).report()["steps"], 9);
        let run = mpirun(&[(4, halves)]);
        let report = run.report();
        assert_eq!((&report["steps"], &report["loaded_steps"]), (&total.into(), &9.into()));
        assert!(run.errors().contains("--resume goes on from step 9"), "{}", run.errors());
        assert!(tensors(&whole) == tensors(&parts), "{case}: other bits");
    }
}

#[test]
fn ranks_that_see_another_checkpoint_or_none_are_named() {
    let folder = Folder::new();
    let data = folder.file("data.tsv", &rows(60));
    let base = with(&small(), &format!("--data {data} --batch-size 16 --plan row-wise"));
    let [here, there] = ["here", "there"].map(|name| folder.path(name));
    mpirun(&[(4, with(&base, &format!("--save {here}")))]).report();
    let at = |dir: &str| with(&base, &format!("--save {dir} --resume --epochs 2"));
    let run = mpirun(&[(3, at(&here)), (1, at(&there))]);
    run.fails_on_all(
        4,
        &["rank 3 sees no checkpoint, ranks 0, 1 and 2 see a checkpoint of step 4"],
    );
    // One of other options is refused by its first difference.
    let other = with(&at(&here), "--lr 0.5");
    mpirun(&[(4, other)]).fails_on_all(4, &["--resume", "--lr 0.01", "--lr 0.5"]);
    // A folder to load from that one rank lacks: it says so, the others whom it was.
    let load = |dir: &str| with(&base, &format!("--load {dir}"));
    let run = mpirun(&[(3, load(&here)), (1, load(&there))]);
    run.fails_on_all(4, &["no manifest.json here"]);
    assert!(run.lines().iter().filter(|line| line.contains("rank 3 gave up")).count() >= 1);
}
