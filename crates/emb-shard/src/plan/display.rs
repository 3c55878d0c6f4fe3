//! A plan as a table that a person reads.

use super::{Plan, Tier};
use crate::{Bytes, Report, Table};
use std::fmt::{self, Display, Formatter};

const HEAD: [&str; 10] =
    ["table", "rows", "dim", "kind", "g", "M", "cuts", "exchange", "sync", "ranks"];
/// Columns of numbers stand to the right.
const NUMBERS: [usize; 5] = [1, 2, 4, 5, 9];
/// Lines of ranks that are printed before the rest is summed up.
const RANK_LINES: usize = 16;

/// One line a tier, neighbours alike in all but their names together (cuts are row parts x column blocks; ranks are those of a group that own rows;
/// bytes are those of one replica), then the bytes of every rank.
impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (world, nodes) = (self.world, self.node_ranks);
        writeln!(f, "{world} ranks in nodes of {nodes}, {} tables", self.placed.len())?;
        let mut lines = vec![with_bytes(HEAD.map(str::to_owned).to_vec(), "bytes")];
        for (id, plan) in self.placed.iter() {
            for (number, tier) in plan.tiers.iter().enumerate() {
                let table = &self.tables.tables()[id];
                let name = match plan.tiers.len() {
                    1 => plan.table.clone(),
                    _ => format!("{}[{number}]", plan.table),
                };
                lines.push(line(name, table, tier));
            }
        }
        aligned(f, &together(&lines))?;
        ranks(f, &self.report())
    }
}

/// Neighbouring lines that differ in their names alone become one: `first .. last (how many)`.
fn together(lines: &[Vec<String>]) -> Vec<Vec<String>> {
    let alike = |a: &Vec<String>, b: &Vec<String>| a[1..] == b[1..];
    let groups = lines.chunk_by(alike).map(|group| {
        let mut line = group[0].clone();
        if let [first, .., last] = group {
            line[0] = format!("{} .. {} ({})", first[0], last[0], group.len());
        }
        line
    });
    groups.collect()
}

fn with_bytes(mut cells: Vec<String>, bytes: impl Display) -> Vec<String> {
    cells.push(bytes.to_string());
    cells
}

fn line(name: String, table: &Table, tier: &Tier) -> Vec<String> {
    let parts = tier.blocks.iter().map(|block| block.owners.len()).max().unwrap_or(0);
    let mut owners: Vec<u32> = Vec::new();
    let mut bytes = Bytes::default();
    for block in &tier.blocks {
        for (part, owner) in block.owners.iter().enumerate() {
            let rows = block.part_rows(part);
            if rows > 0 {
                owners.push(owner);
            }
            let part = table.part_bytes(rows, block.columns.columns());
            bytes = bytes.saturating_add(part.total());
        }
    }
    owners.sort_unstable();
    owners.dedup();
    let cells = vec![
        name,
        tier.rows.rows().to_string(),
        table.dim().to_string(),
        tier.kind().to_owned(),
        tier.mesh.group_ranks().to_string(),
        tier.mesh.replicas().to_string(),
        format!("{parts}x{}", tier.blocks.len()),
        tier.exchange.to_string(),
        tier.sync.to_string(),
        owners.len().to_string(),
    ];
    with_bytes(cells, bytes)
}

fn aligned(f: &mut Formatter<'_>, lines: &[Vec<String>]) -> fmt::Result {
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=HEAD.len()).map(width).collect();
    for line in lines {
        let mut text = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let number = NUMBERS.contains(&column) || column == HEAD.len();
            let cell = if number { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
            text.push_str(&cell);
            text.push_str("  ");
        }
        writeln!(f, "{}", text.trim_end())?;
    }
    Ok(())
}

/// Neighbours of equal load share a line.
fn ranks(f: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let mut first = 0;
    for (count, run) in report.ranks().chunk_by(|a, b| a == b).enumerate() {
        let last = first + run.len() - 1;
        if count == RANK_LINES {
            writeln!(f, "..")?;
            break;
        }
        let name =
            if first == last { format!("rank {first}") } else { format!("ranks {first}..={last}") };
        let (bytes, lookups) = (run[0].bytes.total(), run[0].lookups);
        writeln!(f, "{name}: {bytes}, {lookups:.2} look-ups a sample")?;
        first = last + 1;
    }
    let (bytes, lookups) = (report.bytes_max_to_mean(), report.lookups_max_to_mean());
    writeln!(f, "max/mean: bytes {bytes:.3}, look-ups {lookups:.3}")
}
