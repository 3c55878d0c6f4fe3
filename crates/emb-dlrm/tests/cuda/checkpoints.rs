//! Checkpoints know nothing of devices.

use crate::support::{
    Folder, assert_near, criteo, devices, on_gpus, on_the_processor, options, outcome_in, over,
};
use emb_dlrm::config::{BadRows, DeviceKind, Options, TransportKind};
use emb_dlrm::train::{Saved, ScoreOptions};
use std::path::Path;

/// Trains on, from `load`.
fn more(options: &Options, load: &Path) -> Options {
    Options { load: Some(load.to_owned()), ..options.clone() }
}

fn loss(dir: &Path, data: &Path, device: DeviceKind) -> f64 {
    let options = ScoreOptions {
        data: vec![data.to_owned()],
        bad_rows: BadRows::Error,
        batch_size: 100,
        device: Some(device),
        precision: None,
        threads: (device == DeviceKind::Cpu).then_some(1),
    };
    let (report, _) = Saved::load(dir, options).expect("loads").evaluate().expect("scores");
    report.loss.expect("rows")
}

#[test]
fn what_a_gpu_saved_goes_on_on_the_processor_and_the_other_way() {
    let Some(data) = criteo("train").filter(|_| devices(2)) else { return };
    let base = Options { steps: Some(10), ..options(&data) };
    let two = over(&base, 2, 1);
    let processor = on_the_processor(&base);
    let gpus = on_gpus(&two, Some(TransportKind::Nccl));
    let folder = Folder::new();
    let dir = |name: &str| folder.path(name);
    for (name, options) in [("cpu", &processor), ("cuda", &gpus)] {
        outcome_in(options, &dir(name));
    }
    let expected = outcome_in(&more(&processor, &dir("cpu")), &dir("cpu-cpu"));
    for (options, load, save) in
        [(&processor, "cuda", "cuda-cpu"), (&gpus, "cpu", "cpu-cuda"), (&gpus, "cuda", "cuda-cuda")]
    {
        let got = outcome_in(&more(options, &dir(load)), &dir(save));
        assert_near(&got, &expected, 1e-5, save);
    }
    let Some(test) = criteo("test") else { return };
    let on_cpu = loss(&dir("cuda"), &test, DeviceKind::Cpu);
    let on_cuda = loss(&dir("cuda"), &test, DeviceKind::Cuda);
    assert!((on_cpu - on_cuda).abs() <= 1e-6, "{on_cpu} and {on_cuda}");
}
