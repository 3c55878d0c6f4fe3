//! Every plan of a few tables on four ranks, and the best of them.

use crate::cases::{Draws, topology, workload};
use emb_shard::{
    Exchange, Id, Kind, Lattice, Layout, Ledger, Mesh, Path, Placement, PlanBuilder, RowCut,
    StepModel, TableId, TablePlan, Task,
};

const RANKS: u32 = 4;

/// For every table: whole on each rank, rows over all, everywhere.
fn options(task: &Task<'_>) -> Vec<Vec<TablePlan>> {
    let mesh = Mesh::new(RANKS, RANKS, Layout::Strided).expect("a mesh");
    let whole = (0..RANKS).map(|owner| Placement::TableWise { owner: Some(owner) });
    let others = [Placement::RowWise { cut: RowCut::Modulo }, Placement::DataParallel];
    let plans: Vec<_> = whole
        .chain(others)
        .map(|placement| {
            let builder = PlanBuilder::new(mesh).node_ranks(task.node_ranks()).all(placement);
            builder.build(task.workload.tables()).expect("a plan")
        })
        .collect();
    let tables = task.workload.tables().tables().len();
    let of = |table: usize| -> Vec<TablePlan> {
        plans.iter().map(|plan| plan.placed().as_slice()[table].clone()).collect()
    };
    (0..tables).map(of).collect()
}

/// The shortest step over all choices for the tables from `table` on. Ranks that are still empty
/// are alike within a node, and there is one node: only the first of them is tried.
fn best(ledger: &mut Ledger<'_>, options: &[Vec<TablePlan>], table: usize, used: u32) -> f64 {
    let Some(choices) = options.get(table) else { return ledger.step_seconds() };
    let id = TableId::from_index(table).expect("few tables");
    let mut shortest = f64::INFINITY;
    for (number, choice) in choices.iter().enumerate() {
        let owner = number as u32;
        if owner < RANKS && owner > used {
            continue;
        }
        ledger.add(id, choice).expect("adds");
        let used = if owner < RANKS { used.max(owner + 1) } else { used };
        shortest = shortest.min(best(ledger, options, table + 1, used));
        ledger.remove(id, choice).expect("removes");
    }
    shortest
}

#[test]
fn u31_on_four_ranks_it_equals_brute_force_nearly_always() {
    const CASES: u64 = 200;
    let (mut equal, mut worst) = (0, 1.0_f64);
    for seed in 0..CASES {
        let mut draws = Draws(seed);
        let tables = 1 + draws.below(8);
        let workload = workload(&mut draws, tables);
        let topology = topology(&mut draws, &[RANKS], 80_000_000_000);
        let mut task = Task::new(&workload, &topology);
        task.constraints.max_replicas = Some(1);
        let kinds = [Kind::TableWise, Kind::RowWise, Kind::DataParallel];
        task.constraints.kinds = Some(kinds.into_iter().collect());
        task.constraints.exchanges = Some(vec![Exchange::Reduce { over: Path::Flat }]);
        let planned = Lattice::default().solve(&task).expect("a plan");
        let model = StepModel::default();
        let mut ledger = Ledger::new(&model, &workload, &topology, RANKS).expect("a ledger");
        let shortest = best(&mut ledger, &options(&task), 0, 0);
        let ratio = planned.estimate.step_seconds() / shortest;
        assert!(planned.lower_bound_seconds <= shortest * (1.0 + 1e-9), "seed {seed}");
        equal += u64::from(ratio <= 1.0 + 1e-6);
        worst = worst.max(ratio);
        assert!(ratio <= 4.0 / 3.0, "seed {seed}: {ratio} times the best");
    }
    eprintln!("{equal} of {CASES} equal the best, the worst is {worst:.4} times it");
    assert!(equal * 10 >= CASES * 9, "{equal} of {CASES}, worst {worst}");
}
