//! Figures of peers on the same machine, from a file of JSON lines.

use serde_json::Value;

/// A peer's 2D step.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) step_ms: f64,
    pub(crate) sync_ms: f64,
}

/// The 2D steps in `PEER_RESULTS`: 4 ranks, groups of 2, with the same ids and placement.
pub(crate) fn two_dimensional(distribution: &str, sharding: &str) -> Vec<Peer> {
    let Some(path) = std::env::var_os("PEER_RESULTS") else { return Vec::new() };
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| {
            line["mode"] == "torchrec2d"
                && line["dist"] == distribution
                && line["sharding"] == sharding
                && line["world"] == 4
        })
        .filter_map(|line| {
            Some(Peer {
                name: line["peer"].as_str()?.to_owned(),
                step_ms: line["median_ms"].as_f64()?,
                sync_ms: line["sync_ms"].as_f64()?,
            })
        })
        .collect()
}
