//! Ranks that meet by an id, as processes do, each with data and options of its own.

use crate::support::{Folder, criteo, devices, on_gpus, options, outcome, over};
use emb_comm::UniqueId;
use emb_dlrm::checkpoint::Manifest;
use emb_dlrm::config::{Options, TransportKind};
use emb_dlrm::train::{Event, Observer, Peers, Report, train_among};
use emb_dlrm::{Error, Result};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Cuts a connection after a few steps.
#[derive(Default)]
struct Cuts(Option<TcpStream>);

impl Observer for Cuts {
    fn event(&mut self, event: Event<'_>) {
        if let Some(stream) = self.0.take_if(|_| matches!(event, Event::Step { step: 5, .. })) {
            stream.shutdown(Shutdown::Both).expect("it was open");
        }
    }
}

/// What rank `rank` of as many as there are hosts does in its process, with connections to tell of
/// failures, if there are any.
fn process(
    rank: usize,
    hosts: &[&str],
    id: UniqueId,
    lines: Vec<TcpStream>,
    mut cuts: Cuts,
    mut options: Options,
) -> Result<Report> {
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    let peers = if lines.is_empty() {
        Peers::by_nccl(&mut options, rank, hosts, id.to_bytes())?
    } else {
        Peers::by_nccl_over(&mut options, rank, hosts, id.to_bytes(), lines)?
    };
    let config = peers.resolve(options)?;
    train_among(&config, peers, &mut cuts)
}

/// The connections of every rank: those of rank 0 to the others, theirs to it.
fn connected(world: usize) -> Vec<Vec<TcpStream>> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut lines = vec![Vec::new()];
    for _ in 1..world {
        lines.push(vec![TcpStream::connect(address).expect("a connection")]);
        lines[0].push(listener.accept().expect("a connection").0);
    }
    lines
}

/// Every rank in a thread that shares nothing with the others but `lines`.
fn processes(
    hosts: &[&str],
    lines: Vec<Vec<TcpStream>>,
    cuts: Cuts,
    options: impl Fn(usize) -> Options + Sync,
) -> Vec<Result<Report, Error>> {
    let id = UniqueId::new().expect("an id");
    let (mut lines, mut cuts) = (lines.into_iter(), Some(cuts));
    std::thread::scope(|scope| {
        let start = |rank| {
            let (options, lines) = (options(rank), lines.next().unwrap_or_default());
            // The first observes.
            let cuts = cuts.take().unwrap_or_default();
            scope.spawn(move || process(rank, hosts, id, lines, cuts, options))
        };
        let threads: Vec<_> = (0..hosts.len()).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn processes_over_nccl_train_to_the_bits_of_threads_over_nccl() {
    let Some(data) = criteo("train").filter(|_| devices(4)) else { return };
    let folder = Folder::new();
    let cases = [(&["a", "a"][..], 1, Vec::new()), (&["a"; 4][..], 2, connected(4))];
    for (hosts, replicas, lines) in cases {
        let world = hosts.len() as u32;
        let options = Options { steps: Some(6), ..options(&data) };
        let options = on_gpus(&over(&options, world, replicas), Some(TransportKind::Nccl));
        let threads = outcome(&options);
        let dir = folder.path(&format!("{world}"));
        let reports = processes(hosts, lines, Cuts::default(), |_| Options {
            save: Some(dir.clone()),
            ..options.clone()
        });
        for report in reports {
            let report = report.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(report.loss, threads.report.loss);
            let exchange = report.exchange.expect("ranks");
            assert_eq!(exchange.world, hosts.len());
        }
        let file = Manifest::read(&dir).expect("a checkpoint").path(&dir);
        assert!(std::fs::read(file).expect("tensors") == threads.bytes, "{world}: other bits");
    }
}

#[test]
fn processes_over_nccl_that_were_started_otherwise_are_named() {
    let Some(data) = criteo("train").filter(|_| devices(2)) else { return };
    let base = on_gpus(&over(&options(&data), 2, 1), Some(TransportKind::Nccl));
    let reports = processes(&["a", "a"], Vec::new(), Cuts::default(), |rank| Options {
        seed: Some(1 + rank as u64),
        steps: Some(2),
        ..base.clone()
    });
    for report in reports {
        let error = report.expect_err("other seeds").to_string();
        assert_eq!(error, "rank 0 was started with --seed 1, rank 1 with 2");
    }
}

/// What ranks of four say while rank 2 fails, and that they do so long before the timeout.
fn say(
    lines: Vec<Vec<TcpStream>>,
    cut: Option<TcpStream>,
    options: impl Fn(usize) -> Options + Sync,
) -> Vec<String> {
    let began = Instant::now();
    let reports = processes(&["a"; 4], lines, Cuts(cut), options);
    let took = began.elapsed();
    assert!(took < Duration::from_mins(1), "the timeout is five times as long: {took:?}");
    reports.into_iter().map(|report| report.expect_err("rank 2 fails").to_string()).collect()
}

#[test]
fn u28_a_process_that_fails_before_it_joins_or_is_cut_off_at_work_is_named_by_all() {
    let Some(data) = criteo("train").filter(|_| devices(4)) else { return };
    // Two dimensions: groups, replica sets, and duplicates on threads beside the rank's.
    let base = on_gpus(&over(&options(&data), 4, 2), Some(TransportKind::Nccl));
    // Before: its options make no sense. The others wait for it in the library.
    let wrong = |rank| Options { lr: (rank == 2).then_some(-1.0), ..base.clone() };
    let errors = say(connected(4), None, wrong);
    assert!(errors[2].contains("lr"), "{}", errors[2]);
    for rank in [0, 1, 3] {
        let error = &errors[rank];
        let text = format!("on rank {rank} in step 0: rank 2 gave up in step 0: {}", errors[2]);
        assert!(error.contains(&text), "{error} does not say {text}");
    }
    // At work: its connection breaks, as that of a process that is killed.
    let lines = connected(4);
    let cut = lines[2][0].try_clone().expect("the same connection");
    let errors = say(lines, Some(cut), |_| base.clone());
    for rank in [0, 1, 3] {
        let error = &errors[rank];
        let text = format!("on rank {rank} in step ");
        assert!(error.contains(&text) && error.contains(": rank 2 is gone: "), "{error}");
    }
}

/// Rank 1 of two is started with these options, rank 0 with those: both name rank 1's `words`.
fn told(base: &Options, other: &Options, words: &[&str]) {
    let began = Instant::now();
    let reports = processes(&["a", "a"], Vec::new(), Cuts::default(), |rank| {
        if rank == 1 { other } else { base }.clone()
    });
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    for (rank, report) in reports.into_iter().enumerate() {
        let error = report.expect_err("rank 1 fails").to_string();
        assert!(rank == 1 || error.contains("rank 1 gave up"), "{error}");
        for word in words {
            assert!(error.contains(word), "rank {rank}: {word:?} is missing from: {error}");
        }
    }
}

#[test]
fn u40_what_a_process_over_nccl_cannot_read_is_told_to_the_others() {
    let Some(data) = criteo("train").filter(|_| devices(2)) else { return };
    let folder = Folder::new();
    for replicas in [1, 2] {
        let base = Options { steps: Some(9), ..options(&data) };
        let base = on_gpus(&over(&base, 2, replicas), Some(TransportKind::Nccl));
        let none = folder.path("none.tsv");
        told(&base, &Options { data: vec![none], ..base.clone() }, &["none.tsv: No such file"]);
        told(&base, &Options { batch_size: Some(0), ..base.clone() }, &["batch-size"]);
    }
}
