//! An explanation as a table that a person reads.

use super::explain::Explanation;
use crate::{Bytes, RankEstimate};
use std::fmt::{self, Display, Formatter, Write};

/// Ranks that are printed before the rest is summed up.
const RANKS: usize = 8;

/// The parts of a step, one line a table, then the memory of the ranks.
impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "a step takes {}:", time(self.step_seconds))?;
        for (name, seconds) in self.estimate.parts.named() {
            if seconds > 0.0 {
                write!(f, " {name} {},", time(seconds))?;
            }
        }
        writeln!(f, " max/mean {:.3}", self.estimate.max_over_mean())?;
        let mut lines =
            vec![["table", "placement", "next best", "step", "then", "step"].map(str::to_owned)];
        for table in &self.tables {
            let mut line = [
                table.table.clone(),
                table.placement.clone(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ];
            for (number, other) in table.others.iter().enumerate() {
                line[2 + 2 * number].clone_from(&other.placement);
                line[3 + 2 * number] = self.change(other.step_seconds, other.short_bytes);
            }
            lines.push(line);
        }
        aligned(f, &lines)?;
        ranks(f, &self.estimate.ranks)
    }
}

impl Explanation {
    /// What another placement adds to the step, or what it is short of.
    fn change(&self, step_seconds: f64, short_bytes: u64) -> String {
        if short_bytes > 0 {
            return format!("short {}", Bytes::new(short_bytes));
        }
        let change = 100.0 * (step_seconds / self.step_seconds - 1.0);
        format!("{change:+.2} %")
    }
}

/// Seconds in a unit that leaves digits in front of the point.
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 1.0 => format!("{seconds:.3} s"),
        _ if seconds >= 1e-3 => format!("{:.3} ms", seconds * 1e3),
        _ => format!("{:.1} us", seconds * 1e6),
    }
}

fn aligned(f: &mut Formatter<'_>, lines: &[[String; 6]]) -> fmt::Result {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    for line in lines {
        let mut text = String::new();
        for (cell, &width) in line.iter().zip(&widths) {
            write!(text, "{cell:width$}  ")?;
        }
        writeln!(f, "{}", text.trim_end())?;
    }
    Ok(())
}

fn ranks(f: &mut Formatter<'_>, ranks: &[RankEstimate]) -> fmt::Result {
    let bytes = |value: f64| Bytes::new(value as u64);
    let mut by_peak: Vec<&RankEstimate> = ranks.iter().collect();
    by_peak.sort_by(|a, b| b.peak.total().total_cmp(&a.peak.total()).then(a.rank.cmp(&b.rank)));
    for rank in by_peak.iter().take(RANKS) {
        let peak = &rank.peak;
        writeln!(
            f,
            "rank {}: {} = weights {} + state {} + buffers {} + dense {}; tables {}",
            rank.rank,
            bytes(peak.total()),
            bytes(peak.weights),
            bytes(peak.state),
            bytes(peak.buffers),
            bytes(peak.dense),
            time(rank.parts.tables()),
        )?;
    }
    match by_peak.get(RANKS) {
        Some(next) => writeln!(
            f,
            "{} more ranks, each at most {}",
            by_peak.len() - RANKS,
            bytes(next.peak.total())
        ),
        None => Ok(()),
    }
}
