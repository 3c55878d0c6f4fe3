//! How many collectives a step takes.

use crate::replicas::{touched_rows, weights};
use crate::support::{Model, Random, Upstream, cpu, one_step};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::Error;
use emb_kernels::{Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut};

/// Collectives of one step on each of four ranks.
pub(crate) fn of_one_step(model: &Model, plan: &Plan, weighted: bool) -> Vec<u64> {
    let batches = model.batches(&mut Random::new(3), &[2, 1, 0, 1], weighted);
    of_these(model, plan, &batches)
}

/// Collectives of one step on these batches of each rank.
pub(crate) fn of_these(model: &Model, plan: &Plan, batches: &[Jagged]) -> Vec<u64> {
    let counts = run(batches.len(), &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        let (before, me) = (sharded.collectives(), world.rank());
        one_step(model, &mut sharded, &mut cpu, (batches, me), Upstream::Given, 1)?;
        Ok::<_, Error>(sharded.collectives() - before)
    });
    counts.unwrap_or_else(|failure| panic!("{failure}\n{plan}"))
}

#[test]
fn collectives_of_a_step_do_not_grow_with_tables() {
    let gradients = Some(ReplicaSync::Gradients);
    let row_wise = PlaceOptions::from(Placement::RowWise { cut: RowCut::Modulo });
    let table_wise = PlaceOptions::from(Placement::TableWise { owner: None });
    let column_wise = PlaceOptions::from(Placement::ColumnWise { parts: None });
    for (group, options, weighted, expected) in [
        // Counts, ids, sums, gradients.
        (4, table_wise, false, 4),
        (4, row_wise, false, 4),
        // And per-sample weights.
        (4, row_wise, true, 5),
        // And the statistics of rows.
        (4, column_wise, false, 5),
        // And the mean over two replicas, which tell each other all.
        (2, PlaceOptions { sync: Some(weights(1)), ..row_wise }, false, 5),
        // Only the mean over four: shares, then all of it.
        (4, PlaceOptions { sync: Some(weights(1)), ..Placement::DataParallel.into() }, false, 2),
        // Not due after one step.
        (2, PlaceOptions { sync: Some(weights(2)), ..row_wise }, false, 4),
        // And how many rows were touched, and which.
        (2, PlaceOptions { sync: Some(touched_rows(1)), ..row_wise }, false, 7),
        // And counts, rows and gradients of the replicas.
        (2, PlaceOptions { sync: gradients, ..table_wise }, false, 7),
        (2, PlaceOptions { sync: gradients, ..column_wise }, false, 8),
        (4, Placement::DataParallel.into(), true, 3),
    ] {
        for tables in [1, 26, 200] {
            let shapes = vec![(20, 6, 1); tables];
            let model = Model::new(&shapes, RuleKind::RowWiseAdaGrad, Pooling::Sum);
            let mesh = Mesh::new(4, group, Layout::Strided).expect("a mesh");
            let plan = PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan");
            let counts = of_one_step(&model, &plan, weighted);
            assert_eq!(counts, [expected; 4], "{tables} tables, groups of {group}, {options:?}");
        }
    }
}

#[test]
fn collectives_that_sum_gradients_do_not_grow_with_tables() {
    let shapes = [(2, 6, 2), (40, 6, 1), (1000, 6, 1)];
    let counts = |times: usize| {
        let model = Model::new(&shapes.repeat(times), RuleKind::Adam, Pooling::Sum);
        let mesh = Mesh::new(8, 1, Layout::Strided).expect("a mesh");
        let options = Placement::DataParallel;
        let plan = PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan");
        let ranks = run(8, &Options::default(), |world| {
            let mut cpu = cpu();
            let mut sharded = model.shard(world, &mut cpu, &plan)?;
            let batches = model.batches(&mut Random::new(3), &[40; 8], false);
            let at = (&batches[..], world.rank());
            let mut counts = Vec::new();
            for step in 1..=3 {
                let before = sharded.collectives();
                one_step(&model, &mut sharded, &mut cpu, at, Upstream::Given, step)?;
                counts.push(sharded.collectives() - before);
            }
            Ok::<_, Error>(counts)
        });
        ranks.expect("steps")
    };
    let few = counts(1);
    // Counts; scattered counts, rows, gradients, counts of sums; all rows; rows and sums.
    assert!(few.iter().all(|counts| *counts == [8; 3]), "{few:?}");
    assert_eq!(few, counts(20));
}
