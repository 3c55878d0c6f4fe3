//! Reports from the field, each with its id, over ranks.

use crate::support::{
    Folder, Outcome, assert_near, criteo, labelled, options, outcome, outcome_in, run as train_on,
};
use emb_comm::{Collective, Local, run};
use emb_dlrm::config::{Config, ModelKind, OptimizerKind, Options, ScalingKind, SyncKind};
use emb_dlrm::data::Feed;
use emb_dlrm::metrics::EvalReport;
use emb_dlrm::sharded::{ShardedBags, ShardedEmbeddings, WholeTable};
use emb_dlrm::train::{Event, Observer, Samples, Trainer, build_rank, train};
use emb_dlrm::{Error, sources};
use emb_kernels::{Cpu, CpuOptions, Feature, Init, Jagged, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind, Schedule};
use emb_shard::{Layout, Mesh, Placement, PlanBuilder, RowCut, Table, TableOptions, Tables};
use std::time::{Duration, Instant};

/// Steps of a run: rows and learning rates.
#[derive(Default)]
struct Steps(Vec<(usize, f64, f64)>);

impl Observer for Steps {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Step { rows, rates, .. } = event {
            self.0.push((rows, rates.tables, rates.dense));
        }
    }
}

fn steps(options: Options) -> Vec<(usize, f64, f64)> {
    let mut steps = Steps::default();
    train(&Config::resolve(options).expect("consistent"), &mut steps).expect("a run");
    steps.0
}

#[test]
fn u20_a_schedule_reaches_tables_on_every_rank_and_the_dense_part() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(60, 1));
    for (plan, replicas) in [("table-wise", None), ("data-parallel", None), ("row-wise", Some(2))] {
        let base = Options {
            world: Some(4),
            plan: Some(plan.into()),
            replicas,
            optimizer: Some(OptimizerKind::Sgd),
            dense_optimizer: Some(emb_dlrm::config::DenseKind::Sgd),
            batch_size: Some(20),
            lr: Some(0.4),
            dense_lr: Some(0.4),
            steps: Some(3),
            ..options(&data, ModelKind::Dlrm)
        };
        let halving = Options { lr_decay: Some("step:1:0.5".into()), ..base.clone() };
        let rates = [(20, 0.4, 0.4), (20, 0.2, 0.2), (20, 0.1, 0.1)];
        assert_eq!(steps(halving.clone()), rates);
        let whole = outcome(halving.clone());
        // Three runs of a step, each at the rate of that step; and a schedule that goes on.
        let mut last: Option<Outcome> = None;
        for (number, rate) in [0.4, 0.2, 0.1].into_iter().enumerate() {
            let load = number.checked_sub(1).map(|before| folder.path(&before.to_string()));
            let (lr, dense_lr, steps) = (Some(rate), Some(rate), Some(1));
            let options = Options { load, lr, dense_lr, steps, ..base.clone() };
            last = Some(outcome_in(options, &folder.path(&number.to_string())));
        }
        assert!(last.expect("three runs").bytes == whole.bytes, "{plan}");
        outcome_in(Options { steps: Some(2), ..halving.clone() }, &folder.path("two"));
        let (load, steps) = (Some(folder.path("two")), Some(1));
        let third = outcome(Options { load, steps, ..halving });
        assert!(third.bytes == whole.bytes, "{plan}");
    }
}

#[test]
fn u20_rows_wherever_they_live_end_where_the_schedule_says() {
    let schedule = Schedule::piecewise(0.1, vec![(2, 0.2), (3, 0.4)]).expect("a schedule");
    let sgd = Optimizer::new(RuleKind::Sgd);
    let names = ["whole", "cut", "everywhere"];
    let spec =
        |name: &str| TableSpec { init: Init::Constant(0.0), ..TableSpec::new(name, 4, 2, sgd) };
    let specs = names.map(spec);
    let tables =
        names.map(|name| Table::new(name, 4, 2, TableOptions::default()).expect("a table"));
    let tables = Tables::new(tables.to_vec()).expect("tables");
    let plan = PlanBuilder::new(Mesh::new(2, 2, Layout::Strided).expect("a mesh"))
        .table("cut", Placement::RowWise { cut: RowCut::Even })
        .table("everywhere", Placement::DataParallel)
        .build(&tables)
        .expect("a plan");
    let features: Vec<Feature> = (0..3)
        .map(|table| Feature { name: names[table].into(), table, pooling: Pooling::Sum })
        .collect();
    let tables = run(2, &emb_comm::Options::default(), |world| {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let (features, rates) = (features.clone(), vec![1.0; 3]);
        let mut sharded =
            ShardedEmbeddings::new(world, &mut cpu, &plan, &specs, features, rates, 0, 1)?;
        // The same row on both ranks, half of a gradient of 1 each.
        let batch = Jagged::from_lengths(&names, 1, &[1; 3], vec![3; 3], None)?;
        for step in 1..=3 {
            // A resumed run has the schedule as text and the step, nothing else.
            let schedule: Schedule = schedule.to_string().parse().expect("a schedule");
            let routed = sharded.route(batch.as_ref())?;
            let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
            pooled.backward(&mut sharded, &mut cpu, &[0.5; 6], schedule.lr(step), step)?;
        }
        (0..3).map(|t| sharded.gather_table(&mut cpu, t)).collect::<Result<Vec<_>, _>>()
    });
    for table in tables.expect("three steps").iter().flatten() {
        assert_eq!(table.weights[..6], [0.0; 6], "untouched rows stay");
        for weight in &table.weights[6..] {
            assert!((weight + 0.7).abs() < 1e-6, "{weight}");
        }
    }
}

#[test]
fn u26_a_short_last_batch_over_ranks() {
    let folder = Folder::new();
    let data = folder.file("33.txt", &criteo(33, 1));
    let alone = Options {
        eval: vec![data.clone()],
        batch_size: Some(16),
        epochs: Some(2),
        lr: Some(0.05),
        initial_accumulator: Some(0.1),
        ..options(&data, ModelKind::Dlrm)
    };
    let one = outcome(alone.clone());
    let begun = Instant::now();
    for plan in ["table-wise", "row-wise", "column-wise", "data-parallel"] {
        let four = Options { world: Some(4), plan: Some(plan.into()), ..alone.clone() };
        let rows: Vec<usize> = steps(four.clone()).into_iter().map(|(rows, ..)| rows).collect();
        assert_eq!(rows, [16, 16, 1, 16, 16, 1]);
        let got = outcome(four.clone());
        assert_eq!(got.report.eval.expect("an evaluation").rows, 33);
        // A step of one row divides by 1, or this would not hold.
        assert_near(&got, &one, 1e-5, plan);
        let dropped = train_on(Options { drop_last: Some(true), ..four }).expect("a run");
        assert_eq!((dropped.steps, dropped.samples), (4, 64));
        assert_eq!(dropped.eval.expect("an evaluation").rows, 33);
    }
    assert!(begun.elapsed() < Duration::from_mins(1));
    let three = folder.file("3.txt", &criteo(3, 1));
    let options = Options { data: vec![three], world: Some(4), ..alone };
    let report = train_on(options).expect("three rows on four ranks");
    assert_eq!((report.steps, report.samples), (2, 6));
}

#[test]
fn u26_a_rank_whose_own_loader_ends_early() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(80, 1));
    for plan in ["table-wise", "row-wise", "data-parallel"] {
        let plan = Some(plan.to_owned());
        let options = Options { world: Some(4), plan, ..options(&data, ModelKind::Dlrm) };
        let config = Config::resolve(options).expect("consistent");
        let ranks = config.ranks.as_ref().expect("ranks");
        let begun = Instant::now();
        let timeout = emb_comm::Options::default().with_timeout(Duration::from_secs(5));
        let failure = run(4, &timeout, |world: &mut Local| {
            let cpu = Cpu::new(CpuOptions { threads: 1 })?;
            let mut trainer = build_rank(world, cpu, &config, ranks)?;
            let source = sources::training(&config)?;
            let mut feed = Feed::start(source, 8, 1)?.pop().expect("one end");
            let steps = if world.rank() == 2 { 3 } else { 5 };
            for _ in 0..steps {
                let share = feed.next()?.expect("rows");
                let (batch, rows) = (share.batch, share.rows * 4);
                let (dense, labels) = (&batch.dense[..], &batch.labels[..]);
                let samples = Samples { dense, labels, sparse: batch.sparse.as_ref() };
                trainer.train_share(samples, rows)?;
            }
            Ok::<_, Error>(())
        });
        let failure = failure.expect_err("a rank ends early");
        assert!(begun.elapsed() < Duration::from_secs(15));
        assert_eq!((failure.ranks(), failure.step()), (&[2][..], 4), "{failure}");
        assert!(failure.to_string().contains("rank 2"), "{failure}");
    }
}

/// Evaluates the initial model.
fn evaluated(folder: &Folder, eval: &str, world: u32) -> EvalReport {
    let data = folder.file("train.txt", &criteo(8, 1));
    let eval = folder.file("eval.txt", eval);
    let options = Options {
        eval: vec![eval],
        eval_every: Some(1),
        steps: Some(2),
        lr: Some(0.0),
        dense_lr: Some(0.0),
        world: Some(world),
        plan: (world > 1).then(|| "table-wise".into()),
        ..options(&data, ModelKind::Dlrm)
    };
    train_on(options).expect("training goes on").eval.expect("an evaluation")
}

#[test]
fn u39_one_class_on_some_ranks_or_on_all() {
    let folder = Folder::new();
    // Of the 40 rows of the only batch, three ranks have positives alone.
    let most = labelled(40, 3, |row, _| u8::from(row < 30 || row % 2 == 0).to_string());
    let one = evaluated(&folder, &most, 1);
    assert_eq!((one.positives, one.negatives), (35, 5));
    assert!(one.auc.is_some());
    for class in [0_u8, 1] {
        let all = labelled(3, 4, |_, _| class.to_string());
        let one = evaluated(&folder, &all, 1);
        assert_eq!((one.rows, one.auc, one.normalized_entropy), (3, None, None));
        assert_eq!(one.positives, u64::from(class) * 3);
        for world in [2, 4] {
            assert_eq!(evaluated(&folder, &all, world), one);
        }
    }
    for world in [2, 4] {
        assert_eq!(evaluated(&folder, &most, world), one);
    }
}

/// All tables as the group of this rank has them.
fn tables(
    trainer: &mut Trainer<Cpu, ShardedBags<Cpu, Local>, Local>,
) -> Result<Vec<WholeTable>, Error> {
    let (backend, model) = (&mut trainer.backend, &mut trainer.model);
    let gathered = (0..3).map(|t| model.embeddings.tables_mut().gather_table(backend, t));
    Ok(gathered.collect::<Result<_, _>>()?)
}

#[test]
fn u45_every_third_step_and_before_checkpoint_evaluation_and_exit() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &criteo(70, 1));
    let base = Options {
        world: Some(4),
        plan: Some("row-wise".into()),
        replicas: Some(2),
        sync: Some(SyncKind::Weights),
        sync_every: Some(3),
        replica_scaling: Some(ScalingKind::Moment),
        batch_size: Some(10),
        lr: Some(0.1),
        dense_lr: Some(0.02),
        initial_accumulator: Some(0.1),
        steps: Some(7),
        ..options(&data, ModelKind::Dlrm)
    };
    let saved = outcome(base.clone());
    let config =
        Config::resolve(Options { threads_per_rank: Some(1), ..base }).expect("consistent");
    let ranks = config.ranks.as_ref().expect("ranks");
    let source = sources::training(&config).expect("a file");
    let feeds = Feed::start(source, 10, 4).expect("feeds");
    let feeds: Vec<_> = feeds.into_iter().map(|feed| std::sync::Mutex::new(Some(feed))).collect();
    let held = run(4, &emb_comm::Options::default(), |world: &mut Local| {
        let cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let mut trainer = build_rank(world, cpu, &config, ranks)?;
        let mut feed = feeds[world.rank()].lock().expect("whole").take().expect("once");
        for step in 1..=7 {
            let share = feed.next()?.expect("rows");
            let (batch, rows) = (share.batch, share.rows);
            let (dense, labels) = (&batch.dense[..], &batch.labels[..]);
            let samples = Samples { dense, labels, sparse: batch.sparse.as_ref() };
            trainer.train_share(samples, rows)?;
            assert_eq!(trainer.model.embeddings.tables().unsynced_steps(), step % 3);
        }
        let before = tables(&mut trainer)?;
        trainer.sync()?;
        let after = tables(&mut trainer)?;
        Ok::<_, Error>((before, after))
    });
    let held = held.expect("seven steps");
    // Ranks 0 and 1 are of different groups.
    assert_ne!(held[0].0, held[1].0, "replicas differ between syncs");
    for (_, after) in &held {
        for (table, name) in after.iter().zip(["C1", "C2", "C3"]) {
            assert_eq!(table.weights, saved.tensors[&format!("{name}/weight")]);
            assert_eq!(table.state[0], saved.tensors[&format!("{name}/sum")]);
        }
    }
}
