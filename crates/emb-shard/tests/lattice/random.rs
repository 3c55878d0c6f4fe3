//! Random tasks: plans exist, fit by an independent count, and are the same every time.

use crate::cases::{Draws, topology, workload};
use emb_shard::{Error, Lattice, Objective, Plan, Planner, Rank, Task, Topology, Workload};

/// Bytes of weights and state of a rank, shard by shard.
fn bytes(plan: &Plan, workload: &Workload, rank: Rank) -> u64 {
    let shards = plan.shards_of(rank).expect("a rank");
    let of = |shard: emb_shard::Shard| {
        let table = &workload.tables().tables()[shard.table];
        let columns = shard.columns.columns() as u64;
        let state =
            u64::from(table.state().per_row) + columns * u64::from(table.state().per_element);
        shard.rows * (columns * u64::from(table.element_bytes()) + state)
    };
    shards.map(of).sum()
}

fn check(workload: &Workload, topology: &Topology, task: &Task<'_>, seed: u64) -> bool {
    let planner = Lattice { tries: Some(300), ..Lattice::default() };
    let planned = match planner.solve(task) {
        Ok(planned) => planned,
        Err(Error::DoesNotFit(short)) => {
            assert!(short.short().get() > 0, "seed {seed}: {short}");
            return false;
        }
        Err(other) => panic!("seed {seed}: {other}"),
    };
    let plan = &planned.plan;
    assert_eq!(plan.world(), topology.world());
    for rank in 0..topology.world() {
        let used = bytes(plan, workload, Rank::new(rank));
        assert!(used <= task.budget().get(), "seed {seed}, rank {rank}: {used}");
    }
    let again = planner.plan(task).expect("a plan");
    assert_eq!(*plan, again, "seed {seed}");
    let step = planned.estimate.step_seconds();
    assert!(step.is_finite() && step >= 0.0, "seed {seed}: {step}");
    true
}

#[test]
fn plans_of_random_tasks_are_whole_fit_and_repeat() {
    let mut planned = 0;
    for seed in 1000..1060 {
        let mut draws = Draws(seed);
        let nodes: Vec<u32> = match draws.below(4) {
            0 => vec![1 + draws.below(8) as u32],
            1 => vec![8; 1 + draws.below(8) as usize],
            2 => (0..=draws.below(6)).map(|_| 1 + draws.below(8) as u32).collect(),
            _ => vec![4; 1 + draws.below(32) as usize],
        };
        let tables = 1 + draws.below(20);
        let workload = workload(&mut draws, tables);
        let all = workload.tables().weight_bytes().expect("fits").get();
        let ranks: u64 = nodes.iter().map(|&ranks| u64::from(ranks)).sum();
        // From too little to plenty.
        let memory = (draws.scale(0.5, 200.0) * all as f64 / ranks as f64) as u64 + 1_000_000;
        let topology = topology(&mut draws, &nodes, memory);
        let mut task = Task::new(&workload, &topology);
        task.objective =
            draws.one_of(&[Objective::StepSeconds, Objective::InterNodeBytes, Objective::Memory]);
        task.constraints.max_replicas = draws.one_of(&[None, Some(1), Some(2)]);
        planned += u64::from(check(&workload, &topology, &task, seed));
    }
    eprintln!("{planned} of 60 tasks have a plan");
    assert!((20..60).contains(&planned), "{planned}");
}

#[test]
fn five_hundred_ranks_are_planned() {
    let mut draws = Draws(7);
    let workload = workload(&mut draws, 40);
    let topology = topology(&mut draws, &[8; 64], 80_000_000_000);
    assert!(check(&workload, &topology, &Task::new(&workload, &topology), 7));
}
