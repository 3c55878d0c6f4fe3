//! Plans a list of tables: `lattice FILE.csv WORKLOAD TOPOLOGY BATCH [ZIPF]`.
use emb_shard::*;
use std::time::Instant;
fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1])?;
    let rows = text.lines().skip(1).map(|line| {
        let f: Vec<&str> = line.split(',').collect();
        WorkloadRow {
            workload: f[0].into(),
            table: f[1].into(),
            rows: f[2].parse().unwrap(),
            dim: f[3].parse().unwrap(),
            pooling: f[4].parse().unwrap(),
        }
    });
    let mut spec = WorkloadSpec::from_rows(&args[2], Batch::Global(args[4].parse()?), rows)?;
    spec.outputs = ValueType::F16;
    spec.ids = IdType::I32;
    spec.length_bytes = 0;
    spec.access = Access::Zipf { exponent: args.get(5).map_or(Ok(1.1), |z| z.parse())? };
    let workload = Workload::new(spec)?;
    let topology = Topology::preset(&args[3])?;
    let mut task = Task::new(&workload, &topology);
    if args.get(6).is_some_and(|a| a == "bytes") {
        task.objective = Objective::InterNodeBytes;
    }
    let begin = Instant::now();
    let planned = Lattice::default().solve(&task)?;
    let seconds = begin.elapsed().as_secs_f64();
    if args.len() > 7 {
        println!("{}", planned.plan);
    }
    let e = &planned.estimate;
    println!(
        "{seconds:.3} s; step {:.3} ms, bound {:.3} ms, max/mean {:.3}, inter {:.3} MB, intra {:.3} MB, peak {:.2} GB",
        e.step_seconds() * 1e3,
        planned.lower_bound_seconds * 1e3,
        e.max_over_mean(),
        e.inter_node_bytes() / 1e6,
        e.intra_node_bytes() / 1e6,
        e.fullest().map_or(0.0, |r| r.peak.total()) / 1e9
    );
    println!(
        "mean inter {:.3} MB",
        e.ranks
            .iter()
            .map(|r| r.exchanged[1..].iter().chain(&r.synced[1..]).map(|b| b.sent).sum::<f64>())
            .sum::<f64>()
            / e.ranks.len() as f64
            / 1e6
    );
    for (name, s) in e.parts.named() {
        print!("{name} {:.3} ms; ", s * 1e3);
    }
    println!();
    Ok(())
}
