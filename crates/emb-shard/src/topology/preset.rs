//! Known machines, with the source of every constant.

use super::spec::{LevelSpec, TopologySpec, UnitRanks};
use crate::nearest::unknown;
use crate::{Error, MAX_WORLD, Result};

const NAMES: [&str; 3] = ["dgx-h100", "dgx-a100", "cpu"];

/// Ranks of a DGX node.
const DGX_RANKS: u32 = 8;

/// What a DGX node is made of.
struct Dgx {
    memory_bytes: u64,
    memory_bandwidth: f64,
    flops: f64,
    nvlink: f64,
    nic: f64,
}

const DGX_H100: Dgx = Dgx {
    // NVIDIA H100 SXM datasheet: 80 GB, bf16 without sparsity.
    memory_bytes: 80_000_000_000,
    flops: 989e12,
    // HugeCTR v25.03, default ratio 3.35e12 / 450e9 of the sharding planner of samples/dlrm.
    memory_bandwidth: 3.35e12,
    nvlink: 450e9,
    // HugeCTR v25.03, ratio 3000 / 50 (GB/s) of the "eos" cluster; one 400 Gb/s link a GPU.
    nic: 50e9,
};

const DGX_A100: Dgx = Dgx {
    // NVIDIA A100 80 GB datasheet: bf16 without sparsity; 600 GB/s of NVLink, both directions.
    memory_bytes: 80_000_000_000,
    flops: 312e12,
    nvlink: 300e9,
    // HugeCTR v25.03, ratio 2000 / 25 (GB/s) of the "selene" cluster; one 200 Gb/s link a GPU.
    memory_bandwidth: 2e12,
    nic: 25e9,
};

// NCCL, `src/graph/tuning.cc`, `hwLat` of a ring with the Simple protocol: 3.4 us over NVLink,
// 14.0 us over the network.
const NVLINK_SECONDS: f64 = 3.4e-6;
const NETWORK_SECONDS: f64 = 14e-6;

/// `TorchRec`, `planner/constants.py`: 128 GiB of host memory at 51 GiB/s, of one machine.
const HOST_BYTES: u64 = 128 << 30;
const HOST_BANDWIDTH: f64 = 51.0 * (1_u64 << 30) as f64;

/// One core with AVX2 at 2 GHz: two fused multiply-adds of eight `f32` a cycle.
const CORE_FLOPS: f64 = 2e9 * 2.0 * 8.0 * 2.0;

/// Low end of what gloo takes for an all-reduce of one integer (`TorchRec` pull request 4158).
const THREAD_SECONDS: f64 = 10e-6;

/// The preset that `text` names as `name:count`.
pub(super) fn spec(text: &str) -> Result<TopologySpec> {
    let bad = |what| Error::BadTopology { topology: text.to_owned(), what };
    let (name, count) = text.split_once(':').unwrap_or((text, ""));
    let (unit, ranks_of_one) = match name {
        "dgx-h100" | "dgx-a100" => ("nodes", DGX_RANKS),
        "cpu" => ("ranks", 1),
        _ => return Err(bad(unknown(name, &NAMES))),
    };
    let limit = MAX_WORLD / ranks_of_one;
    let count = match count.parse::<u32>() {
        Ok(count) if (1..=limit).contains(&count) => count,
        _ => {
            let what = format!(
                "{count:?} {unit}: must be a whole number in 1..={limit}, as in \"{name}:2\""
            );
            return Err(bad(what));
        }
    };
    Ok(match name {
        "dgx-h100" => dgx(text, count, &DGX_H100),
        "dgx-a100" => dgx(text, count, &DGX_A100),
        _ => cpu(text, count),
    })
}

fn dgx(name: &str, nodes: u32, dgx: &Dgx) -> TopologySpec {
    let ranks = nodes * DGX_RANKS;
    let mut levels = vec![level("node", DGX_RANKS, dgx.nvlink, NVLINK_SECONDS)];
    if nodes > 1 {
        levels.push(level("cluster", ranks, dgx.nic, NETWORK_SECONDS));
    }
    TopologySpec {
        name: name.to_owned(),
        ranks,
        memory_bytes: dgx.memory_bytes,
        memory_bandwidth: dgx.memory_bandwidth,
        flops: dgx.flops,
        levels,
    }
}

/// Ranks share the memory of the machine, and what they exchange is read from it and written to it.
fn cpu(name: &str, ranks: u32) -> TopologySpec {
    let memory_bandwidth = HOST_BANDWIDTH / f64::from(ranks);
    TopologySpec {
        name: name.to_owned(),
        ranks,
        memory_bytes: HOST_BYTES / u64::from(ranks),
        memory_bandwidth,
        flops: CORE_FLOPS,
        levels: vec![level("node", ranks, memory_bandwidth / 2.0, THREAD_SECONDS)],
    }
}

fn level(name: &str, ranks: u32, bandwidth: f64, latency: f64) -> LevelSpec {
    let (name, ranks) = (name.to_owned(), UnitRanks::Equal(ranks));
    LevelSpec { name, ranks, bandwidth, latency, all_to_all: Vec::new(), transfers: Vec::new() }
}
