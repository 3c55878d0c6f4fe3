//! What is refused where there are devices.

use crate::support::{Folder, devices, on_gpus, options, table};
use emb_dlrm::config::{Config, DeviceKind, IdPolicy, Options, TransportKind};
use emb_dlrm::train::{Silent, train};

fn refusal(options: Options) -> String {
    let done = Config::resolve(options).and_then(|config| train(&config, &mut Silent));
    done.expect_err("refused").to_string()
}

#[test]
fn u40_nccl_takes_one_rank_a_device() {
    if !devices(1) {
        return;
    }
    let count = emb_cuda::Device::count().expect("a driver");
    let world = Some(count as u32 + 1);
    let base = Options { world, steps: Some(1), ..options("synthetic".as_ref()) };
    let message = refusal(on_gpus(&base, Some(TransportKind::Nccl)));
    let expected = format!("--transport nccl takes one rank a device: --world is {}", count + 1);
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.contains("--transport local puts several ranks on one"), "{message}");
}

#[test]
fn u41_threads_without_effect_are_refused() {
    if !devices(1) {
        return;
    }
    let base = Options { device: Some(DeviceKind::Cuda), ..options("synthetic".as_ref()) };
    let message = refusal(Options { threads: Some(2), ..base });
    assert!(message.contains("--threads has no effect where a GPU computes"), "{message}");
}

/// One row in the table, ids beyond it.
fn one_row(folder: &Folder, ids: &[u32]) -> Options {
    let row = |id: &u32| format!("1{}\t{id:x}{}\n", "\t1".repeat(13), "\t".repeat(25));
    let data = folder.file("ids.tsv", &ids.iter().map(row).collect::<String>());
    let id_policy = Some(IdPolicy::Error);
    Options { table: vec![table("C1", 1)], id_policy, steps: Some(1), ..options(&data) }
}

/// From the name of the file on: every rank reads the line, and any may be the first to say so.
fn words(refusal: &str) -> &str {
    refusal.find("ids.tsv").map_or(refusal, |at| &refusal[at..])
}

#[test]
fn u07_a_gpu_refuses_what_the_processor_refuses_in_the_same_words() {
    if !devices(1) {
        return;
    }
    let folder = Folder::new();
    for world in [None, Some(2)] {
        let base = Options { world, ..one_row(&folder, &[0, 1, 2]) };
        let on_cpu = refusal(base.clone());
        assert!(on_cpu.contains("C1"), "{on_cpu}");
        assert_eq!(words(&refusal(on_gpus(&base, None))), words(&on_cpu));
        let good = Options { world, ..one_row(&folder, &[0, 0, 0]) };
        let config = Config::resolve(on_gpus(&good, None)).expect("consistent");
        train(&config, &mut Silent).expect("the one row is there");
    }
    let mut none = one_row(&folder, &[0]);
    none.table[0].rows = Some(0);
    assert!(refusal(on_gpus(&none, None)).contains("C1"));
}
