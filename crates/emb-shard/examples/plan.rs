//! Chooses a plan for three tables and prints it: `plan [world] [group ranks] [budget in MB]`.

use emb_shard::{AutoOptions, Bytes, Layout, Mesh, PlanBuilder, Table, TableOptions, Tables};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u32| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (world, group_ranks, megabytes) = (number(8)?, number(4)?, number(700)?);
    let table = |name: &str, rows| Table::new(name, rows, 64, TableOptions::default());
    let tables = vec![table("ads", 10_000_000)?, table("users", 90_000)?, table("day", 7)?];
    let builder = PlanBuilder::new(Mesh::new(world, group_ranks, Layout::Strided)?)
        .node_ranks(group_ranks)
        .budget(Bytes::new(u64::from(megabytes) * 1_000_000));
    let plan = builder.auto(&Tables::new(tables)?, AutoOptions::default())?;
    let mut out = std::io::stdout().lock();
    write!(out, "{plan}\n{}", plan.to_file())?;
    let bytes = |load: &emb_shard::RankLoad| load.bytes.total().get();
    let largest = plan.report().ranks().iter().map(bytes).max().unwrap_or(0);
    writeln!(out, "the fullest rank holds {largest} bytes")?;
    Ok(())
}
