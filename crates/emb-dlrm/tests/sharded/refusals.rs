//! What is refused, and how.

use crate::replicas::weights;
use crate::support::{Model, cpu};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::Error;
use emb_kernels::{Jagged, Pooling};
use emb_optim::{OptimizerConfig, ReplicaRule, ReplicaScaling, RuleKind};
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync};
use std::sync::Mutex;

fn model() -> Model {
    Model::new(&[(12, 4, 1)], RuleKind::Sgd, Pooling::Sum)
}

/// Why four ranks refuse.
fn reason(model: &Model, plan: &Plan) -> String {
    let made =
        run(4, &Options::default(), |world| model.shard(world, &mut cpu(), plan).map(|_| ()));
    made.expect_err("refused").to_string()
}

fn placed(options: PlaceOptions) -> Plan {
    let mesh = Mesh::new(4, 2, Layout::Strided).expect("a mesh");
    let builder = PlanBuilder::new(mesh).node_ranks(2).all(options);
    builder.build(&model().tables()).expect("a plan")
}

#[test]
fn plans_that_cannot_be_executed_are_refused_by_name() {
    let base = PlaceOptions::from(Placement::TableWise { owner: None });
    let sync = |sync| placed(PlaceOptions { sync: Some(sync), ..base });
    let said = reason(&model(), &sync(ReplicaSync::FullyShardedReplicas));
    assert!(said.contains("table \"t0\": sync fully sharded isn't executed"), "{said}");
}

#[test]
fn optimizers_that_do_not_fit_the_plan_are_refused_by_name() {
    let columns = placed(Placement::ColumnWise { parts: None }.into());
    let averaged = placed(PlaceOptions {
        sync: Some(weights(1)),
        ..Placement::TableWise { owner: None }.into()
    });
    let sgd = OptimizerConfig::new(RuleKind::Sgd);
    let adagrad = OptimizerConfig::new(RuleKind::RowWiseAdaGrad);
    let scaled = |rule, replicas| OptimizerConfig {
        replica: ReplicaScaling::new(rule, replicas),
        ..adagrad
    };
    for (config, plan, what) in [
        (OptimizerConfig { max_norm: Some(1.0), ..sgd }, &columns, "max_norm needs whole rows"),
        (scaled(ReplicaRule::History, 4), &averaged, "over 4 replicas, the plan has 2"),
        (scaled(ReplicaRule::Exact, 2), &averaged, "replica rule exact needs sync gradients"),
        (scaled(ReplicaRule::Moment, 3), &averaged, "over 3 replicas, the plan has 2"),
    ] {
        let mut model = model();
        model.specs[0].optimizer = config.build().expect("valid");
        let said = reason(&model, plan);
        assert!(said.contains("table \"t0\": ") && said.contains(what), "{said}");
    }
}

#[test]
fn features_and_tables_that_do_not_fit_are_refused() {
    let plan = placed(Placement::TableWise { owner: None }.into());
    let sequence = Model::new(&[(12, 4, 1)], RuleKind::Sgd, Pooling::None);
    let said = reason(&sequence, &plan);
    assert!(said.contains("table \"t0\": feature \"t0f0\" isn't pooled"), "{said}");
    let larger = Model::new(&[(13, 4, 1)], RuleKind::Sgd, Pooling::Sum);
    let said = reason(&larger, &plan);
    assert!(said.contains("13 rows of 4, but the plan has \"t0\" with 12 rows of 4"), "{said}");
    let made =
        run(2, &Options::default(), |world| model().shard(world, &mut cpu(), &plan).map(|_| ()));
    let said = made.expect_err("refused").to_string();
    assert!(said.contains("the plan is for 4 ranks, there are 2"), "{said}");
}

#[test]
fn a_bad_id_is_refused_where_it_is_and_ends_every_rank() {
    for (id, culprit) in [(12, 0), (-1, 2), (i64::MAX, 3)] {
        let model = model();
        let plan = placed(Placement::TableWise { owner: None }.into());
        let said = Mutex::new(Vec::new());
        let failure = run(4, &Options::default(), |world| {
            let mut cpu = cpu();
            let mut sharded = model.shard(world, &mut cpu, &plan)?;
            let ids = if world.rank() == culprit { vec![3, 4, id] } else { vec![3, 4, 5] };
            let batch = Jagged::from_lengths(&["t0f0"], 2, &[1, 2], ids, None)?;
            let mut step = || {
                let routed = sharded.route(batch.as_ref())?;
                routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu).map(|_| ())
            };
            let result = step();
            let after = result.is_ok().then(|| world.barrier());
            let error = result.map_err(|error| error.to_string());
            said.lock().expect("no panic").push((world.rank(), error.clone()));
            result_of(error, after)
        });
        let failure = failure.expect_err("refused").to_string();
        let bad = format!(
            "table \"t0\", feature \"t0f0\", sample 1, position 1 in the bag: id {id} is outside 0..=11"
        );
        assert!(failure.contains(&bad), "{failure}");
        let said = said.into_inner().expect("no panic");
        assert_eq!(said.len(), 4);
        for (rank, said) in said {
            if rank == culprit {
                assert_eq!(said.expect_err("refused"), bad);
            } else if let Err(said) = said {
                let named = format!("rank {culprit}");
                assert!(said.contains(&named) && said.contains(&bad), "rank {rank}: {said}");
            }
        }
    }
}

/// The error of a step, or else of the barrier after it.
fn result_of(
    step: Result<(), String>,
    after: Option<Result<(), emb_comm::Error>>,
) -> Result<(), Error> {
    match (step, after) {
        (Err(said), _) => Err(Error::Mismatch(said)),
        (Ok(()), Some(after)) => Ok(after?),
        (Ok(()), None) => Ok(()),
    }
}

#[test]
fn a_batch_of_other_features_and_a_wrong_gradient_are_refused() {
    let model = model();
    let plan = placed(Placement::TableWise { owner: None }.into());
    let failure = run(4, &Options::default(), |world| {
        let sharded = model.shard(world, &mut cpu(), &plan)?;
        let batch = Jagged::from_lengths(&["other"], 1, &[1], vec![0], None)?;
        sharded.route(batch.as_ref()).map(|_| ())
    });
    let said = failure.expect_err("refused").to_string();
    assert!(said.contains("features [\"t0f0\"], the batch has [\"other\"]"), "{said}");
    let failure = run(4, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, &plan)?;
        let batch = Jagged::from_lengths(&["t0f0"], 1, &[1], vec![0], None)?;
        let routed = sharded.route(batch.as_ref())?;
        let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
        pooled.backward(&mut sharded, &mut cpu, &[0.0; 3], 1.0, 1)
    });
    let said = failure.expect_err("refused").to_string();
    assert!(said.contains("3 gradients for 4 outputs"), "{said}");
}
