//! Evaluation over ranks: every row once, the metrics of one process.

use crate::support::{Folder, criteo, labelled, options, run};
use emb_dlrm::Error;
use emb_dlrm::config::{Config, ModelKind, Options, ScalingKind, SyncKind};
use emb_dlrm::metrics::EvalReport;
use emb_dlrm::train::{Event, Observer, train};

/// The evaluations of a run, with their steps.
#[derive(Default)]
struct Seen(Vec<(u64, EvalReport)>);

impl Observer for Seen {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Evaluated { step, report } = event {
            self.0.push((step, *report));
        }
    }
}

fn seen(options: Options) -> Result<Vec<(u64, EvalReport)>, Error> {
    let mut seen = Seen::default();
    train(&Config::resolve(options)?, &mut seen)?;
    Ok(seen.0)
}

/// A model that a step does not change: logits are those of the initial weights, bit for bit,
/// wherever bags are pooled whole.
fn frozen(folder: &Folder, rows: usize, soft: bool) -> Options {
    let data = folder.file("train.txt", &criteo(40, 1));
    let label = |row: usize, hard: bool| match row % 3 {
        0 if soft => "0.25".to_owned(),
        _ => u8::from(hard).to_string(),
    };
    let eval = folder.file(&format!("eval-{rows}.txt"), &labelled(rows, 2, label));
    Options {
        eval: vec![eval],
        steps: Some(1),
        lr: Some(0.0),
        dense_lr: Some(0.0),
        soft_labels: soft.then_some(true),
        ..options(&data, ModelKind::Dlrm)
    }
}

#[test]
fn every_row_is_evaluated_once_whatever_the_world() {
    let folder = Folder::new();
    // Less than a rank's worth, one batch of evaluation, some batches with a short last one.
    for rows in [1, 2, 3, 7, 2048, 5003] {
        let alone = frozen(&folder, rows, false);
        let one = run(alone.clone()).expect("one process").eval.expect("an evaluation");
        assert_eq!(one.rows, rows as u64);
        for world in [2, 3, 4, 8] {
            for (plan, replicas) in [
                ("table-wise", None),
                ("column-wise", None),
                ("row-wise", None),
                ("data-parallel", None),
                ("table-wise", Some(world)),
            ] {
                let options = Options {
                    world: Some(world),
                    plan: Some(plan.into()),
                    replicas,
                    ..alone.clone()
                };
                let got = run(options).expect("ranks").eval.expect("an evaluation");
                // Every feature has one id a sample here, so nothing is summed in another order.
                assert_eq!(got, one, "{rows} rows, {plan} over {world}");
            }
        }
    }
}

#[test]
fn soft_labels_are_evaluated_over_ranks() {
    let folder = Folder::new();
    for rows in [1, 5, 600] {
        let alone = frozen(&folder, rows, true);
        let one = run(alone.clone()).expect("one process").eval.expect("an evaluation");
        assert_eq!((one.rows, one.auc), (rows as u64, None));
        for world in [2, 3, 8] {
            let options = Options { world: Some(world), ..alone.clone() };
            let got = run(options).expect("ranks").eval.expect("an evaluation");
            let near = |got: Option<f64>, one: Option<f64>| match (got, one) {
                (Some(got), Some(one)) => (got - one).abs() <= 1e-12 * one,
                (got, one) => got == one,
            };
            assert_eq!(
                (got.rows, got.positives, got.negatives),
                (one.rows, one.positives, one.negatives)
            );
            assert!(near(got.loss, one.loss), "{got:?}, not {one:?}");
            assert!(near(got.normalized_entropy, one.normalized_entropy), "{got:?}, not {one:?}");
        }
    }
}

#[test]
fn evaluations_during_training_are_those_of_one_process() {
    let folder = Folder::new();
    let alone = Options {
        lr: Some(0.05),
        dense_lr: Some(0.02),
        initial_accumulator: Some(0.1),
        steps: Some(20),
        eval_every: Some(6),
        ..frozen(&folder, 300, false)
    };
    let one = seen(alone.clone()).expect("one process");
    assert_eq!(one.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [6, 12, 18, 20]);
    for (world, plan) in [(2, "row-wise"), (4, "column-wise"), (3, "data-parallel")] {
        let options = Options { world: Some(world), plan: Some(plan.into()), ..alone.clone() };
        let got = seen(options).expect("ranks");
        assert_eq!(got.len(), one.len());
        for ((step, got), (expected_step, one)) in got.iter().zip(&one) {
            assert_eq!((step, got.rows, got.positives), (expected_step, one.rows, one.positives));
            let (got, one) = (got.loss.expect("a loss"), one.loss.expect("a loss"));
            assert!((got - one).abs() <= 1e-6, "step {step}, {plan}: {got}, not {one}");
        }
    }
}

#[test]
fn replicas_are_equal_in_every_evaluation() {
    let folder = Folder::new();
    // With plain SGD the mean of the replicas doesn't depend on the layout of the groups only if it
    // was taken: a rank that evaluates with rows of its own replica sees other weights.
    let base = Options {
        world: Some(4),
        plan: Some("table-wise".into()),
        replicas: Some(2),
        sync: Some(SyncKind::Weights),
        sync_every: Some(7),
        lr: Some(0.3),
        dense_lr: Some(0.02),
        initial_accumulator: Some(0.1),
        steps: Some(10),
        replica_scaling: Some(ScalingKind::Moment),
        ..frozen(&folder, 300, false)
    };
    // The same steps, once evaluated in the middle of a period and once ended there.
    let during = seen(Options { eval_every: Some(5), ..base.clone() }).expect("a run");
    let ended = seen(Options { steps: Some(5), ..base.clone() }).expect("a run");
    assert_eq!(during[0], ended[0]);
    // A checkpoint saved there scores the same in one process, which has no replicas.
    let dir = folder.path("saved");
    run(Options { steps: Some(5), save: Some(dir.clone()), ..base }).expect("a run");
    let options = emb_dlrm::train::ScoreOptions {
        data: vec![folder.path("eval-300.txt")],
        bad_rows: emb_dlrm::config::BadRows::Error,
        batch_size: 64,
        device: None,
        precision: None,
        threads: Some(1),
    };
    let mut saved = emb_dlrm::train::Saved::load(&dir, options).expect("a checkpoint");
    let (report, _) = saved.evaluate().expect("an evaluation");
    assert_eq!(report, ended[0].1);
}
