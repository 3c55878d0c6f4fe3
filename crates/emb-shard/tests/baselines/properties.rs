//! Any task: a plan within the budget, or a true refusal; the same each time.

use crate::common::{Shape, bytes_by_rank, machines, workload};
use emb_shard::{Constraints, Error, Kind, Layout, Plan, Planner, Task, baselines};
use proptest::prelude::*;

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let rows = prop_oneof![1_u64..50, 50_u64..5_000, 5_000_u64..200_000];
    let shape = (rows, 1_usize..=40, 0.0_f64..30.0, prop::bool::weighted(0.8));
    // Widths that column blocks divide, and any other.
    let shape = shape.prop_map(|(rows, dim, factor, pooled)| {
        (rows, if dim > 20 { dim / 4 * 16 } else { dim }, factor, pooled)
    });
    prop::collection::vec(shape, 1..=24)
}

/// One to 512 ranks, nodes equal or not.
fn nodes() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        (1_u32..=64, 1_usize..=8).prop_map(|(ranks, nodes)| vec![ranks; nodes]),
        prop::collection::vec(1_u32..=16, 1..=6),
    ]
}

fn constraints() -> impl Strategy<Value = Constraints> {
    let all = [
        Kind::TableWise,
        Kind::RowWise,
        Kind::ColumnWise,
        Kind::DataParallel,
        Kind::TableRowWise,
        Kind::Grid,
    ];
    let kinds = prop::option::weighted(0.3, prop::sample::subsequence(all.to_vec(), 1..=6));
    let pinned = prop::option::weighted(0.3, 0_u32..8);
    let replicas = prop::option::weighted(0.3, (1_u32..=4, any::<bool>()));
    (kinds, pinned, prop::option::of(1_usize..=16), replicas).prop_map(
        |(kinds, pinned, min_columns, replicas)| Constraints {
            kinds: kinds.map(|kinds| kinds.into_iter().collect()),
            pinned: pinned.map(|position| ("t0".to_owned(), position)).into_iter().collect(),
            min_columns,
            replicas: replicas.map(|(replicas, strided)| {
                (replicas, if strided { Layout::Strided } else { Layout::Contiguous })
            }),
            ..Constraints::default()
        },
    )
}

/// A plan that `Plan::new` checked covers every cell; here: bytes, constraints, repetition.
fn check(planner: &dyn Planner, task: &Task<'_>) -> Result<(), TestCaseError> {
    let name = planner.name();
    let result = planner.plan(task);
    prop_assert_eq!(&result, &planner.plan(task), "{}", name);
    let plan = match result {
        Ok(plan) => plan,
        Err(Error::DoesNotFit(why)) => {
            prop_assert!(why.needs > why.has, "{}: {}", name, why);
            let tables = task.workload.tables().tables();
            prop_assert!(tables.iter().any(|(_, table)| table.name() == why.table), "{}", why);
            return Ok(());
        }
        Err(Error::Constraint { .. }) => return Ok(()),
        Err(other) => return Err(TestCaseError::fail(format!("{name}: {other}"))),
    };
    let most = bytes_by_rank(&plan).into_iter().max().unwrap_or(0);
    prop_assert!(most <= task.budget().get(), "{}: {} bytes", name, most);
    honours(&plan, task).map_err(|what| TestCaseError::fail(format!("{name}: {what}")))
}

fn honours(plan: &Plan, task: &Task<'_>) -> Result<(), String> {
    let Constraints { pinned, min_columns, replicas, .. } = &task.constraints;
    for (id, table) in plan.placed().iter() {
        let tier = &table.tiers[0];
        if let Some(&position) = pinned.get(&table.table) {
            let owners: Vec<u32> =
                tier.blocks.iter().flat_map(|block| block.owners.iter()).collect();
            if owners != [position] {
                return Err(format!("{} is on {owners:?}, pinned to {position}", table.table));
            }
            continue;
        }
        let kind: Kind = serde_json::from_value(tier.kind().into()).expect("a kind");
        if plan.world() > 1 && !task.allows(kind) {
            return Err(format!("{} is {kind:?}", table.table));
        }
        let narrowest = tier.blocks.iter().map(|block| block.columns.columns()).min();
        let least = min_columns.unwrap_or(1).min(plan.tables().tables()[id].dim());
        if narrowest < Some(least) {
            return Err(format!("{} has {narrowest:?} of {least} columns", table.table));
        }
        let asked = replicas.map_or(1, |(replicas, _)| replicas);
        if kind != Kind::DataParallel && tier.mesh.replicas() != asked {
            return Err(format!("{} has {} replicas", table.table, tier.mesh.replicas()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_task_is_planned_within_its_budget_or_refused_by_name(
        shapes in shapes(),
        nodes in nodes(),
        constraints in constraints(),
        // Of what all tables take on one rank: from too little to plenty.
        room in 0.001_f64..1.5,
    ) {
        let workload = workload(&shapes);
        let total: u64 = shapes.iter().map(|&(rows, dim, ..)| rows * (dim as u64 * 4 + 4)).sum();
        let topology = machines(&nodes, 1 + (total as f64 * room) as u64);
        let mut task = Task::new(&workload, &topology);
        for planner in baselines() {
            check(planner.as_ref(), &task)?;
        }
        task.constraints = constraints;
        for planner in baselines() {
            check(planner.as_ref(), &task)?;
        }
    }

    #[test]
    fn with_room_for_everything_every_planner_has_a_plan(shapes in shapes(), nodes in nodes()) {
        let workload = workload(&shapes);
        let topology = machines(&nodes, 1 << 50);
        let task = Task::new(&workload, &topology);
        for planner in baselines() {
            let plan = planner.plan(&task);
            prop_assert!(plan.is_ok(), "{}: {:?}", planner.name(), plan);
        }
    }
}
