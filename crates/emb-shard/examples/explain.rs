//! Plans three tables on two nodes of eight ranks and says why: `explain [topology] [batch]`.

use emb_shard::{
    Access, Batch, Lattice, StepModel, TableSpec, Task, Topology, Workload, WorkloadSpec, explain,
};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let topology = arguments.next().unwrap_or_else(|| "dgx-h100:2".to_owned());
    let batch = arguments.next().map_or(Ok(8192), |text| text.parse())?;
    let mut spec = WorkloadSpec::new("three tables", Batch::Global(batch));
    spec.access = Access::Zipf { exponent: 1.05 };
    spec.state.per_row = 4;
    let table = |name: &str, rows, pooling_factor| TableSpec {
        pooling_factor,
        ..TableSpec::new(name, rows, 64)
    };
    spec.tables =
        vec![table("ads", 100_000_000, 20.0), table("users", 5_000_000, 1.0), table("day", 7, 1.0)];
    let workload = Workload::new(spec)?;
    let topology = Topology::preset(&topology)?;
    let task = Task::new(&workload, &topology);
    let planned = Lattice::default().solve(&task)?;
    let explanation = explain(&StepModel::default(), &task, &planned.plan)?;
    let mut out = std::io::stdout().lock();
    write!(out, "{explanation}")?;
    writeln!(out, "no plan is below {:.1} us", planned.lower_bound_seconds * 1e6)?;
    Ok(())
}
