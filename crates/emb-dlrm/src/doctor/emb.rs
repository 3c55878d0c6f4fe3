//! What this program is.

use super::{Check, System};

const AREA: &str = "emb";

/// Features that a build may have, and whether this one does.
const FEATURES: [(&str, bool); 3] = [
    ("cuda", cfg!(feature = "cuda")),
    ("nccl", cfg!(feature = "nccl")),
    ("mpi", super::mpi::BUILT),
];

pub(super) fn checks(_system: &System<'_>) -> Vec<Check> {
    let version = Check::ok(
        AREA,
        "version",
        format!(
            "{} for {}-{}{}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS,
            if cfg!(debug_assertions) { ", with debug assertions" } else { "" }
        ),
    );
    let version = if cfg!(debug_assertions) {
        version.warn("times are those of a build for tests: build with --release")
    } else {
        version
    };
    let with = |wanted: bool| {
        let names = FEATURES.iter().filter(|(_, built)| *built == wanted).map(|(name, _)| *name);
        let names: Vec<&str> = names.collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let features = format!("built in: {}; not built in: {}", with(true), with(false));
    vec![version, Check::ok(AREA, "features", features)]
}
