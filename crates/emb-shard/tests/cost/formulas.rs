//! Formulas of the reference: a message over a link, a sort of ids.

use crate::case::bent;
use emb_shard::Level;

/// Seconds of a message, its latency apart: along the measured points, in proportion outside.
pub(crate) fn message(level: &Level, bytes: f64) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    let points = bent(level.name());
    let Some(&(most, longest)) = points.last() else { return bytes / level.bandwidth() };
    let (mut from, mut before) = (0, 0.0);
    for (to, behind) in points {
        if bytes <= to as f64 {
            return before + (behind - before) * (bytes - from as f64) / (to - from) as f64;
        }
        (from, before) = (to, behind);
    }
    longest * bytes / most as f64
}

/// A radix sort reads and writes ids and 4-byte positions once for every 8 bits of a row's number.
pub(crate) fn sort(ids: f64, rows: u64, id: f64) -> f64 {
    let mut passes = 1;
    while passes < 8 && rows > 1 << (8 * passes) {
        passes += 1;
    }
    2.0 * ids * (id + 4.0) * f64::from(passes)
}
