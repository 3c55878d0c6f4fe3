//! No plan is below the bound: not the lattice planner's, and none of any other planner.

use crate::cases::{Draws, topology, workload};
use emb_shard::{CostModel, EmbarkPlanner, FlexShardPlanner, Lattice, StepModel, Task, baselines};

#[test]
fn no_planner_is_below_the_bound() {
    let mut planners = baselines();
    planners.push(Box::new(EmbarkPlanner::default()));
    planners.push(Box::new(FlexShardPlanner::default()));
    let (mut plans, mut nearest) = (0, f64::INFINITY);
    for seed in 2000..2040 {
        let mut draws = Draws(seed);
        let nodes = vec![1 + draws.below(8) as u32; 1 + draws.below(4) as usize];
        let tables = 1 + draws.below(12);
        let workload = workload(&mut draws, tables);
        let topology = topology(&mut draws, &nodes, 80_000_000_000);
        let task = Task::new(&workload, &topology);
        let lattice = Lattice { tries: Some(300), ..Lattice::default() };
        let planned = lattice.solve(&task).expect("fits");
        let bound = planned.lower_bound_seconds;
        let mut above = |who: &str, step: f64| {
            assert!(bound <= step * (1.0 + 1e-9), "seed {seed}, {who}: {bound} above {step}");
            plans += 1;
            nearest = nearest.min(step / bound);
        };
        above("lattice", planned.estimate.step_seconds());
        for planner in &planners {
            let Ok(plan) = planner.plan(&task) else { continue };
            let estimate = StepModel::default().estimate(&plan, &workload, &topology);
            above(planner.name(), estimate.expect("a plan of the task").step_seconds());
        }
    }
    eprintln!("{plans} plans, the nearest at {nearest:.4} of the bound");
    assert!(plans > 200, "{plans}");
}
