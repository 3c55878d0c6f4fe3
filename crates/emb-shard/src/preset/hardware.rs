//! What the machines of all presets are: one set of constants.

use super::Input;
use crate::{CostOptions, Result, StepModel, Topology, TopologySpec};

/// Others that an all-to-all reaches over the network, and the part of its bandwidth that is left:
/// the nodes of 128 GPUs, where `EMBark` measured, then all of 1,024 GPUs.
///
/// An all-to-all among nodes does not reach what a ring does, and slows as its messages get small
/// and its flows meet in the switches.
const ALL_TO_ALL: [(u32, f64); 2] = [(15, 0.35), (1023, 0.25)];

/// Rows of 128 to 512 bytes, read in random order, do not reach the peak of memory.
const MEMORY_EFFICIENCY: f64 = 0.35;

const LINK_EFFICIENCY: f64 = 0.7;

const COMPUTE_EFFICIENCY: f64 = 0.4;

const STRAGGLING: f64 = 0.06;

/// Ranks of a node.
const NODE_RANKS: u32 = 8;

pub(super) fn machines(gpus: u32) -> Result<Topology> {
    if !gpus.is_multiple_of(NODE_RANKS) {
        let what = format!("{gpus} ranks are no whole nodes of {NODE_RANKS}");
        return Err(crate::Error::BadTopology { topology: "dgx-h100".to_owned(), what });
    }
    let name = format!("dgx-h100:{}", gpus / NODE_RANKS);
    let mut spec = TopologySpec::from(Topology::preset(&name)?);
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
    const PART: &str = "of the peak";
    const HUGECTR: &str = "HugeCTR v25.03, ratios of its planners";
    const NCCL: &str = "NCCL, src/graph/tuning.cc, hwLat of a ring";
    let [(near, near_part), (far, far_part)] = ALL_TO_ALL;
    debug_assert!((near, far) == (15, 1023), "the names below say so");
    vec![
        Input::known("memory of a GPU", 80e9, "bytes", "NVIDIA H100 SXM datasheet"),
        Input::known("operations of a GPU", 989e12, "a second", "NVIDIA H100 SXM datasheet, bf16"),
        Input::known("memory bandwidth", 3.35e12, "bytes a second", HUGECTR),
        Input::known("NVLink, one direction", 450e9, "bytes a second", HUGECTR),
        Input::known("network, one direction", 50e9, "bytes a second of a GPU", HUGECTR),
        Input::known("latency of NVLink", 3.4e-6, "seconds", NCCL),
        Input::known("latency of the network", 14e-6, "seconds", NCCL),
        Input::assumed("memory efficiency", MEMORY_EFFICIENCY, PART, {
            "set to meet EMBark's speed-ups and 25 % of communication on 8 GPUs"
        }),
        Input::assumed("link efficiency", LINK_EFFICIENCY, PART, {
            "set to meet 25 % of communication on 8 GPUs"
        }),
        Input::assumed("compute efficiency", COMPUTE_EFFICIENCY, PART, {
            "usual for large matrix products; moves 25 % on 8 GPUs by 2 points for 0.1"
        }),
        Input::assumed("network left to an all-to-all of 15 others", near_part, "of the above", {
            "set to meet 51 % of communication on 128 GPUs"
        }),
        Input::assumed(
            "network left to an all-to-all of 1,023 others",
            far_part,
            "of the above",
            "set to meet an all-to-all of over 600 ms and 1D scaling on 1,024 GPUs",
        ),
        Input::assumed("straggling", STRAGGLING, "of the mean", {
            "set to meet 2D scaling on 1,024 to 4,096 GPUs"
        }),
    ]
}
