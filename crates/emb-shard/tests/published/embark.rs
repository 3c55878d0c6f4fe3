//! `EMBark` (`RecSys` 2024): communication of the baseline, speed-ups over it.

use crate::common::{Point, close};
use emb_shard::{EmbarkPlanner, Lattice, Planner, Preset, TableRowWise, Workload};

/// The models that speed-ups were published of.
const MODELS: [&str; 4] = ["embark-dcnv2", "embark-t180", "embark-t200", "embark-t510"];

struct Model {
    preset: Preset,
    workload: Workload,
}

fn models() -> [Model; 4] {
    MODELS.map(|name| {
        let preset = Preset::named(name).expect("a preset");
        let workload = preset.workload().expect("valid");
        Model { preset, workload }
    })
}

impl Model {
    fn on(&self, gpus: u32, replicas: Option<u32>, planner: &dyn Planner) -> Point {
        Point::of(&self.preset, &self.workload, gpus, replicas, planner)
    }
}

fn mean(values: [f64; 4]) -> f64 {
    values.iter().sum::<f64>() / 4.0
}

#[test]
fn communication_of_table_row_wise_grows_from_25_to_51_percent() {
    for (gpus, published) in [(8, 0.25), (128, 0.51)] {
        let shares = models().map(|model| model.on(gpus, Some(1), &TableRowWise).exchange_share());
        close(&format!("share on {gpus}"), mean(shares), published, 0.06);
    }
}

#[test]
fn embark_is_half_as_fast_again_and_lattice_faster() {
    let lattice = Lattice { model: Preset::model(), tries: None };
    let ratios = models().map(|model| {
        let base = model.on(128, Some(1), &TableRowWise).samples_per_second;
        let embark = model.on(128, Some(1), &EmbarkPlanner::default());
        let lattice = model.on(128, None, &lattice);
        assert!(lattice.fits());
        (embark.samples_per_second / base, lattice.samples_per_second / base)
    });
    let most = ratios.iter().map(|ratio| ratio.0).fold(0.0, f64::max);
    close("embark at most", most, 1.77, 0.15);
    close("embark", mean(ratios.map(|ratio| ratio.0)), 1.5, 0.15);
    let lattice = mean(ratios.map(|ratio| ratio.1));
    assert!(lattice >= 1.77, "lattice {lattice:.3}");
}
