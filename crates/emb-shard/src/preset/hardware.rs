//! What the machines of all presets are: one set of constants.

use super::Input;
use crate::{CostOptions, Result, StepModel, Topology, TopologySpec};

/// Part of the network's bandwidth that is left of an all-to-all with so many others over it.
const ALL_TO_ALL: [(u32, f64); 2] = [(7, 1.0), (1023, 0.4)];

const MEMORY_EFFICIENCY: f64 = 0.6;
const LINK_EFFICIENCY: f64 = 0.8;
const COMPUTE_EFFICIENCY: f64 = 0.35;
const STRAGGLING: f64 = 0.05;

/// DGX H100 nodes for `gpus` ranks.
pub(super) fn machines(gpus: u32) -> Result<Topology> {
    let mut spec = TopologySpec::from(Topology::preset(&format!("dgx-h100:{}", gpus.div_ceil(8)))?);
    if let [_, network] = &mut spec.levels[..] {
        network.all_to_all = ALL_TO_ALL.to_vec();
    }
    Topology::new(spec)
}

pub(super) fn model() -> StepModel {
    let options = CostOptions {
        memory_efficiency: MEMORY_EFFICIENCY,
        link_efficiency: LINK_EFFICIENCY,
        compute_efficiency: COMPUTE_EFFICIENCY,
        straggling: STRAGGLING,
        ..CostOptions::default()
    };
    StepModel { options }
}

pub(super) fn inputs() -> Vec<Input> {
    Vec::new()
}
