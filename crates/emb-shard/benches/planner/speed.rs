//! How long planners take on large tasks: [`run`].

use crate::long_tailed::LONG_TAILED;
use crate::pool::{BATCH, pool};
use crate::{Options, planners};
use emb_shard::{
    Access, Batch, CostModel, Preset, StepModel, TableSpec, Task, Topology, Workload, WorkloadSpec,
};
use serde_json::json;
use std::time::Instant;

/// Plans each case with every planner, once, and prints seconds.
pub(crate) fn run(options: &Options) {
    if !options.json {
        println!("{:<28}{:<20}{:>12}{:>14}", "tables on ranks", "planner", "plan ms", "step ms");
    }
    for (tables, ranks) in [(26, 1_024), (200, 128)] {
        let case = format!("{tables} long-tailed on {ranks}");
        measure(&case, &long_tailed(tables), ranks, options);
    }
    let t510 = Preset::named("embark-t510").and_then(|preset| preset.workload());
    measure("embark-t510 on 128", &t510.expect("a known preset"), 128, options);
    measure("856 of the pool on 1024", &whole_pool(), 1_024, options);
}

fn measure(case: &str, workload: &Workload, ranks: u32, options: &Options) {
    let machines = format!("dgx-a100:{}", ranks / 8);
    let topology = Topology::preset(&machines).expect("a known preset");
    let task = Task::new(workload, &topology);
    for planner in planners() {
        let begin = Instant::now();
        let plan = planner.plan(&task);
        let seconds = begin.elapsed().as_secs_f64();
        let step = plan.and_then(|plan| StepModel::default().estimate(&plan, workload, &topology));
        let step = step.ok().map(|estimate| estimate.step_seconds());
        if options.json {
            let line = json!({
                "bench": "planner", "case": case, "planner": planner.name(),
                "planning_seconds": seconds, "step_seconds": step,
            });
            println!("{line}");
        } else {
            let step = step.map_or("-".to_owned(), |step| format!("{:.3}", step * 1e3));
            println!("{case:<28}{:<20}{:>12.2}{step:>14}", planner.name(), seconds * 1e3);
        }
    }
}

fn long_tailed(tables: usize) -> Workload {
    let mut spec = WorkloadSpec::new("long-tailed", Batch::PerRank(1_024));
    for (number, &(rows, dim, pooling_factor)) in LONG_TAILED[..tables].iter().enumerate() {
        let table = TableSpec::new(format!("t{number}"), rows, dim);
        spec.tables.push(TableSpec { pooling_factor, ..table });
    }
    Workload::new(spec).expect("valid")
}

/// Every table of the pool, 64 columns each.
fn whole_pool() -> Workload {
    let mut spec = WorkloadSpec::new("pool", Batch::Global(BATCH));
    for (number, table) in pool().into_iter().enumerate() {
        spec.tables.push(TableSpec {
            pooling_factor: table.pooling_factor,
            access: Some(Access::Histogram(table.used)),
            ..TableSpec::new(format!("t{number}"), table.rows, 64)
        });
    }
    Workload::new(spec).expect("valid")
}
