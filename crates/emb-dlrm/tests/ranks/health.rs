//! The ranks' health: shares against the timeline, the slow rank by name, bytes against the plan.

use crate::slowed::{Slow, Slowed};
use crate::support::{Folder, options};
use emb_comm::{Collective, Lane, Local, Span, Trace, Traced};
use emb_dlrm::config::{Config, LayoutKind, ModelKind, Options, SyncKind};
use emb_dlrm::data::{Feed, Share};
use emb_dlrm::profile::{ProfileOptions, profile, workload_text};
use emb_dlrm::train::{Event, Health, Observer, Samples, Watch, build_rank, train};
use emb_dlrm::{Error, sources};
use emb_kernels::{Cpu, CpuOptions};
use serde_json::Value;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// What was said of the ranks' health.
#[derive(Default)]
struct Looks(Vec<Health>);

impl Observer for Looks {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Health(health) = event {
            self.0.push(health.clone());
        }
    }
}

/// Four ranks with equal shares of everything, looked at every 20 steps.
fn base() -> Options {
    Options {
        world: Some(4),
        plan: Some("row-wise".into()),
        threads_per_rank: Some(1),
        health: Some(20),
        steps: Some(20),
        batch_size: Some(512),
        bottom: Some(vec![256, 128]),
        top: Some(vec![256, 128]),
        ..options("synthetic".as_ref(), ModelKind::Dlrm)
    }
}

fn looks(options: Options) -> Vec<Health> {
    let mut looks = Looks::default();
    let config = Config::resolve(options).expect("consistent");
    train(&config, &mut looks).unwrap_or_else(|error| panic!("{error}"));
    looks.0
}

/// What a run with a slow rank leaves behind.
struct Ended {
    looks: Vec<Health>,
    /// Of each rank.
    spans: Vec<Vec<Span>>,
    /// Seconds of a step, and of telling the watch of one without a look.
    step: f64,
    told: f64,
}

/// Calls by which the time of one is measured.
const CALLS: u32 = 2000;

/// Steps with one rank `factor` times as slow.
fn slowed(options: Options, slow: usize, factor: f64) -> Ended {
    let config = Config::resolve(options).expect("consistent");
    let ranks = config.ranks.as_ref().expect("ranks");
    let source = sources::training(&config).expect("a source");
    let feeds = Feed::start(source, config.batch_size, ranks.world()).expect("feeds");
    let feeds: Vec<_> = feeds.into_iter().map(|feed| Mutex::new(Some(feed))).collect();
    let begin = Instant::now();
    let ended = emb_comm::run(ranks.world(), &emb_comm::Options::default(), |world: &mut Local| {
        let rank = world.rank();
        let mut feed = feeds[rank].lock().expect("whole").take().expect("once");
        let trace = Trace::from(begin);
        let own = world.split(Some(0), rank)?.expect("every rank has a color");
        let factor = if rank == slow { factor } else { 1.0 };
        let mut own = Slowed::new(Traced::new(own, trace.clone()), Slow::new(factor));
        let cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let mut trainer = build_rank(&mut own, cpu, &config, ranks)?;
        trainer.set_trace(trace.clone());
        let mut watch = Watch::new(&config, ranks, &mut trainer)?.expect("wanted");
        let (mut looks, mut ids) = (Vec::new(), None);
        let begun = Instant::now();
        for _ in 0..config.options.steps.expect("a length in steps") {
            let Share { batch, rows, .. } = feed.next()?.expect("synthetic data has no end");
            let (dense, labels) = (&batch.dense[..], &batch.labels[..]);
            let samples = Samples { dense, labels, sparse: batch.sparse.as_ref() };
            trainer.train_share(samples, rows)?;
            looks.extend(watch.after_step(&mut trainer, batch.sparse.as_ref())?);
            ids = Some(batch.sparse.clone());
        }
        let step = begun.elapsed().as_secs_f64() / f64::from(trainer.step() as u32);
        let (spans, ids) = (trace.take(), ids.expect("a step"));
        // No look is due again: the number of steps stands.
        trainer.resume(trainer.step() + 1, trainer.samples());
        let begun = Instant::now();
        for _ in 0..CALLS {
            watch.after_step(&mut trainer, ids.as_ref())?;
        }
        let told = begun.elapsed().as_secs_f64() / f64::from(CALLS);
        Ok::<_, Error>((looks, spans, step, told))
    });
    let ended = ended.unwrap_or_else(|failure| panic!("{failure}"));
    let mut ended = ended.into_iter();
    let (looks, spans, step, told) = ended.next().expect("rank 0");
    let spans = std::iter::once(spans).chain(ended.map(|(_, spans, ..)| spans)).collect();
    Ended { looks, spans, step, told }
}

/// A span of a timeline; microseconds.
#[derive(Debug)]
struct Drawn {
    name: String,
    phase: bool,
    step: u64,
    start: f64,
    end: f64,
    waited: f64,
}

fn drawn(spans: &[Vec<Span>]) -> Vec<Vec<Drawn>> {
    let one = |span: &Span| Drawn {
        name: span.name.to_owned(),
        phase: span.lane == Lane::Phases,
        step: span.step,
        start: span.start,
        end: span.start + span.duration,
        waited: span.waited,
    };
    let own = |span: &&Span| !matches!(span.lane, Lane::Beside(_));
    spans.iter().map(|spans| spans.iter().filter(own).map(one).collect()).collect()
}

/// A timeline of four ranks from its file.
fn read(path: &Path) -> Vec<Vec<Drawn>> {
    let text = std::fs::read_to_string(path).expect("a timeline");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of_rank = |rank: u64| {
        let own = move |event: &&Value| event["pid"] == rank && event["ph"] == "X";
        let own = events.iter().filter(own).filter(|event| event["tid"].as_u64() < Some(2));
        own.map(|event| {
            let number = |value: &Value| value.as_f64().expect("a number");
            let start = number(&event["ts"]);
            Drawn {
                name: event["name"].as_str().expect("a name").to_owned(),
                phase: event["tid"] == 0,
                step: event["args"]["step"].as_u64().expect("a step"),
                start,
                end: start + number(&event["dur"]),
                waited: event["args"]["waited"].as_f64().unwrap_or(0.0),
            }
        })
        .collect()
    };
    (0..4).map(of_rank).collect()
}

/// Exposed and waiting parts of the steps that a look is at, as a timeline has them: a step is over
/// with its update of the dense part, or with the look that follows.
fn shares(timeline: &[Vec<Drawn>], health: &Health) -> [f64; 2] {
    let (mut time, mut exposed, mut waiting) = (0.0, 0.0, 0.0);
    for spans in timeline {
        let over = |step: u64| {
            let ends = spans.iter().filter(move |span| {
                span.step == step && span.phase && ["dense update", "health"].contains(&&*span.name)
            });
            ends.map(|span| span.end)
        };
        let begin = over(health.step - health.steps).fold(0.0, f64::max);
        let end = over(health.step).fold(f64::MAX, f64::min);
        time += end - begin;
        for span in spans.iter().filter(|span| span.start >= begin && span.end <= end) {
            if !span.phase {
                exposed += span.end - span.start;
                waiting += span.waited;
            } else if ["dense sums", "sync wait"].contains(&&*span.name) {
                // Putting sums in place, a copy of a small model, is drawn with the waiting.
                exposed += span.end - span.start;
                waiting += span.end - span.start;
            }
        }
    }
    [exposed / time, waiting / time]
}

#[track_caller]
fn assert_as_drawn(timeline: &[Vec<Drawn>], looks: &[Health]) {
    for health in looks {
        let [exposed, waiting] = shares(timeline, health);
        let said = [health.exposed.total(), health.waiting];
        eprintln!(
            "exposed {:.4}, drawn {exposed:.4}; waiting {:.4}, drawn {waiting:.4}",
            said[0], said[1]
        );
        assert!((said[0] - exposed).abs() < 0.02, "exposed {}, drawn {exposed}", said[0]);
        assert!((said[1] - waiting).abs() < 0.02, "waiting {}, drawn {waiting}", said[1]);
    }
}

#[test]
fn shares_are_those_of_the_timeline_of_the_same_run() {
    let folder = Folder::new();
    let path = folder.path("run.json");
    let base =
        Options { timeline: Some(path.clone()), health: Some(10), steps: Some(30), ..base() };
    let replicas = Options {
        replicas: Some(2),
        layout: Some(LayoutKind::Contiguous),
        sync: Some(SyncKind::Gradients),
        nodes: Some(2),
        ..base.clone()
    };
    let beside = Options { sync: Some(SyncKind::TouchedRows), ..replicas.clone() };
    for options in [base, replicas, beside] {
        let looks = looks(options);
        let steps: Vec<_> = looks.iter().map(|health| (health.step, health.steps)).collect();
        assert_eq!(steps, [(10, 9), (20, 10), (30, 10)], "the first step is left out");
        assert_as_drawn(&read(&path), &looks);
    }
}

#[test]
fn a_rank_slowed_three_times_is_named_within_twenty_steps() {
    let Ended { looks, spans, .. } = slowed(base(), 2, 3.0);
    assert_as_drawn(&drawn(&spans), &looks);
    let slow = looks[0].slowest.unwrap_or_else(|| panic!("{:?}", looks[0]));
    eprintln!("{slow:?}, waiting {:.3}", looks[0].waiting);
    assert_eq!((looks[0].step, slow.rank), (20, 2));
    assert!(slow.compute_ratio > 1.5, "{slow:?}");
    // Most of the waiting where every rank has a core; where they share busy ones, they wait for
    // those, too.
    assert!(slow.waiting_caused > 0.01, "{slow:?}");
    assert_eq!(looks[0].advice[0], "rank 2 is slow: check that machine");
}

#[test]
fn no_rank_is_named_when_none_is_slow_and_watching_costs_next_to_nothing() {
    let Ended { looks, step, told, .. } = slowed(Options { steps: Some(60), ..base() }, 2, 1.0);
    assert_eq!(looks.len(), 3);
    for health in looks {
        assert_eq!(health.slowest, None, "{health:?}");
    }
    eprintln!("a step takes {:.1} us, the watch {:.2} us of it", 1e6 * step, 1e6 * told);
    assert!(told < 0.005 * step, "{told} of {step} seconds a step");
}

/// The look-ups of a run, as a file.
fn profiled(folder: &Folder, options: &Options) -> std::path::PathBuf {
    let config = Config::resolve(options.clone().alone()).expect("consistent");
    let options = ProfileOptions { memory_bytes: 1 << 24, samples: Some(20_000), hot_rows: 0 };
    let profile = profile(&config, options, |_| {}).expect("a profile");
    folder.file("profile.json", &workload_text(&profile.workload).expect("text"))
}

#[test]
fn bytes_are_as_planned_with_the_look_ups_of_a_profile() {
    let folder = Folder::new();
    let replicas = Options {
        replicas: Some(2),
        sync: Some(SyncKind::TouchedRows),
        sync_every: Some(4),
        nodes: Some(2),
        steps: Some(60),
        ..base()
    };
    let workload = Some(profiled(&folder, &replicas));
    for options in [base(), replicas] {
        let looks = looks(Options { workload: workload.clone(), ..options });
        let last = looks.last().expect("a look");
        for (name, bytes) in [("exchange", last.exchange_bytes), ("sync", last.sync_bytes)] {
            let (counted, planned) = (bytes.counted.expect("over"), bytes.planned.expect("known"));
            eprintln!("{name}: {counted:?} counted, {planned:?} planned");
            for (counted, planned) in
                [(counted.intra_node, planned.intra_node), (counted.inter_node, planned.inter_node)]
            {
                assert!((counted - planned).abs() <= 0.05 * planned, "{name}: {bytes:?}");
            }
        }
        let again = |advice: &&String| advice.contains("profile again");
        assert_eq!(last.advice.iter().find(again), None);
    }
}

#[test]
fn without_look_ups_only_what_needs_none_is_predicted() {
    let last = looks(base()).pop().expect("a look");
    let (counted, planned) = (last.exchange_bytes.counted, last.exchange_bytes.planned);
    let (counted, planned) = (counted.expect("counted").total(), planned.expect("known").total());
    assert!(counted > 0.0 && (counted - planned).abs() <= 0.02 * planned, "{last:?}");
    let wire = Some("forward=bf16,backward=int8".parse().expect("formats"));
    let narrow = looks(Options { wire, steps: Some(20), ..base() }).pop().expect("a look");
    let bytes = narrow.exchange_bytes;
    let (narrow, planned) =
        (bytes.counted.expect("counted").total(), bytes.planned.expect("known").total());
    assert!(
        (narrow - planned).abs() <= 0.02 * planned && narrow < 0.9 * counted,
        "{bytes:?}, {counted}"
    );
    let replicas = Options { replicas: Some(2), ..base() };
    let last = looks(replicas).pop().expect("a look");
    assert!(last.exchange_bytes.planned.is_some());
    assert!(last.sync_bytes.counted.expect("counted").total() > 0.0);
    assert_eq!(last.sync_bytes.planned, None, "which rows replicas touch is not known");
}

#[test]
fn look_ups_that_changed_are_named_by_table() {
    let folder = Folder::new();
    let path = profiled(&folder, &base());
    let text = std::fs::read_to_string(&path).expect("a workload");
    let mut spec: Value = serde_json::from_str(&text).expect("JSON");
    spec["tables"][1]["pooling_factor"] = 0.5.into();
    let path = folder.file("other.json", &spec.to_string());
    let last = looks(Options { workload: Some(path), ..base() }).pop().expect("a look");
    let named = |advice: &String| advice.contains("\"C2\"") && advice.contains("profile again");
    assert!(last.advice.iter().any(named), "{:?}", last.advice);
}

#[test]
fn evaluations_are_no_part_of_the_steps() {
    let folder = Folder::new();
    let data = folder.file("train.txt", &crate::support::criteo(640, 1));
    let files = Options {
        data: vec![data.clone()],
        batch_size: Some(32),
        steps: Some(20),
        replicas: Some(2),
        sync_every: Some(3),
        ..base()
    };
    let alone = looks(files.clone()).pop().expect("a look");
    let evaluating = Options { eval: vec![data], eval_every: Some(4), ..files };
    let health = looks(evaluating).pop().expect("a look");
    assert_eq!((health.step, health.steps), (20, 19));
    assert_eq!(health.exchange_bytes.counted, alone.exchange_bytes.counted);
}
