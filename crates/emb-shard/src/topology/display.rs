//! A topology as a table that a person reads.

use super::{Level, Topology};
use std::fmt::{self, Display, Formatter};

const HEAD: [&str; 6] = ["level", "units", "ranks", "bandwidth", "latency", "all-to-all"];

/// One line a level, then what one rank has.
impl Display for Topology {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, world, nodes) = (self.name(), self.world(), self.nodes());
        writeln!(f, "{name}: ranks {world}, nodes {nodes}")?;
        let mut lines = vec![HEAD.map(str::to_owned)];
        lines.extend(self.levels().iter().map(line));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..HEAD.len()).map(|column| width(column).unwrap_or(0)).collect();
        for [level, numbers @ .., last] in &lines {
            write!(f, "{level:<width$}", width = widths[0])?;
            for (number, width) in numbers.iter().zip(&widths[1..]) {
                write!(f, "  {number:>width$}")?;
            }
            writeln!(f, "  {last}")?;
        }
        let (bandwidth, flops) = (si(self.memory_bandwidth(), "B/s"), si(self.flops(), "FLOP/s"));
        write!(f, "a rank: {} of memory at {bandwidth}, {flops}", self.memory())
    }
}

fn line(level: &Level) -> [String; 6] {
    let ranks = match level.fewest_and_most() {
        (fewest, most) if fewest == most => most.to_string(),
        (fewest, most) => format!("{fewest}..={most}"),
    };
    let points: Vec<String> =
        level.points().iter().map(|(peers, part)| format!("{part} at {peers}")).collect();
    [
        level.name().to_owned(),
        level.units().to_string(),
        ranks,
        si(level.bandwidth(), "B/s"),
        format!("{:.1} us", level.latency() * 1e6),
        if points.is_empty() { "full".to_owned() } else { points.join(", ") },
    ]
}

/// Up to three digits with the largest decimal prefix: `3.35 TB/s`.
fn si(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let (mut value, mut prefix) = (value, 0);
    // 999.5 would print as 1000 of the smaller unit.
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        value /= 1000.0;
        prefix += 1;
    }
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}{unit}", PREFIXES[prefix])
}
