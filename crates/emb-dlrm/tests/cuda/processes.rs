//! Ranks that meet by an id, as processes do, each with data and options of its own.

use crate::support::{Folder, criteo, devices, on_gpus, options, outcome, over};
use emb_comm::UniqueId;
use emb_dlrm::checkpoint::Manifest;
use emb_dlrm::config::{Options, TransportKind};
use emb_dlrm::train::{Peers, Report, Silent, train_among};
use emb_dlrm::{Error, Result};
use std::time::{Duration, Instant};

/// What rank `rank` of as many as there are hosts does in its process.
fn process(rank: usize, hosts: &[&str], id: UniqueId, mut options: Options) -> Result<Report> {
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    let peers = Peers::by_nccl(&mut options, rank, hosts, id.to_bytes())?;
    let config = peers.resolve(options)?;
    train_among(&config, peers, &mut Silent)
}

/// Every rank in a thread that shares nothing with the others.
fn processes(
    hosts: &[&str],
    options: impl Fn(usize) -> Options + Sync,
) -> Vec<Result<Report, Error>> {
    let id = UniqueId::new().expect("an id");
    std::thread::scope(|scope| {
        let start = |rank| {
            let options = options(rank);
            scope.spawn(move || process(rank, hosts, id, options))
        };
        let threads: Vec<_> = (0..hosts.len()).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn processes_over_nccl_train_to_the_bits_of_threads_over_nccl() {
    let Some(data) = criteo("train").filter(|_| devices(4)) else { return };
    let folder = Folder::new();
    for (hosts, replicas) in [(&["a", "a"][..], 1), (&["a"; 4][..], 2)] {
        let world = hosts.len() as u32;
        let options = Options { steps: Some(6), ..options(&data) };
        let options = on_gpus(&over(&options, world, replicas), Some(TransportKind::Nccl));
        let threads = outcome(&options);
        let dir = folder.path(&format!("{world}"));
        let reports = processes(hosts, |_| Options { save: Some(dir.clone()), ..options.clone() });
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
    let reports = processes(&["a", "a"], |rank| Options {
        seed: Some(1 + rank as u64),
        steps: Some(2),
        ..base.clone()
    });
    for report in reports {
        let error = report.expect_err("other seeds").to_string();
        assert_eq!(error, "rank 0 was started with --seed 1, rank 1 with 2");
    }
}

/// Rank 1 of two is started with these options, rank 0 with those: both name rank 1's `words`.
fn told(base: &Options, other: &Options, words: &[&str]) {
    let began = Instant::now();
    let reports = processes(&["a", "a"], |rank| if rank == 1 { other } else { base }.clone());
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
