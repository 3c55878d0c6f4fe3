//! Checkpoints over ranks: loadable on any world, the same file from any plan.

use crate::support::{
    Folder, Outcome, assert_near, criteo, options, outcome, outcome_in, run as train,
};
use emb_comm::{Collective, Local, run};
use emb_dlrm::checkpoint::{self, Manifest};
use emb_dlrm::config::{
    BadRows, Config, ModelKind, OptimizerKind, Options, PlacementKind, ScalingKind, SyncKind,
};
use emb_dlrm::train::{Saved, ScoreOptions, build_rank};
use emb_dlrm::{Error, Result};
use emb_kernels::{Cpu, CpuOptions};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

const RULES: [ScalingKind; 5] = [
    ScalingKind::None,
    ScalingKind::Moment,
    ScalingKind::Lr,
    ScalingKind::History,
    ScalingKind::Exact,
];

fn base(folder: &Folder, rule: OptimizerKind) -> Options {
    let data = folder.file("train.txt", &criteo(200, 1));
    let eval = folder.file("eval.txt", &criteo(50, 2));
    let accumulates = rule != OptimizerKind::Adam;
    Options {
        eval: vec![eval],
        optimizer: Some(rule),
        lr: Some(0.03),
        dense_lr: Some(0.02),
        initial_accumulator: accumulates.then_some(0.1),
        ..options(&data, ModelKind::DlrmDcn)
    }
}

fn four_by_two(base: &Options) -> Options {
    let plan = Some("row-wise".into());
    Options { world: Some(4), replicas: Some(2), plan, ..base.clone() }
}

/// The last of several runs, each of which goes on from the one before.
fn chain(runs: Vec<Options>) -> Outcome {
    let folder = Folder::new();
    let mut last = None;
    for (number, options) in runs.into_iter().enumerate() {
        let load = number.checked_sub(1).map(|before| folder.path(&before.to_string()));
        last = Some(outcome_in(Options { load, ..options }, &folder.path(&number.to_string())));
    }
    last.expect("a run")
}

#[test]
fn a_run_goes_on_with_the_same_bits() {
    let folder = Folder::new();
    for rule in RULES {
        let steps = |steps| Options {
            steps: Some(steps),
            replica_scaling: Some(rule),
            sync_every: (rule != ScalingKind::Exact).then_some(5),
            ..four_by_two(&base(&folder, OptimizerKind::RowWiseAdaGrad))
        };
        let whole = outcome(steps(30));
        // Replicas agree when a run ends, so only an end of a period changes nothing.
        let parts = chain(vec![steps(10), steps(15), steps(5)]);
        assert!(whole.bytes == parts.bytes, "{rule}");
        assert_eq!(whole.report.eval, parts.report.eval, "{rule}");
    }
}

#[test]
fn a_run_goes_on_on_other_worlds_and_back() {
    let folder = Folder::new();
    for rule in [OptimizerKind::RowWiseAdaGrad, OptimizerKind::AdaGrad, OptimizerKind::Adam] {
        let base = Options { steps: Some(10), ..base(&folder, rule) };
        let whole = outcome(Options { steps: Some(30), ..base.clone() });
        let two = Options { sync: Some(SyncKind::Gradients), ..four_by_two(&base) };
        for world in [1, 2, 3] {
            for plan in ["table-wise", "column-wise", "data-parallel"] {
                let plan = (world > 1).then(|| plan.to_owned());
                let other = Options { world: Some(world), plan, ..base.clone() };
                let case = format!("{rule}, by way of {:?} over {world}", other.plan);
                let parts = chain(vec![two.clone(), other, two.clone()]);
                assert_near(&parts, &whole, 1e-5, &case);
            }
        }
    }
}

#[test]
fn u33_a_disk_that_is_full_leaves_the_checkpoint_before_and_nothing_else() {
    let folder = Folder::new();
    let dir = folder.path("saved");
    let base = base(&folder, OptimizerKind::RowWiseAdaGrad);
    let steps = |steps| Options { steps: Some(steps), save: Some(dir.clone()), ..base.clone() };
    train(steps(1)).expect("a run");
    let files = || {
        let names = std::fs::read_dir(&dir).expect("a folder").map(|entry| {
            let path = entry.expect("an entry").path();
            (path.clone(), std::fs::read(path).expect("a file"))
        });
        names.collect::<BTreeMap<_, _>>()
    };
    let before = files();
    // What a save that was killed leaves is in nobody's way.
    std::fs::write(dir.join("model-9.safetensors.partial"), "half").expect("a file");
    // Whoever writes there is told that nothing is free.
    let full = dir.join("manifest.json.partial");
    std::os::unix::fs::symlink("/dev/full", &full).expect("a link");
    let error = train(steps(2)).expect_err("a full disk").to_string();
    let takes = before.values().map(Vec::len).max().expect("tensors").to_string();
    for word in ["manifest.json.partial", "No space left", &takes, "bytes in", "are free", "--save"]
    {
        assert!(error.contains(word), "{word:?} is missing from: {error}");
    }
    assert!(files() == before, "the folder changed");
    checkpoint::verify(&dir).expect("the one before is whole");
}

/// A checkpoint with other bytes of a tensor than were trained, and their checksum.
fn poisoned(dir: &Path, tensor: &str, at: usize, value: f32) {
    let mut manifest = manifest_of(dir);
    let file = dir.join(manifest["file"].as_str().expect("a name"));
    let mut bytes = std::fs::read(&file).expect("tensors");
    let head = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..head]).expect("a header");
    let [begin, end] = [0, 1]
        .map(|at| head + header[tensor]["data_offsets"][at].as_u64().expect("an offset") as usize);
    bytes[begin + 4 * at..][..4].copy_from_slice(&value.to_le_bytes());
    let hash = Sha256::digest(&bytes[begin..end]);
    let hash = hash.iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
    let records = manifest["tensors"].as_array_mut().expect("records");
    let record = records.iter_mut().find(|record| record["name"] == tensor);
    record.expect("a record")["sha256"] = hash.into();
    std::fs::write(&file, bytes).expect("a file");
    std::fs::write(dir.join("manifest.json"), manifest.to_string()).expect("a file");
}

fn manifest_of(dir: &Path) -> serde_json::Value {
    let text = std::fs::read(dir.join("manifest.json")).expect("a manifest");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn a_checkpoint_that_is_not_what_was_saved_is_refused_by_file_and_reason() {
    let folder = Folder::new();
    let dir = folder.path("saved");
    let base = base(&folder, OptimizerKind::RowWiseAdaGrad);
    let resumes = Options {
        steps: Some(1),
        save: Some(dir.clone()),
        resume: Some(true),
        ..four_by_two(&base)
    };
    train(resumes.clone()).expect("a run");
    let refused = |words: &[&str]| {
        let error = train(Options { steps: Some(2), ..resumes.clone() }).expect_err("refused");
        let error = error.to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is missing from: {error}");
        }
    };
    poisoned(&dir, "C1/weight", 5, f32::NAN);
    refused(&["model-1.safetensors", "tensor C1/weight has NaN at element 5"]);
    let file = dir.join("model-1.safetensors");
    std::fs::remove_file(&file).expect("the tensors");
    refused(&["model-1.safetensors: is gone, but manifest.json beside it names it"]);
    std::fs::create_dir(&file).expect("a folder");
    refused(&["model-1.safetensors: is a folder"]);
    // A folder that can't be looked into is not one without a checkpoint.
    std::fs::remove_dir_all(&dir).expect("a folder");
    std::fs::write(&dir, "in the way").expect("a file");
    let config = Config::resolve(resumes).expect("consistent");
    let error = checkpoint::to_resume(&config).expect_err("no folder").to_string();
    assert!(
        error.ends_with("saved/manifest.json: opening: Not a directory (os error 20)"),
        "{error}"
    );
}

/// Loads `from` over ranks and saves it to `to`, without a step.
fn saved_again(options: Options, from: &Path, to: &Path) -> Result<Vec<u8>> {
    let config = Config::resolve(Options { threads_per_rank: Some(1), ..options })?;
    let ranks = config.ranks.as_ref().expect("ranks");
    run(ranks.world(), &emb_comm::Options::default(), |world: &mut Local| {
        let cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let mut trainer = build_rank(world, cpu, &config, ranks)?;
        let slots = trainer.dense_slots();
        let (backend, model) = (&mut trainer.backend, &mut trainer.model);
        let at = checkpoint::load(from, backend, model, &slots)?.position;
        if world.rank() > 0 {
            return checkpoint::lend(backend, model, &slots);
        }
        checkpoint::save(to, backend, model, &slots, &Options::default(), at)?;
        Ok::<_, Error>(())
    })?;
    Ok(std::fs::read(Manifest::read(to)?.path(to)).expect("tensors"))
}

#[test]
fn equal_weights_are_equal_files_whatever_the_plan() {
    let folder = Folder::new();
    for rule in [OptimizerKind::RowWiseAdaGrad, OptimizerKind::Adam] {
        let mut base = base(&folder, rule);
        // More than is read at a time.
        base.table[1].rows = Some(30_000);
        let from = folder.path(&format!("{rule}"));
        let one = outcome_in(Options { steps: Some(10), ..base.clone() }, &from);
        for world in [2, 3, 8] {
            for plan in ["table-wise", "row-wise", "column-wise", "data-parallel"] {
                for replicas in [None, Some(2)] {
                    let twice = replicas.is_some();
                    if twice && (world == 3 || plan == "data-parallel") {
                        continue;
                    }
                    let options = Options {
                        world: Some(world),
                        plan: Some(plan.into()),
                        replicas,
                        ..base.clone()
                    };
                    let bytes = saved_again(options, &from, &folder.path("to")).expect("a copy");
                    assert!(bytes == one.bytes, "{rule}, {plan} over {world}, {replicas:?}");
                }
            }
        }
    }
}

#[test]
fn a_checkpoint_of_any_replica_rule_loads_in_any_other() {
    let folder = Folder::new();
    for optimizer in [OptimizerKind::RowWiseAdaGrad, OptimizerKind::AdaGrad] {
        let base = Options { steps: Some(7), ..base(&folder, optimizer) };
        let with = |rule| Options {
            replica_scaling: Some(rule),
            sync_every: (rule != ScalingKind::Exact).then_some(3),
            ..four_by_two(&base)
        };
        for rule in RULES {
            let dir = folder.path(&format!("{optimizer}-{rule}"));
            let saved = outcome_in(with(rule), &dir);
            assert!(saved.tensors.keys().all(|name| !name.ends_with("sum_local")));
            for other in RULES {
                let bytes = saved_again(with(other), &dir, &folder.path("to")).expect("a copy");
                assert!(bytes == saved.bytes, "{rule}, then {other}");
                let went_on = train(Options { load: Some(dir.clone()), ..with(other) });
                assert_eq!(went_on.expect("a run").steps, 14);
            }
            let alone = train(Options { load: Some(dir.clone()), ..base.clone() });
            assert_eq!(alone.expect("one process").steps, 14);
            let options = ScoreOptions {
                data: base.eval.clone(),
                bad_rows: BadRows::Error,
                batch_size: 16,
                device: None,
                precision: None,
                threads: Some(1),
            };
            let (report, _) =
                Saved::load(&dir, options).expect("loads").evaluate().expect("scores");
            assert_eq!(report, saved.report.eval.expect("an evaluation"));
        }
    }
}

#[test]
fn squares_of_a_history_since_the_last_sync_are_saved() {
    let folder = Folder::new();
    let base = base(&folder, OptimizerKind::RowWiseAdaGrad);
    let steps = |steps| Options {
        steps: Some(steps),
        replica_scaling: Some(ScalingKind::History),
        sync_every: Some(4),
        ..four_by_two(&base)
    };
    // Ends between two syncs: what each replica had added up by itself must not be lost.
    let sums = |outcome: &Outcome| outcome.tensors["C2/sum"].iter().copied().map(f64::from).sum();
    let (four, six): (f64, f64) = (sums(&outcome(steps(4))), sums(&outcome(steps(6))));
    assert!(six > four + 1e-4, "{six}, not more than {four}");
}

#[test]
fn a_number_of_ranks_displaces_what_a_checkpoint_says_of_ranks() {
    let folder = Folder::new();
    let mut options = Options { steps: Some(3), ..four_by_two(&base(&folder, OptimizerKind::Sgd)) };
    options.initial_accumulator = None;
    options.plan = None;
    options.table[0].placement = Some(PlacementKind::RowWise);
    options.table[0].replicas = Some(4);
    let dir = folder.path("saved");
    outcome_in(options, &dir);
    let manifest = Manifest::read(&dir).expect("a checkpoint");
    for world in [1, 2, 3] {
        let given = Options {
            world: Some(world),
            steps: Some(2),
            load: Some(dir.clone()),
            ..Options::default()
        };
        let saved = manifest.options_to_go_on(&given);
        let report = train(given.over(saved)).expect("goes on");
        assert_eq!(report.steps, 5);
    }
    // Without one it goes on as it was.
    let given = Options { steps: Some(2), load: Some(dir), ..Options::default() };
    let saved = manifest.options_to_go_on(&given);
    let config = Config::resolve(given.over(saved)).expect("consistent");
    assert_eq!(config.ranks.expect("ranks").world(), 4);
}

#[test]
fn a_number_of_ranks_leaves_what_a_file_says_of_them() {
    let file = Options { plan: Some("row-wise".into()), replicas: Some(2), ..Options::default() };
    let both = Options { world: Some(4), ..Options::default() }.over(file);
    assert_eq!((both.plan.as_deref(), both.replicas), (Some("row-wise"), Some(2)));
}
