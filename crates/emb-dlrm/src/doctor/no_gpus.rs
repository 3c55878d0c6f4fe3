//! GPUs in a build without CUDA.

use super::{Check, System};

const AREA: &str = "CUDA";

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    let gpus = system.names("proc/driver/nvidia/gpus").len();
    let check = Check::ok(AREA, "devices", "not built in: build with --features cuda");
    let check = if gpus > 0 {
        let found = format!("{gpus} on this machine, of which this build makes no use");
        Check::ok(AREA, "devices", found).warn("build with --features cuda,nccl")
    } else {
        check
    };
    vec![check]
}
