//! NCCL in a build without it.

use super::{Check, System};

pub(super) fn checks(_system: &System<'_>) -> Vec<Check> {
    vec![Check::ok("NCCL", "library", "not built in: build with --features nccl")]
}
