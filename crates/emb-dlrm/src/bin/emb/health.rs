//! The ranks' health in a line for people.

use crate::text::bytes;
use emb_dlrm::train::{Bytes, Health, Levels};

/// One line: shares of the time, the slowest rank, bytes against the plan, advice.
pub(crate) fn line(health: &Health) -> String {
    let percent = |part: f64| format!("{:.1}", 100.0 * part);
    let exposed = &health.exposed;
    let parts = [
        ("exchange", exposed.exchange),
        ("sync", exposed.sync),
        ("dense sums", exposed.dense_sums),
        ("loss", exposed.loss),
    ];
    let parts = parts.into_iter().filter(|(_, part)| *part > 0.0);
    let parts: Vec<String> =
        parts.map(|(name, part)| format!("{name} {}", percent(part))).collect();
    let mut said = vec![format!(
        "health: communication exposed {} % ({}), waiting {} %",
        percent(exposed.total()),
        parts.join(", "),
        percent(health.waiting)
    )];
    if let Some(slow) = &health.slowest {
        said.push(format!(
            "rank {} computes {:.1} x the mean of the others and causes {:.0} % of all waiting",
            slow.rank,
            slow.compute_ratio,
            100.0 * slow.waiting_caused
        ));
    }
    said.push(format!("a step takes from others {}", in_words("exchange", &health.exchange_bytes)));
    if health.sync_bytes.counted.is_none_or(|counted| counted.total() > 0.0) {
        said.push(in_words("sync", &health.sync_bytes));
    }
    said.extend(health.advice.iter().cloned());
    said.join("; ")
}

/// `exchange 1.2 MiB in nodes (planned 1.2 MiB), 340.1 KiB between (planned 338.0 KiB)`.
fn in_words(name: &str, of: &Bytes) -> String {
    let Some(counted) = of.counted else { return format!("{name}: no whole period yet") };
    let level = |of_level: fn(&Levels) -> f64, place: &str| {
        let planned = of.planned.as_ref().map(of_level);
        let counted = of_level(&counted);
        if counted == 0.0 && planned.unwrap_or(0.0) == 0.0 {
            return None;
        }
        let planned = planned.map_or_else(
            || "no prediction".to_owned(),
            |planned| format!("planned {}", bytes(planned as u64)),
        );
        Some(format!("{} {place} ({planned})", bytes(counted as u64)))
    };
    let levels =
        [level(|of| of.intra_node, "in nodes"), level(|of| of.inter_node, "between nodes")];
    let levels: Vec<String> = levels.into_iter().flatten().collect();
    if levels.is_empty() {
        format!("{name} nothing")
    } else {
        format!("{name} {}", levels.join(", "))
    }
}
