//! A training that was interrupted goes on as if nothing had happened.

use crate::support::{Folder, Outcome, assert_near, criteo, options, outcome_in, run};
use emb_dlrm::checkpoint::Manifest;
use emb_dlrm::config::{
    DenseKind, ModelKind, OptimizerKind, Options, ScalingKind, SyncKind, TableOptions,
};
use std::path::Path;

/// Adam everywhere under a warm-up, two passes over 200 rows in batches of 30, saved every 3 steps.
fn base(data: &Path) -> Options {
    Options {
        optimizer: Some(OptimizerKind::Adam),
        dense_optimizer: Some(DenseKind::Adam),
        lr_warmup: Some(12),
        epochs: Some(2),
        save_every: Some(3),
        ..options(data, ModelKind::Dlrm)
    }
}

/// The same over four ranks, tables twice, made equal every other step.
fn two_d(base: &Options) -> Options {
    Options {
        world: Some(4),
        replicas: Some(2),
        plan: Some("row-wise".into()),
        sync: Some(SyncKind::Weights),
        sync_every: Some(2),
        optimizer: Some(OptimizerKind::RowWiseAdaGrad),
        replica_scaling: Some(ScalingKind::History),
        ..base.clone()
    }
}

/// Trains until a bad line in the second pass, mends it, and goes on.
fn interrupted(options: &Options, folder: &Folder, name: &str) -> Outcome {
    let (text, dir) = (criteo(200, 5), folder.path(name));
    let data = &options.data[0];
    let options = Options { save: Some(dir.clone()), resume: Some(true), ..options.clone() };
    let bad: String = text.split_inclusive('\n').take(100).collect();
    std::fs::write(data, bad + "no such line\n").expect("a file");
    run(options.clone()).expect_err("a bad line");
    assert_eq!(Manifest::read(&dir).expect("a checkpoint").step, 3);
    std::fs::write(data, &text).expect("a file");
    run(Options { epochs: None, steps: Some(9), ..options.clone() }).expect("it goes on");
    let at = Manifest::read(&dir).expect("a checkpoint").position();
    assert_eq!((at.step, at.epoch, at.row), (9, 1, 60));
    outcome_in(options, &dir)
}

#[test]
fn an_interrupted_training_equals_one_that_was_not_bit_by_bit() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(200, 5));
    let alone = base(&data);
    for (name, options) in [("alone", alone.clone()), ("2d", two_d(&alone))] {
        let whole = Options { save: Some(folder.path("whole")), ..options.clone() };
        let whole = outcome_in(whole, &folder.path(&format!("{name}-whole")));
        assert_eq!(whole.report.steps, 14);
        let parts = interrupted(&options, &folder, &format!("{name}-parts"));
        assert_eq!((parts.report.steps, parts.report.loaded_steps), (14, 9), "{name}");
        assert!(parts.bytes == whole.bytes, "{name}: other bits");
    }
}

#[test]
fn a_training_that_is_done_is_not_begun_anew() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(60, 5));
    let dir = folder.path("saved");
    let options =
        Options { resume: Some(true), epochs: Some(1), eval: vec![data.clone()], ..base(&data) };
    let first = outcome_in(options.clone(), &dir);
    let again = outcome_in(options, &dir);
    assert_eq!((again.report.steps, again.report.loaded_steps, again.report.loss), (2, 2, None));
    assert_eq!(again.report.eval, first.report.eval);
    assert!(again.bytes == first.bytes);
}

#[test]
fn it_goes_on_over_other_ranks() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(200, 5));
    let whole = outcome_in(base(&data), &folder.path("whole"));
    let dir = folder.path("parts");
    let over = |world: u32| Options { world: Some(world), resume: Some(true), ..base(&data) };
    outcome_in(Options { epochs: None, steps: Some(7), ..over(4) }, &dir);
    let parts = outcome_in(over(3), &dir);
    assert_eq!(parts.report.loaded_steps, 7);
    assert_near(&parts, &whole, 1e-5, "4 ranks, then 3");
}

#[test]
fn a_checkpoint_of_other_options_is_refused_by_name() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(60, 5));
    let options = Options {
        save: Some(folder.path("saved")),
        resume: Some(true),
        epochs: None,
        steps: Some(1),
        ..base(&data)
    };
    run(options.clone()).expect("a run");
    let other = folder.file("other.txt", &criteo(60, 6));
    let mut wider: Vec<TableOptions> = options.table.clone();
    wider[1].rows = Some(301);
    let cases = [
        (Options { batch_size: Some(29), ..options.clone() }, "--batch-size 30", "--batch-size 29"),
        (Options { seed: Some(7), ..options.clone() }, "--seed 1", "--seed 7"),
        (Options { lr: Some(0.5), ..options.clone() }, "--lr 0.01", "--lr 0.5"),
        (Options { lr_warmup: None, ..options.clone() }, "--lr-warmup 12", "--lr-warmup 0"),
        (Options { data: vec![other], ..options.clone() }, "train.txt", "other.txt"),
        (Options { table: wider, ..options.clone() }, "table \"c2\" of 300 rows", "of 301 rows"),
    ];
    for (other, then, now) in cases {
        let error = run(other).expect_err("other options").to_string();
        for word in ["--resume", then, now] {
            assert!(error.contains(word), "{word:?} is missing from: {error}");
        }
    }
    // What is said of a default is no other option, and a length may grow.
    let same = Options { seed: Some(1), steps: Some(2), ..options };
    assert_eq!(run(same).expect("the same").loaded_steps, 1);
}

#[test]
fn options_of_saving_that_mean_nothing_are_refused() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(60, 5));
    let save = Some(folder.path("saved"));
    let base = Options { save_every: None, ..base(&data) };
    let cases = [
        (Options { resume: Some(true), ..base.clone() }, "--resume has no effect: give --save"),
        (Options { save_every: Some(2), ..base.clone() }, "--save-every has no effect"),
        (Options { save_every: Some(0), save: save.clone(), ..base.clone() }, "--save-every is 0"),
        (
            Options { resume: Some(true), load: save.clone(), save, ..base },
            "--load and --resume both",
        ),
    ];
    for (options, words) in cases {
        let error = run(options).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
}
