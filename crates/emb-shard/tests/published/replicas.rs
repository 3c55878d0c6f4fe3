//! 2D sparse parallelism: what groups of ranks do to speed, memory and balance.

use crate::common::{Point, close, near};
use emb_shard::{Preset, TorchRec, Workload};

struct Model {
    preset: Preset,
    workload: Workload,
}

impl Model {
    fn named(name: &str) -> Self {
        let preset = Preset::named(name).expect("a preset");
        let workload = preset.workload().expect("valid");
        Self { preset, workload }
    }

    fn on(&self, gpus: u32, replicas: u32) -> Point {
        Point::of(&self.preset, &self.workload, gpus, Some(replicas), &TorchRec::default())
    }

    /// In groups of the published size.
    fn grouped(&self, gpus: u32) -> Point {
        self.on(gpus, self.preset.replicas(gpus))
    }
}

#[test]
fn exfm_scales_in_groups_as_published() {
    let exfm = Model::named("exfm");
    let base = exfm.grouped(256);
    near("samples a second on 256", base.samples_per_second, 1.76e5, 0.02);
    for (gpus, published) in [(512, 2.02), (1024, 3.84), (2048, 7.61), (4096, 14.4)] {
        let point = exfm.grouped(gpus);
        let ratio = point.samples_per_second / base.samples_per_second;
        near(&format!("{gpus} GPUs"), ratio, published, 0.05);
        assert!(point.fits(), "{gpus} GPUs: {:.3e} bytes", point.peak);
        if gpus > 512 {
            // Nothing in it is linear: it must beat the model that says twice the ranks, twice the
            // samples.
            let linear = f64::from(gpus) / 256.0;
            assert!((ratio - published).abs() < (linear - published).abs());
        }
    }
}

#[test]
fn exfm_in_one_group_slows_and_runs_out_of_memory() {
    let exfm = Model::named("exfm");
    let base = exfm.on(256, 1);
    for (gpus, published) in [(512, 1.91), (1024, 3.19)] {
        let point = exfm.on(gpus, 1);
        let ratio = point.samples_per_second / base.samples_per_second;
        near(&format!("{gpus} GPUs"), ratio, published, 0.1);
        assert!(point.fits(), "{gpus} GPUs: {:.3e} bytes", point.peak);
    }
    for gpus in [2048, 4096] {
        assert!(!exfm.on(gpus, 1).fits(), "{gpus} GPUs");
    }
    let step = exfm.on(1024, 1).step;
    let all_to_all = step.parts.output_exchange + step.parts.backward_exchange;
    assert!(all_to_all > 0.6, "{all_to_all:.3} s of all-to-all on 1,024 GPUs");
    // About 15 GB were published; 32-bit copies of what travels in 16 bits are not modelled.
    let buffers = step.fullest().expect("ranks").peak.buffers;
    assert!((9e9..15e9).contains(&buffers), "{buffers:.3e} bytes of activations");
}

/// 1,024 GPUs: groups of 256 and of 128. On 2,048, 4 groups of 512 would exchange as much as one
/// did on 512.
#[test]
fn exfm_runs_alike_with_4_and_8_replicas() {
    let exfm = Model::named("exfm");
    let (four, eight) = (exfm.on(1024, 4), exfm.on(1024, 8));
    near("8 over 4", eight.samples_per_second / four.samples_per_second, 1.0, 0.03);
    for point in [four, eight, exfm.on(512, 2), exfm.grouped(2048)] {
        assert!(point.fits() && point.sync_share() < 0.05, "{:.4}", point.sync_share());
    }
}

/// The copies of 1.7 TB in four groups of 1,024 GPUs: 5.0 GB a GPU.
#[test]
fn replicas_take_the_published_memory() {
    let exfm = Model::named("exfm");
    let weights = |replicas| {
        let point = exfm.on(1024, replicas);
        point.step.fullest().expect("ranks").peak.weights
    };
    near("bytes of copies", weights(4) - weights(1), 5.0e9, 0.01);
}

#[test]
fn exfm_goes_on_to_32768_and_says_what_limits_it() {
    let exfm = Model::named("exfm");
    let base = exfm.grouped(256);
    let mut before = 1.0;
    for gpus in [8192, 16_384, 32_768] {
        let point = exfm.grouped(gpus);
        let ratio = point.samples_per_second / base.samples_per_second;
        let per_gpu = ratio / (f64::from(gpus) / 256.0);
        assert!(point.fits() && per_gpu < before && per_gpu > 0.85, "{gpus} GPUs: {per_gpu:.3}");
        assert_eq!(point.longest(), "dense");
        before = per_gpu;
    }
}

#[test]
fn ctr_is_faster_lighter_and_balanced_with_four_groups() {
    let ctr = Model::named("ctr-256");
    let (one, four, eight) = (ctr.on(256, 1), ctr.on(256, 4), ctr.on(256, 8));
    near("samples a second, M = 1", one.samples_per_second, 1.53e6, 0.02);
    let faster = four.samples_per_second / one.samples_per_second;
    close("M = 4 over 1", faster, 1.74, 0.15);
    let percent = |point: &Point| 100.0 * point.peak / point.memory;
    close("peak of M = 1", percent(&one), 72.4, 3.0);
    close("fall of the peak", percent(&one) - percent(&four), 17.7, 3.0);
    near("imbalance of M = 1", one.step.max_over_mean(), 5.7, 0.2);
    near("imbalance of M = 4", four.step.max_over_mean(), 1.6, 0.2);
    assert!(four.samples_per_second > eight.samples_per_second);
    assert!(four.sync_share() < 0.05 && eight.sync_share() < 0.05, "{:.4}", eight.sync_share());
}
