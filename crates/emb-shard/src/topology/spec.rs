//! A topology as a file says it: [`TopologySpec`].

use serde::{Deserialize, Serialize};

/// What a [`Topology`](crate::Topology) is made of, not yet checked.
///
/// ```
/// let text = r#"{
///     "name": "lab", "ranks": 12,
///     "memory_bytes": 80000000000, "memory_bandwidth": 2e12, "flops": 3e14,
///     "levels": [
///         { "name": "node", "ranks": [8, 4], "bandwidth": 3e11, "latency": 4e-6 },
///         { "name": "cluster", "ranks": 12, "bandwidth": 25e9, "latency": 15e-6,
///           "all_to_all": [[4, 1.0], [11, 0.8]] }
///     ]
/// }"#;
/// let topology: emb_shard::Topology = serde_json::from_str(text)?;
/// assert_eq!(topology.nodes(), 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologySpec {
    /// Name, for messages.
    pub name: String,
    /// Ranks of all nodes together.
    pub ranks: u32,
    /// Bytes of memory of one rank.
    pub memory_bytes: u64,
    /// Bytes a second between a rank and its memory.
    pub memory_bandwidth: f64,
    /// Floating-point operations a second of one rank.
    pub flops: f64,
    /// Levels from the inside out; the last holds all ranks in one unit.
    pub levels: Vec<LevelSpec>,
}

/// Links between the ranks of one unit that are not in one unit of the level inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelSpec {
    /// What a unit is: `node`, `rack`, `cluster`.
    pub name: String,
    /// Ranks of its units.
    pub ranks: UnitRanks,
    /// Bytes a second that one rank sends while it receives as many.
    pub bandwidth: f64,
    /// Seconds from sending a short message to its arrival.
    pub latency: f64,
    /// Measured points `(peers, part of the bandwidth left)` of an all-to-all with so many other
    /// ranks over this level. Between points the part is a straight line over the logarithm of the
    /// peers, before the first and behind the last it is theirs; without points it is 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_to_all: Vec<(u32, f64)>,
    /// Measured points `(bytes, seconds)`: how long, beyond the latency, a rank takes to send so
    /// many bytes to one other rank. They say what one bandwidth cannot: caches that a message fits
    /// into, protocols that switch at a size. Between points seconds are a straight line over the
    /// bytes; before the first and behind the last they are in proportion to bytes. Without points
    /// they are so everywhere, as `bandwidth` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<(u64, f64)>,
}

/// How many ranks the units of a level have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "ranks of every unit as one number, or a list with one for each unit"
)]
pub enum UnitRanks {
    /// All the same.
    Equal(u32),
    /// Those of each unit, in order of their ranks.
    Each(Vec<u32>),
}
